"""Which ``cockroach`` is tested: found, or downloaded, and asked what it is before anything relies on it."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from clusters.engines.cockroach import cache as store
from clusters.engines.cockroach.builds import Build
from clusters.engines.cockroach.download import checksum, download
from clusters.engines.cockroach.vendor import RELEASES_PAGE, Progress, Vendor, newest_release
from clusters.engines.cockroach.version import Version
from clusters.errors import BadInput
from clusters.executables import sha256, why_not

ANSWER_S = 20.0
"""How long a binary may take to say its version, or how it is started. A real one takes 0.1 to 0.4 s."""

NO_VENDOR = Vendor(downloads="", releases="")
"""Stands for the vendor where nothing may be downloaded."""

_FIELD = re.compile(r"^Build (Tag|Time|Commit ID):[ \t]*(\S*)", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Binary:
    """A ``cockroach`` that answered. ``build`` is what it calls itself; ``origin`` says how it was found."""

    path: Path
    version: Version
    build: Build
    origin: str

    @cached_property
    def sha256(self) -> str:
        """Its digest. A real binary takes 0.1 to 0.4 s."""
        return sha256(self.path)


def resolve(
    *,
    path: str | None,
    version: str | None,
    environ: Mapping[str, str],
    cache: Path,
    vendor: Vendor | None = None,
    progress: Progress | None = None,
    download_s: float | None = None,
) -> Binary:
    """The binary to test, looked for in this order.

    ``path`` (``--cockroach``); ``version`` (``--cockroach-version``, from the cache or else the vendor; ``latest`` asks
    the vendor which it is); ``$COCKROACH_BINARY``; ``PATH``; the newest in the cache; the vendor's newest release. What
    is named and unusable is an error and never passed over in silence. ``NO_VENDOR``: nothing is asked of the network.
    ``download_s``: seconds in all for a download of what is not named. Blocks; call it once, at the start of a session.
    Raises ``BadInput``, which names where the binary came from, or the ways to get one.
    """
    if path:
        found = inspect(Path(path).expanduser(), "--cockroach")
        if version and (version == "latest" or Version.parse(version, origin="--cockroach-version") != found.version):
            raise BadInput(
                f"--cockroach {path} is {found.version}, but --cockroach-version asks for {version}. "
                "Give one of the two."
            )
        return found
    if version:
        vendor = vendor or Vendor.from_environ(environ)
        if version == "latest" and vendor is NO_VENDOR:
            raise BadInput("--cockroach-version latest: the vendor is not asked while nothing is run; name a version")
        number = newest_release(vendor) if version == "latest" else Version.parse(version, origin="--cockroach-version")
        return _of_version(number, f"--cockroach-version {version}", cache, vendor, progress)
    if named := environ.get("COCKROACH_BINARY"):
        return inspect(Path(named).expanduser(), "COCKROACH_BINARY")
    if on_path := shutil.which("cockroach", path=environ.get("PATH", "")):
        return inspect(Path(on_path), "PATH")
    if cached := store.versions(cache):
        return _cached(cached[-1], f"newest in the cache {cache}", cache)
    vendor = vendor or Vendor.from_environ(environ)
    if vendor is NO_VENDOR:
        raise BadInput(_none_to_be_had(cache, "not asked while nothing is run"))
    try:
        if download_s is not None:
            vendor = replace(vendor, whole_s=download_s, stall_s=min(vendor.stall_s, download_s / 4))
        newest = newest_release(vendor)
        return _of_version(newest, "the vendor's newest release", cache, vendor, progress)
    except BadInput as error:
        raise BadInput(_none_to_be_had(cache, str(error))) from error


def offered(version: str, *, cache: Path, vendor: Vendor) -> bool:
    """Whether a version that does not lie in the cache can be downloaded; nothing but its checksum is.

    Raises ``BadInput``, which says why it cannot.
    """
    try:
        if version == "latest":
            return bool(newest_release(vendor))
        number = Version.parse(version, origin="the name")
        return not store.binary_path(cache, number).is_file() and bool(checksum(number, vendor))
    except BadInput as error:
        raise BadInput(f"--cockroach-version {version}: it is not in {store.told(cache)}, and {error}") from error


def _of_version(version: Version, origin: str, cache: Path, vendor: Vendor, progress: Progress | None) -> Binary:
    if store.binary_path(cache, version).is_file():
        return _cached(version, f"{origin}, from the cache {cache}", cache)
    if vendor is NO_VENDOR:
        raise BadInput(f"{origin}: {version} is not in {store.told(cache)}; a run would download it")
    source = vendor.archive(version)
    try:
        download(version, cache, vendor, progress)
    except BadInput as error:
        raise BadInput(f"{origin}: {version} is not in {store.told(cache)}, and {error}") from error
    return _cached(version, f"{origin}, downloaded from {source}", cache)


def _cached(version: Version, origin: str, cache: Path) -> Binary:
    found = inspect(store.binary_path(cache, version), origin)
    if found.version != version:
        raise BadInput(
            f"{found.path} lies in the cache as {version}, but says that it is {found.build.tag}. "
            f"Move it to {store.binary_path(cache, found.version)}, or delete it."
        )
    return found


def _none_to_be_had(cache: Path, why: str) -> str:
    return (
        "no CockroachDB to test. Looked for: --cockroach and --cockroach-version (not given), $COCKROACH_BINARY "
        f"(not set), `cockroach` on PATH (none), the cache {cache} (none), the vendor's newest release ({why})\n"
        "To get one: --cockroach PATH names a binary; --cockroach-version vX.Y.Z downloads one; a binary can also be "
        f"put at {cache}/cockroach/vX.Y.Z/cockroach by hand. Releases: {RELEASES_PAGE}\n"
        "To run a control instead, which says nothing about CockroachDB: --engine postgres, or --engine auto."
    )


def inspect(path: Path, origin: str) -> Binary:
    """Ask the file at ``path`` what it is. ``origin`` names the option or variable it came from.

    Raises ``BadInput`` if it cannot be run, hangs, is no CockroachDB, or is one that starts no nodes, such as
    ``cockroach-sql``.
    """
    path = path.absolute()
    here = f"{origin}: {path}"
    code, out, err = _ask(path, here, "version")
    fields = dict(_FIELD.findall(out))
    if code or not fields.get("Tag"):
        said = next((line.strip() for line in (err + "\n" + out).splitlines() if line.strip()), "nothing")
        raise BadInput(
            f"{here} is not CockroachDB: `{path.name} version` exited with {code} and printed {said[:200]!r}, no build "
            "tag. Name a cockroach binary."
        )
    code, out, _ = _ask(path, here, "start", "--help")
    if code or "--join" not in out:
        raise BadInput(
            f"{here} answers `version` and is no server: `{path.name} start --help` exited with {code} and tells "
            "nothing of --join. Name a cockroach that starts nodes."
        )
    date = fields.get("Time", "").replace("/", "-")
    build = Build(tag=fields["Tag"], date=date, commit=fields.get("Commit ID", ""))
    return Binary(path=path, version=Version.parse(build.tag, origin=here), build=build, origin=origin)


def called(printed: str) -> str:
    """The version in what ``cockroach version`` prints, as ``Engine.version`` has it; empty where there is none."""
    tag = dict(_FIELD.findall(printed)).get("Tag", "")
    with suppress(BadInput):
        return str(Version.parse(tag))
    return ""


def _ask(path: Path, here: str, *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and error of a command that answers at once."""
    env = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.environ.get("HOME", "/"),
        "COCKROACH_SKIP_ENABLING_DIAGNOSTIC_REPORTING": "1",
    }
    pipe = subprocess.PIPE
    try:
        with subprocess.Popen(
            [path, *arguments], env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True
        ) as process:
            try:
                out, err = process.communicate(timeout=ANSWER_S)
            except BaseException:
                # Its children may hold the pipes open: the whole group goes, while it is still ours to wait for.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise
    except OSError as error:
        why = why_not(path, error.errno) or f"{path}: {error.strerror}"
        raise BadInput(f"{here.removesuffix(str(path))}{why}") from error
    except subprocess.TimeoutExpired:
        raise BadInput(
            f"{here} did not answer `{' '.join(arguments)}` within {ANSWER_S:g} s. Try it by hand; name a cockroach "
            "that answers."
        ) from None
    return process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
