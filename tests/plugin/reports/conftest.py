"""The fixture ``chromium``; tests that ask for it are skipped where there is none."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.plugin.reports.browser import NoBrowserError, headless


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A headless Chromium."""
    with ExitStack() as stack:
        try:
            browser = stack.enter_context(headless())
        except NoBrowserError as missing:
            pytest.skip(f"looks at a page in a browser: {missing}")
        yield browser
