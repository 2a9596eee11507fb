"""What CI has no time for; ``tox -e quiet`` has it."""

import os

import pytest

QUIET = bool(os.environ.get("ROACHPROOF_QUIET"))

slow = pytest.mark.skipif(not QUIET, reason="takes long, as others like it: tox -e quiet runs them")


def examples(quiet: int) -> int:
    """How many examples of something slow: so many in ``tox -e quiet``, a third in CI, which has the same each time."""
    return quiet if QUIET else quiet // 3
