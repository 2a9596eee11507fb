"""Counts: added up by kind, and in words, where one of a thing is told in the singular."""

from collections.abc import Iterable, Mapping

_VERBS = {"are": "is", "were": "was", "have": "has", "do": "does", "lie": "lies"}


def added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Counts of the same kinds added up, those that are 0 left out."""
    total: dict[str, int] = {}
    for each in counts:
        for kind, count in each.items():
            if count:
                total[kind] = total.get(kind, 0) + count
    return total


def number_of(number: float | str, things: str) -> str:
    """``1 row``, ``2 rows``; a verb behind the plural goes with it: ``1 row is``, ``2 rows are``."""
    return f"{number} {noun(number, things)}"


def noun(number: float | str | None, things: str) -> str:
    """The things without their number. Units of measure that are no words (``ms``) are the same for one."""
    if str(number) not in ("1", "1.0"):
        return things
    if things.startswith("more "):
        return f"more {noun(number, things.removeprefix('more '))}"
    name, *rest = things.split(" ", 2)
    verb = [_VERBS.get(word, word) for word in rest[:1]]
    return " ".join([_single(name), *verb, *rest[1:]])


def _single(name: str) -> str:
    if not name.endswith("s") or len(name) < 4:
        return name
    if name.endswith("ies"):
        return f"{name[:-3]}y"
    return name[:-2] if name.endswith(("sses", "ches", "xes")) else name[:-1]
