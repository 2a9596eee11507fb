"""What the audit can find wrong, how it is counted, and how it is told."""

from collections.abc import Mapping
from dataclasses import dataclass

CATEGORIES: Mapping[str, str] = {
    "lost": "acknowledged, or already seen by a read, and absent in the final read",
    "duplicated": "found more than once in the final read",
    "phantom": "never attempted, or attempted and certainly failed, and yet there",
    "altered": "with a content that nobody wrote",
    "revived": "deleted, or overwritten, and back in the final read",
    "stale": "missing or old in a read that began after a newer state was acknowledged or read",
    "torn": "half of a pair that was written in one transaction",
    "unreadable": "acknowledged, in a bucket that could not be read within the recovery limit",
    "unknown": "acknowledged, in a bucket that was never finally read: nothing is known of it",
}
"""Each way in which a row can be wrong, in words. All but ``unknown`` violate what the database promises."""

EXAMPLES = 5
"""So many findings of a category are told in words; all are counted."""

MOST_PROBLEMS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """How many rows came out in a category, and the first few in words."""

    count: int = 0
    examples: tuple[str, ...] = ()


class Findings:
    """Collects findings: each row counts once in a category, however often it is seen there.

    ``keys`` marks rows of the ledger in a byte a key and a bit a category (``grow`` makes room); rows that the ledger
    never wrote are kept by name.
    """

    def __init__(self) -> None:
        self._counts = dict.fromkeys(CATEGORIES, 0)
        self._examples: dict[str, list[str]] = {name: [] for name in CATEGORIES}
        self._bits = {name: 1 << index for index, name in enumerate(n for n in CATEGORIES if n != "unknown")}
        self._bits["unknown"] = self._bits["unreadable"]
        self._marks = bytearray()
        self._aliens: set[tuple[int, str]] = set()
        self.problems: list[str] = []
        self.problem_count = 0

    def grow(self, size: int) -> None:
        """Make room for keys below ``size``."""
        self._marks.extend(bytes(size - len(self._marks)))

    def found(self, category: str, key: int, text: str) -> None:
        """Count the row in the category, unless it is there already."""
        if 0 <= key < len(self._marks):
            bit = self._bits[category]
            if self._marks[key] & bit:
                return
            self._marks[key] |= bit
        elif (key, category) in self._aliens:
            return
        else:
            self._aliens.add((key, category))
        self._counts[category] += 1
        if len(self._examples[category]) < EXAMPLES:
            self._examples[category].append(text)

    def problem(self, text: str) -> None:
        """Note that the records contradict themselves, so that nothing derived from them can be relied on."""
        self.problem_count += 1
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(text)

    def findings(self) -> Mapping[str, Finding]:
        """All categories with what was found in each."""
        return {name: Finding(count=self._counts[name], examples=tuple(self._examples[name])) for name in CATEGORIES}


def seconds(t: int) -> str:
    """A time of the timeline in words."""
    return f"{t / 1e6:.1f} s"
