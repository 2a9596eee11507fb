"""PostgreSQL's version numbers: reading and ordering them, choosing one, and from which to which a node may change."""

import re
from collections.abc import Iterable

from clusters.errors import BadInput

Numbers = tuple[int, int]
"""Major and minor version: ``(16, 2)``."""

_FORM = re.compile(r"v?(\d{2,3})\.(\d{1,3})(?: \(.*\))?", re.ASCII)
_MAJOR = re.compile(r"v?(\d{2,3})", re.ASCII)


def numbers(text: str, *, origin: str = "version") -> Numbers:
    """Read ``16.2``, ``v16.2`` or what an engine of this kind calls itself, ``v16.2 (Patroni 4.1.5)``.

    ``origin`` names the option the text came from. Raises ``BadInput`` for anything else.
    """
    if found := _FORM.fullmatch(text.strip()):
        return int(found[1]), int(found[2])
    raise BadInput(f"{origin}: {text!r} is not a PostgreSQL version. A version has two numbers: 16.2 or v16.2.")


def choose(wanted: str, there: Iterable[str], *, origin: str) -> str | None:
    """Which of the versions that are ``there`` is meant; of a major version (``16``) the newest.

    ``None`` where it is none of them. Raises ``BadInput`` for what is no version.
    """
    if major := _MAJOR.fullmatch(wanted.strip()):
        fitting = [version for version in there if numbers(version)[0] == int(major[1])]
    else:
        exactly = numbers(wanted, origin=origin)
        fitting = [version for version in there if numbers(version) == exactly]
    return max(fitting, key=numbers, default=None)


def why_not_from(old: str, new: str) -> str:
    """Why a node that runs ``old`` cannot be started with ``new``; empty where it can, also where ``new`` is older.

    Raises ``BadInput`` for what is no version.
    """
    before, after = numbers(old)[0], numbers(new)[0]
    if before == after:
        return ""
    return (
        f"PostgreSQL {new} cannot start with the data of {old}: another major version needs pg_upgrade; "
        f"give two versions of {before}, or two of {after}"
    )


def old_joins_final(old: str, new: str) -> bool:
    """Whether a new node of the old version may join: all minor versions have the same data and protocol.

    Raises ``BadInput`` for what is no version.
    """
    return not why_not_from(old, new)
