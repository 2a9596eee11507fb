"""Secrets that a run is given elsewhere than in its environment: who reads one tells it before it uses it.

Who hides them (``plugin.evidence.redaction``) says so at the session's start; nothing here knows how that is done.
"""

from collections.abc import Callable, Mapping

_HIDING: list[Callable[[Mapping[str, str]], None]] = []


def heard_by(hide: Callable[[Mapping[str, str]], None]) -> None:
    """Have this one told of secrets, in the place of any earlier one."""
    _HIDING[:] = [hide]


def tell(values: Mapping[str, str]) -> None:
    """Say what was read, by name, as an environment has it: names, and those inside JSON, tell what is a secret."""
    for hide in _HIDING:
        hide(values)
