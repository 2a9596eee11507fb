"""What a change of version asks of a cluster's licence, and whether what its servers say of theirs is enough.

Terms of public documentation (cockroachlabs.com/docs: licensing-faqs, enterprise-license-keys); *documented, not
run* but for clusters without a key. A cluster without one works for seven days; a change within a series needs none;
one to another series does, where one of both versions is under the terms of v24.3: that one and later ones, and of four
older series the patches since the day it came out. Whoever has a key gives it to the clusters of a run in ``KEY``;
nothing is done about a cluster that has none but to say so. Until when a key is valid it says itself, in a form that is
public (``licenseccl/license.proto``).
"""

import datetime
import time
from base64 import b64decode
from collections.abc import Callable, Mapping

from clusters.engines.cockroach.version import Series, Version
from clusters.errors import BadInput
from clusters.model import Health
from clusters.sql import Connection, Failure, SqlError

SINCE: Series = (24, 3)
"""From this series on all versions are under the terms by which a change to another series needs a valid key."""
PATCHES: Mapping[Series, int] = {(23, 1): 29, (23, 2): 16, (24, 1): 7, (24, 2): 5}
"""So are these patches of older series, and all after them: those of 2024-11-18, the day of v24.3.0."""
KEY, ORGANISATION = "ROACHPROOF_COCKROACH_LICENSE", "ROACHPROOF_COCKROACH_ORGANIZATION"
"""Variables of the environment: the key that clusters are given when they are made, and whom it was made out to."""
SETTINGS = {ORGANISATION: "cluster.organization", KEY: "enterprise.license"}
DAY_S = 86400
BEGINS = "crl-0-"
"""How keys begin; what follows is a message of protocol buffers in Base64 without padding."""
VALID_UNTIL = 2
"""The number of the field that says until when a key is valid, in seconds of Unix time; 0 or none: for ever."""
_WAY_OUT = f"set {KEY} (and {ORGANISATION}) to one, or choose two versions of one series"


def settings(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The statements by which a new cluster is given the licence of the environment; none where there is none.

    They hold the key: they are for servers, and neither for messages nor for evidence.
    """
    if not environ.get(KEY):
        return ()
    quoted = {name: environ[name].strip().replace("'", "''") for name in SETTINGS if environ.get(name)}
    return tuple(f"SET CLUSTER SETTING {SETTINGS[name]} = '{value}'" for name, value in quoted.items())


async def give(connection: Connection, environ: Mapping[str, str], left_s: Callable[[], float]) -> None:
    """Give a new cluster the licence of the environment, where that has one, in the time that is left.

    Raises ``BadInput`` for one that servers do not take, ``SqlError`` where they did not answer.
    """
    for statement in settings(environ):
        try:
            await connection.execute(statement, timeout=left_s())
        except SqlError as error:
            if error.failure is not Failure.REFUSED:
                raise
            raise BadInput(
                f"{KEY}: the server does not take it ({error}); set it to a key as it was issued, and {ORGANISATION} "
                "to whom, or leave both out"
            ) from error


def needed(old: Version, new: Version) -> bool:
    """Whether a change from the one version to the other needs a valid key."""
    return old.series != new.series and any(map(_under_the_terms, (old, new)))


def _under_the_terms(version: Version) -> bool:
    first = PATCHES.get(version.series)
    return version.series >= SINCE or (first is not None and version.patch >= first)


def lacking(old: Version, new: Version, environ: Mapping[str, str], now: float | None = None) -> str:
    """What a change needs that the environment has not, for a cluster to be given it; empty where it lacks nothing.

    ``now``: Unix time; that of this machine where it is not given.
    """
    if not needed(old, new):
        return ""
    if not settings(environ):
        return f"it needs a valid licence key, and {KEY} is not set: {_WAY_OUT}"
    until, now = valid_until(environ[KEY]), time.time() if now is None else now
    if until and until <= now:
        day = datetime.datetime.fromtimestamp(until, datetime.UTC).date()
        return f"it needs a valid licence key, and that of {KEY} ran out on {day}: {_WAY_OUT}"
    return ""


def valid_until(key: str) -> int | None:
    """Until when a key says that it is valid, in seconds of Unix time; 0: for ever.

    ``None`` for what cannot be read: then servers say what they make of it.
    """
    text = key.strip().removeprefix(BEGINS)
    try:
        message = memoryview(b64decode(text + "=" * (-len(text) % 4), validate=True))
        return _field(message, VALID_UNTIL) if message else None
    except (ValueError, IndexError):
        return None


def _field(message: memoryview, wanted: int) -> int:
    """The number in a field of a message of protocol buffers; 0 where it has none. Raises ``ValueError``."""
    at, found = 0, 0
    while at < len(message):
        tag, at = _number(message, at)
        match tag & 7:
            case 0:
                value, at = _number(message, at)
                found = value if tag >> 3 == wanted else found
            case 2:
                length, at = _number(message, at)
                at += length
            case other:
                raise ValueError(f"kind {other} of field is in no key")
    if at > len(message):
        raise ValueError("the message is cut off")
    return found


def _number(message: memoryview, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and where it ends. Raises ``IndexError``."""
    number = shift = 0
    while True:
        byte = message[at]
        number, shift, at = number | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return number, at


def enough(old: Version, new: Version, *, given: bool, left_s: float | None) -> Health:
    """Whether a cluster of the old version may be given the new one by its licence; ``why`` says its state either way.

    ``given``: whether it has a key; ``left_s``: for how many seconds that is valid, where servers say so.
    """
    if not given:
        has = "it has none"
    elif left_s is None:
        has = "it has one, and servers of this version do not say until when"
    elif left_s > 0:
        has = f"it has one for {left_s / DAY_S:.0f} more days"
    else:
        has = f"the one that it has ran out {-left_s / DAY_S:.0f} days ago"
    if old.series == new.series:
        return Health(ok=True, why=f"{has}; none is needed within v{new.major}.{new.minor}")
    if not needed(old, new):
        return Health(ok=True, why=f"{has}; none is needed before v{SINCE[0]}.{SINCE[1]} and the patches of its day")
    if given and (left_s is None or left_s > 0):
        return Health(ok=True, why=f"{has}, which a change from {old} to {new} needs")
    return Health(ok=False, why=f"a change from {old} to {new} needs a valid licence key, and {has}: {_WAY_OUT}")
