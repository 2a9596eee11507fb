"""Runs a claim, and so imports what runs of pytest do; the server that ``forked.py`` forks from imports it once."""

import contextlib
import gc
import os
import tempfile
from pathlib import Path

import pytest

from tests.plugin.conftest import CATALOGUE, TESTS, options


def _run_a_claim() -> None:
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST"):
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as place, (Path(place) / "out.txt").open("w") as out:
        path = Path(place)
        (path / "claims.toml").write_text(CATALOGUE)
        (path / "test_preloaded.py").write_text(TESTS)
        with contextlib.chdir(path), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            pytest.main(
                [*options(path), "--catalogue", "claims.toml", "--run-dir", "out", "test_preloaded.py::test_passes"]
            )


_run_a_claim()
gc.collect()
gc.freeze()  # or each run would look at all of it again, and have a copy of it
