"""Tar archives that others may have written, unpacked so that nothing lands outside of a directory."""

import shutil
import tarfile
from pathlib import Path, PurePosixPath


def unpack(archive: tarfile.TarFile, into: Path) -> None:
    """Unpack files, directories and links between them below ``into``; owners and devices stay away.

    By hand, as ``tarfile``'s own filter came with Python 3.11.4, and Debian 12 has 3.11.2. Raises ``tarfile.TarError``
    for a name or a link that leads out of the directory, ``OSError`` for what cannot be written.
    """
    for member in archive:
        path = into / _inner(member.name)
        if member.isdir():
            path.mkdir(parents=True, exist_ok=True)
        elif member.issym():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(_inner(member.linkname))
        elif member.isreg() or member.islnk():
            write_member(archive, member, path)


def _inner(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise tarfile.ExtractError(f"{name!r} leads out of the archive")
    return path


def write_member(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    """Write the content of a file with its permissions, but for those of others to write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = archive.extractfile(member)
    if content is None:
        raise tarfile.ExtractError(f"{member.name!r} is no file")
    with content, path.open("wb") as file:
        shutil.copyfileobj(content, file, 1 << 20)
    path.chmod(member.mode & 0o755)
