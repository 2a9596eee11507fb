"""What the nodes logged around the faults of a trial: bounded, and without secrets."""

import datetime
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from plugin.counts import number_of
from plugin.evidence.logs import LOGS
from plugin.evidence.redaction import redacted

Window = tuple[float, float]  # from and to, in seconds since 1970

BEFORE_S, AFTER_S = 5.0, 15.0  # how much is shown before a fault begins and after it is over
MOST_LINES = 300  # of one file; of more lines the first half and the last are kept
MOST_CHARACTERS = 2000  # of one line
MOST_FILES = 4
MOST_NODES = 15
MOST_READ = 64 << 20  # bytes read of one file, from its end
_SKIPPED = re.compile(r"pebble|health|sql-auth|pprof|heap|goroutine|memstats|memprof|cpuprof", re.IGNORECASE)
_STAMPS = (
    # I261121 12:50:51.424134 750 server/node.go …
    (re.compile(r"[IWEF](\d{2})(\d{2})(\d{2}) (\d{2}):(\d{2}):(\d{2})"), 2000),
    # 2026-11-21 15:24:07,627 INFO: …
    (re.compile(r"(\d{4})-(\d{2})-(\d{2})[ T](\d{2}):(\d{2}):(\d{2})"), 0),
)


def around(directory: Path, windows: Sequence[Window]) -> Iterator[tuple[str, str]]:
    """Each node below ``logs/`` of a trial, and what it logged then; where no time is known, the ends of its files."""
    home = directory / LOGS
    for node in sorted(home.iterdir())[:MOST_NODES] if home.is_dir() else ():
        told = [_told(file, windows) for file in _files(node)] if node.is_dir() else []
        if any(told):
            yield node.name, redacted("\n".join(filter(None, told)))


def _files(node: Path) -> list[Path]:
    """The files worth reading, the largest first; one that goes by several names is read once."""
    found = {
        path.resolve(): path
        for path in sorted(node.rglob("*"))
        if path.is_file() and path.suffix in (".log", ".txt") and not _SKIPPED.search(path.name)
    }
    return sorted(found.values(), key=lambda path: -path.stat().st_size)[:MOST_FILES]


def _told(file: Path, windows: Sequence[Window]) -> str:
    try:
        kept, whole = _lines(file, windows)
    except OSError as error:
        return f"== {file.name}: cannot be read ({error.strerror})\n"
    if not kept:
        return ""
    where = "around the faults" if whole else "its last lines"
    return f"== {file.name}, {where}\n" + "".join(kept)


def _lines(file: Path, windows: Sequence[Window]) -> tuple[list[str], bool]:
    """The lines to be shown, and whether they are those of the windows; else they are the file's last."""
    local = datetime.datetime.now().astimezone().utcoffset()
    with file.open(encoding="utf-8", errors="replace") as lines:
        begin = max(0, file.stat().st_size - MOST_READ)
        for zone in dict.fromkeys((0.0, local.total_seconds() if local else 0.0)) if windows else ():
            lines.seek(begin)
            if kept := _bounded(_within(lines, [(since + zone, until + zone) for since, until in windows])):
                return kept, True
        lines.seek(begin)
        return [_cut(line) for line in deque(lines, maxlen=MOST_LINES)], False


def _within(lines: Iterable[str], windows: Sequence[Window]) -> Iterator[str]:
    """Lines whose time is in a window, and those without a time that follow one."""
    inside = False
    for line in lines:
        at = _time(line)
        if at is not None:
            inside = any(begin - BEFORE_S <= at <= end + AFTER_S for begin, end in windows)
        if inside:
            yield _cut(line)


def _cut(line: str) -> str:
    return line if len(line) <= MOST_CHARACTERS else f"{line[:MOST_CHARACTERS]}…\n"


def _bounded(lines: Iterator[str]) -> list[str]:
    first = list(islice(lines, MOST_LINES // 2))
    last: deque[str] = deque(maxlen=MOST_LINES // 2)
    left_out = sum(1 for _ in map(last.append, lines)) - len(last)
    return [*first, *([f"… {number_of(left_out, 'lines')} left out …\n"] if left_out else []), *last]


def _time(line: str) -> float | None:
    """When a line was written, its clock taken for UTC."""
    for stamp, century in _STAMPS:
        if found := stamp.match(line):
            year, month, day, hour, minute, second = map(int, found.groups())
            with suppress(ValueError):
                return datetime.datetime(
                    year + century, month, day, hour, minute, second, tzinfo=datetime.UTC
                ).timestamp()
    return None
