"""The mark of tests that CI has no time for; ``tox -e quiet`` runs them."""

import os

import pytest

slow = pytest.mark.skipif(
    not os.environ.get("ROACHPROOF_QUIET"),
    reason="takes one to two minutes, as others like it: tox -e quiet runs them",
)
