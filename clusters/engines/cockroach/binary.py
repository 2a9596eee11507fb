"""Which ``cockroach`` is tested: found, or downloaded, and asked what it is before anything relies on it."""

import os
import platform
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from clusters.engines.cockroach import cache as store
from clusters.engines.cockroach.builds import Build
from clusters.engines.cockroach.download import download
from clusters.engines.cockroach.vendor import RELEASES_PAGE, Progress, Vendor, newest_release
from clusters.engines.cockroach.version import Version
from clusters.errors import BadInput

ANSWER_S = 20.0
"""How long a binary may take to say its version. A real one takes 0.1 s."""

NO_VENDOR = Vendor(downloads="", releases="")
"""Stands for the vendor where nothing may be downloaded."""

_ELF_MACHINES = {
    3: "32-bit x86",
    40: "32-bit ARM",
    62: "amd64",
    183: "arm64",
    21: "ppc64",
    22: "s390x",
    243: "RISC-V",
}
_HERE = {"x86_64": 62, "amd64": 62, "aarch64": 183, "arm64": 183}
_FOREIGN = {
    b"MZ": "Windows",
    b"\xcf\xfa\xed\xfe": "macOS",
    b"\xca\xfe\xba\xbe": "macOS",
    b"\xce\xfa\xed\xfe": "macOS",
}
_FIELD = re.compile(r"^Build (Tag|Time|Commit ID):[ \t]*(\S*)", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Binary:
    """A ``cockroach`` that answered. ``build`` is what it calls itself; ``origin`` says how it was found."""

    path: Path
    version: Version
    build: Build
    sha256: str
    origin: str


def resolve(
    *,
    path: str | None,
    version: str | None,
    environ: Mapping[str, str],
    cache: Path,
    vendor: Vendor | None = None,
    progress: Progress | None = None,
    answer_s: float = ANSWER_S,
) -> Binary:
    """The binary to test, looked for in this order.

    ``path`` (``--cockroach``); ``version`` (``--cockroach-version``, from the cache or else the vendor; ``latest`` asks
    the vendor which it is); ``$COCKROACH_BINARY``; ``PATH``; the newest in the cache; the vendor's newest release. What
    is named and unusable is an error and never passed over in silence. ``NO_VENDOR``: nothing is asked of the network.
    Blocks; call it once, at the start of a session. Raises ``BadInput``, which names where the binary came from, or the
    ways to get one.
    """
    if path:
        found = inspect(Path(path).expanduser(), "--cockroach", cache=cache, answer_s=answer_s)
        if version and (version == "latest" or Version.parse(version, origin="--cockroach-version") != found.version):
            raise BadInput(
                f"--cockroach {path} is {found.version}, but --cockroach-version asks for {version}. Give one of the two."
            )
        return found
    if version:
        vendor = vendor or Vendor.from_environ(environ)
        if version == "latest" and vendor is NO_VENDOR:
            raise BadInput("--cockroach-version latest: the vendor is not asked while nothing is run; name a version")
        number = newest_release(vendor) if version == "latest" else Version.parse(version, origin="--cockroach-version")
        return _of_version(number, f"--cockroach-version {version}", cache, vendor, progress, answer_s)
    if named := environ.get("COCKROACH_BINARY"):
        return inspect(Path(named).expanduser(), "COCKROACH_BINARY", cache=cache, answer_s=answer_s)
    if on_path := shutil.which("cockroach", path=environ.get("PATH", "")):
        return inspect(Path(on_path), "PATH", cache=cache, answer_s=answer_s)
    if cached := store.versions(cache):
        return _cached(cached[-1], f"newest in the cache {cache}", cache, answer_s)
    vendor = vendor or Vendor.from_environ(environ)
    if vendor is NO_VENDOR:
        raise BadInput(_none_to_be_had(cache, "not asked while nothing is run"))
    try:
        newest = newest_release(vendor)
        return _of_version(newest, "the vendor's newest release", cache, vendor, progress, answer_s)
    except BadInput as error:
        raise BadInput(_none_to_be_had(cache, str(error))) from error


def _of_version(
    version: Version, origin: str, cache: Path, vendor: Vendor, progress: Progress | None, answer_s: float
) -> Binary:
    if store.binary_path(cache, version).is_file():
        return _cached(version, f"{origin}, from the cache {cache}", cache, answer_s)
    if vendor is NO_VENDOR:
        raise BadInput(f"{origin}: {version} is not in the cache {cache}; a run would download it")
    source = vendor.archive(version)
    download(version, cache, vendor, progress)
    return _cached(version, f"{origin}, downloaded from {source}", cache, answer_s)


def _cached(version: Version, origin: str, cache: Path, answer_s: float) -> Binary:
    found = inspect(store.binary_path(cache, version), origin, cache=cache, answer_s=answer_s)
    if found.version != version:
        raise BadInput(
            f"{found.path} lies in the cache as {version}, but says that it is {found.build.tag}. "
            f"Move it to {store.binary_path(cache, found.version)}, or delete it."
        )
    return found


def _none_to_be_had(cache: Path, why: str) -> str:
    return (
        "no CockroachDB to test. Looked for: --cockroach and --cockroach-version (not given), $COCKROACH_BINARY (not set), "
        f"`cockroach` on PATH (none), the cache {cache} (none), the vendor's newest release ({why})\n"
        "To get one: --cockroach PATH names a binary; --cockroach-version vX.Y.Z downloads one; a binary can also be put at "
        f"{cache}/cockroach/vX.Y.Z/cockroach by hand. Releases: {RELEASES_PAGE}\n"
        "To run a control instead, which says nothing about CockroachDB: --engine postgres, or --engine auto."
    )


def inspect(path: Path, origin: str, *, cache: Path, answer_s: float = ANSWER_S) -> Binary:
    """Ask the file at ``path`` what it is. ``origin`` names the option or variable it came from.

    Raises ``BadInput`` if it is missing, no file, not executable, built for another machine, hangs, or is no
    CockroachDB.
    """
    path = path.absolute()
    here = f"{origin}: {path}"
    try:
        if not path.exists():
            raise BadInput(f"{here} does not exist. Name the cockroach binary itself.")
        if not path.is_file():
            raise BadInput(f"{here} is not a file. Name the cockroach binary itself, not the directory it lies in.")
        if not os.access(path, os.X_OK):
            raise BadInput(f"{here} is not executable. Make it so: chmod +x {path}")
        _fits_this_machine(path, here)
        build = _build(path, here, answer_s)
        digest = store.sha256_of(path, cache)
    except OSError as error:
        raise BadInput(
            f"{here} can't be read: {error.strerror or error}. Check its permissions and those above it."
        ) from error
    return Binary(
        path=path,
        version=Version.parse(build.tag, origin=here),
        build=build,
        sha256=digest,
        origin=origin,
    )


def _fits_this_machine(path: Path, here: str) -> None:
    with path.open("rb") as file:
        head = file.read(20)
    if not head:
        raise BadInput(f"{here} is an empty file. Download or copy it again.")
    for magic, system in _FOREIGN.items():
        if head.startswith(magic):
            raise BadInput(
                f"{here} is built for {system}; this machine needs a build for Linux on {platform.machine()}."
            )
    if len(head) == 20 and head.startswith(b"\x7fELF"):
        machine = int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")
        wanted = _HERE.get(platform.machine().lower())
        if wanted is not None and machine != wanted:
            built = _ELF_MACHINES.get(machine, f"ELF machine {machine}")
            raise BadInput(f"{here} is built for {built}; this machine needs a build for {_ELF_MACHINES[wanted]}.")


def _build(path: Path, here: str, answer_s: float) -> Build:
    code, out, err = _ask((str(path), "version"), here, answer_s)
    fields = dict(_FIELD.findall(out))
    if code == 0 and fields.get("Tag"):
        return Build(
            tag=fields["Tag"],
            date=fields.get("Time", "").replace("/", "-"),
            commit=fields.get("Commit ID", ""),
        )
    said = next((line.strip() for line in (err + "\n" + out).splitlines() if line.strip()), "nothing")
    raise BadInput(
        f"{here} is not CockroachDB: `{path.name} version` exited with {code} and printed {said[:200]!r}, no build tag. "
        "Name a cockroach binary."
    )


def _ask(argv: Sequence[str], here: str, answer_s: float) -> tuple[int, str, str]:
    env = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.environ.get("HOME", "/"),
        "COCKROACH_SKIP_ENABLING_DIAGNOSTIC_REPORTING": "1",
    }
    try:
        process = subprocess.Popen(
            argv,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        # ENOEXEC for what is neither a program nor a script, ENOENT where its loader is missing (a musl or NixOS
        # machine).
        raise BadInput(
            f"{here} can't be run on this machine ({platform.machine()}): {error.strerror}. Name a cockroach built for it."
        ) from error
    try:
        out, err = process.communicate(timeout=answer_s)
    except BaseException as error:
        # Its children may hold the pipes open, so the whole group goes, while the process is still ours to be waited
        # for.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe:
                pipe.close()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        raise BadInput(
            f"{here} did not answer `{' '.join(argv[1:])}` within {answer_s:g} s. Try it by hand; name a cockroach that answers."
        ) from None
    return process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
