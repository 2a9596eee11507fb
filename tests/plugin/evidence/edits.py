"""Single edits of evidence files, drawn at random: of characters, of words, of lines, and of the values in JSON."""

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from math import inf, nan
from pathlib import Path
from random import Random
from typing import Any

STRANGE = (
    "", "null", "true", "-1", "1e999", "NaN", "9" * 25, "0.5", '"x"', "[]", "{}", "n9", "pass", "expected", "\x00",
)  # fmt: skip
"""What a word or a number of a line becomes."""

VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 10**25, 0.5, nan, inf, -inf, 1e308, "", "x", "9" * 25, [], {}, [None], [[]], [10**25],
    {"x": None}, {"x": 1},
)  # fmt: skip
"""What a value of JSON becomes."""


def drop(lines: list[str], random: Random) -> None:
    del lines[random.randrange(len(lines))]


def double(lines: list[str], random: Random) -> None:
    at = random.randrange(len(lines))
    lines.insert(at, lines[at])


def swap(lines: list[str], random: Random) -> None:
    at, other = random.randrange(len(lines)), random.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]


def cut(lines: list[str], random: Random) -> None:
    at = random.randrange(len(lines))
    lines[at:] = [lines[at][: random.randrange(len(lines[at]))]]


def change_character(lines: list[str], random: Random) -> None:
    at = random.randrange(len(lines))
    place = random.randrange(len(lines[at]))
    lines[at] = lines[at][:place] + random.choice('0123456789-,.:"{}[]\t\nnulIOFUé') + lines[at][place + 1 :]


def change_word(lines: list[str], random: Random) -> None:
    at = random.randrange(len(lines))
    found = random.choice([*re.finditer(r"[\w.]+", lines[at])] or [re.match("", lines[at])])
    begin, end = found.span() if found else (0, 0)
    lines[at] = lines[at][:begin] + random.choice(STRANGE) + lines[at][end:]


def change_value(lines: list[str], random: Random) -> None:
    """A value in the JSON of a line, or of the whole file, becomes another one, goes, or changes its name."""
    at = random.randrange(len(lines))
    for part in (slice(None), slice(at, at + 1)):
        try:
            found = json.loads("".join(lines[part]))
        except ValueError:
            continue
        end = "\n" if lines[part][-1].endswith("\n") else ""
        lines[part] = (json.dumps(_changed(found, random)) + end).splitlines(keepends=True)
        return
    change_word(lines, random)


def _changed(value: Any, random: Random) -> Any:
    """The value with one change in it; each thing that it holds is as likely as the next."""
    places = [*_places(value)]
    if not places:
        return random.choice(VALUES)
    holder, key = random.choice(places)
    how = random.random()
    if how < 0.15:
        del holder[key]
    elif how < 0.25 and isinstance(holder, dict):
        holder[random.choice(["", "x", f"{key}x"])] = holder.pop(key)
    elif how < 0.35:
        other, there = random.choice(places)
        holder[key] = deepcopy(other[there])
    else:
        holder[key] = random.choice(VALUES)
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a value, at any depth: what holds it, and its key there."""
    if isinstance(value, dict | list):
        for key, held in value.items() if isinstance(value, dict) else enumerate(value):
            yield value, key
            yield from _places(held)


EDITS = (drop, double, swap, cut, change_character, change_word, change_word, change_value, change_value, change_value)

REMOVED = 0.1
"""The share of edits that remove a file."""


def edit(directory: Path, random: Random) -> str:
    """One edit of one file of a trial or a run, or its removal, and what it was.

    Kinds of files are as likely as each other, however many or long they are.
    """
    kinds: dict[str, list[Path]] = {}
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        kinds.setdefault(path.name.partition("-")[0], []).append(path)
    file = random.choice(random.choice([*kinds.values()]))
    if random.random() < REMOVED:
        file.unlink()
        return f"{file.name} removed"
    lines = file.read_text().splitlines(keepends=True)
    how = random.choice(EDITS)
    how(lines, random)
    file.write_text("".join(lines))
    return f"{how.__name__} in {file.name}"
