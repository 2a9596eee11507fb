"""The vendor's download server and list of releases, reached over HTTP with time-outs."""

import errno
import http.client
import platform
import re
import socket
import ssl
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass

from clusters.engines.cockroach.version import Version
from clusters.errors import BadInput

DOWNLOADS = "https://binaries.cockroachdb.com"
RELEASES = "https://raw.githubusercontent.com/cockroachdb/docs/main/src/current/_data/releases.yml"
RELEASES_PAGE = "https://www.cockroachlabs.com/docs/releases/"
MIRROR = "set ROACHPROOF_DOWNLOADS to another mirror"
OWN_BINARY = "or name a binary you have with --cockroach PATH"

_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_MAX_TEXT = 32 << 20

_OF_THE_NETWORK = (
    urllib.error.URLError,
    http.client.HTTPException,
    ConnectionError,
    ssl.SSLError,
    socket.gaierror,
)
_NO_WAY = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN)

Progress = Callable[[int, int], None]
"""Called with bytes received so far and bytes in all, 0 while unknown; several times a second, also while waiting."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Vendor:
    """Where binaries come from.

    ``stall_s``: seconds without a byte, connecting included, after which a transfer is given up. ``look_up_s``: seconds
    in all for the list of releases, which may be asked for on a machine whose firewall silently drops everything.
    ``whole_s``: seconds in all for a version, waiting for another run that downloads it included; ``None``: no limit.
    """

    downloads: str = DOWNLOADS
    releases: str = RELEASES
    stall_s: float = 30.0
    look_up_s: float = 10.0
    whole_s: float | None = None

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Vendor":
        """The vendor, or the mirror in ``$ROACHPROOF_DOWNLOADS``.

        A mirror serves ``cockroach-vX.Y.Z.linux-amd64.tgz``, the same with ``.sha256sum``, and, for ``latest``,
        ``releases.yml``. Raises ``BadInput`` if the variable is no http or https address, or holds a password, which
        would stand wherever the address does.
        """
        base = environ.get("ROACHPROOF_DOWNLOADS", "").rstrip("/")
        if not base:
            return cls()
        parts = urllib.parse.urlsplit(base)
        if "@" in parts.netloc:
            raise BadInput(
                "ROACHPROOF_DOWNLOADS: a user or a password in the address is not sent. Give a mirror of "
                f"{parts.hostname} that asks for none, or fetch the archive yourself and put the binary into the cache "
                f"(docs/versions.md), {OWN_BINARY}."
            )
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadInput(
                f"ROACHPROOF_DOWNLOADS: {base!r} is not an address to download from. It must begin with https:// or "
                f"http:// and name a host; unset it for {DOWNLOADS}."
            )
        return cls(downloads=base, releases=f"{base}/releases.yml")

    def archive(self, version: Version) -> str:
        """The address of a version's archive for this machine. Raises ``BadInput`` where the vendor has none."""
        return f"{self.downloads}/cockroach-{version}.{_platform()}.tgz"


def _platform() -> str:
    machine = platform.machine().lower()
    if sys.platform != "linux" or machine not in _ARCHITECTURES:
        raise BadInput(
            f"no download for {sys.platform} on {machine}: only Linux on amd64 and arm64 is downloaded. "
            "Name a binary for this machine with --cockroach PATH."
        )
    return f"linux-{_ARCHITECTURES[machine]}"


@contextmanager
def opened(url: str, what: str, *, timeout: float) -> Iterator[http.client.HTTPResponse]:
    """An answer with status 200, its body still to be read.

    Every failure, also one while the body is read inside the block, comes out as ``BadInput``.
    """
    request = urllib.request.Request(url, headers={"User-Agent": "roachproof"})  # noqa: S310 - scheme checked in Vendor
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310
            yield answer
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (403, 404, 410):
            raise BadInput(
                f"{what} can't be had: {url} answers {error.code}. It does not exist, or it was withdrawn or removed "
                f"(the vendor removes old versions). Releases are listed at {RELEASES_PAGE}; choose one of those, "
                f"{OWN_BINARY}."
            ) from error
        raise BadInput(
            f"{what} can't be had now: {url} answers {error.code} {error.reason}. Try again later, {OWN_BINARY}."
        ) from error
    except (http.client.HTTPException, OSError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, TimeoutError):
            raise _stalled(what, url, timeout) from error
        # Any other error is the reader's own, a full disk for instance.
        if isinstance(error, _OF_THE_NETWORK) or (isinstance(error, OSError) and error.errno in _NO_WAY):
            raise BadInput(
                f"{what}: {url} can't be reached: {reason}. Check the network or https_proxy, {MIRROR}, {OWN_BINARY}."
            ) from error
        raise


def _stalled(what: str, url: str, timeout: float) -> BadInput:
    return BadInput(
        f"{what}: the transfer stalled: no byte from {url} for {timeout:g} s. Try again, {MIRROR}, {OWN_BINARY}."
    )


def text_at(url: str, what: str, *, timeout: float) -> str:
    """A small text file. Raises ``BadInput`` on any failure."""
    with opened(url, what, timeout=timeout) as answer:
        return answer.read(_MAX_TEXT).decode("utf-8", "replace")


def newest_release(vendor: Vendor) -> Version:
    """The highest production release that is neither withdrawn nor kept for the vendor's cloud.

    Raises ``BadInput`` when the list can't be had or names none.
    """
    listed = _within(
        vendor.look_up_s,
        lambda: text_at(vendor.releases, "the list of CockroachDB releases", timeout=vendor.look_up_s),
        vendor.releases,
    )
    found = [version for entry in release_entries(listed) if (version := _available(entry)) is not None]
    if not found:
        raise BadInput(
            f"{vendor.releases} names no production release that can be downloaded. "
            f"Choose one with --cockroach-version (see {RELEASES_PAGE}), {OWN_BINARY}."
        )
    return max(found)


def _within(seconds: float, ask: Callable[[], str], url: str) -> str:
    """A time-out of a socket counts for each address of a host anew, and not for its resolution; this one for all."""
    answer: Future[str] = Future()

    def work() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=work, name="releases", daemon=True).start()
    try:
        return answer.result(timeout=seconds)
    except TimeoutError:
        raise _stalled("the list of CockroachDB releases", url, seconds) from None


def _available(entry: Mapping[str, str]) -> Version | None:
    kept_back = "true" in (entry.get(reason, "").lower() for reason in ("withdrawn", "cloud_only"))
    if entry.get("release_type") != "Production" or kept_back:
        return None
    try:
        # Early names (beta-20160407, v1.0) are no versions in today's sense.
        return Version.parse(entry.get("release_name", ""))
    except BadInput:
        return None


_FIELD = re.compile(r"^(?:  )?([a-z_0-9]+):[ \t]*(.*)$", re.MULTILINE)


def release_entries(text: str) -> Iterator[dict[str, str]]:
    """The entries of the documentation's ``releases.yml``, top-level fields only, values as text.

    The file is one flat list of mappings; nested mappings and folded texts are passed over, which needs no YAML
    library.
    """
    for entry in re.split(r"^- ", text, flags=re.MULTILINE)[1:]:
        yield {key: value.split(" #")[0].strip().strip("'\"") for key, value in _FIELD.findall(entry)}
