"""CockroachDB version numbers: parsing, printing and ordering by the rules of Semantic Versioning 2.0.0."""

import functools
import re
from dataclasses import dataclass

from clusters.errors import BadInput

_FORM = re.compile(
    r"v?(?P<major>\d{1,3})\.(?P<minor>\d{1,3})\.(?P<patch>\d{1,5})"
    r"(?:-(?P<pre>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
    r"(?:\+[0-9A-Za-z.-]+)?",
    re.ASCII,
)

_SERIES = re.compile(r"v?(\d{1,3})\.(\d{1,3})", re.ASCII)

Series = tuple[int, int]
"""The two numbers that name a major version: ``(24, 1)`` for v24.1."""


@functools.total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """One version, for instance ``v21.1.0-alpha.20210228``. A pre-release sorts before the release it leads to."""

    major: int
    minor: int
    patch: int
    pre: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, *, origin: str = "version") -> "Version":
        """Read ``v20.2.6``, ``20.2.6`` or a build tag such as ``v24.1.0-beta.1``.

        ``origin`` names the option or variable the text came from. Raises ``BadInput`` for anything else.
        """
        found = _FORM.fullmatch(text.strip())
        if found is None:
            raise BadInput(
                f"{origin}: {text!r} is not a CockroachDB version. A version has three numbers and perhaps a "
                "pre-release: v24.1.3, 24.1.3 or v24.2.0-beta.1; `latest` stands for the vendor's newest release."
            )
        pre = tuple((found["pre"] or "").split(".")) if found["pre"] else ()
        return cls(int(found["major"]), int(found["minor"]), int(found["patch"]), pre)

    @classmethod
    def first_of(cls, text: str) -> "Version":
        """Read a version, or a series such as ``v24.1``: what sorts before every build of it. Raises ``BadInput``."""
        series = _SERIES.fullmatch(text.strip())
        return cls(int(series[1]), int(series[2]), 0, ("0",)) if series else cls.parse(text)

    @property
    def series(self) -> Series:
        """The major version it belongs to, as the vendor counts: ``(20, 2)``."""
        return self.major, self.minor

    def __str__(self) -> str:
        suffix = f"-{'.'.join(self.pre)}" if self.pre else ""
        return f"v{self.major}.{self.minor}.{self.patch}{suffix}"

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        return self._key() < other._key()

    def _key(self) -> tuple[int, int, int, bool, tuple[tuple[bool, int, str], ...]]:
        """Numbers sort below words, and numerically; no pre-release sorts above every pre-release."""
        pre = tuple((not p.isdecimal(), int(p) if p.isdecimal() else 0, p) for p in self.pre)
        return self.major, self.minor, self.patch, not self.pre, pre
