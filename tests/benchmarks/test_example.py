"""How long the example of a claim of one's own takes: docs/extending/claim.md promises a reader a verdict in sight."""

import json
import sys
from pathlib import Path

from plugin.reports.result_files import RESULT_FILE
from tests.benchmarks.measuring import ROOT, Figure, used_by
from tests.benchmarks.test_collection import clean_environment
from tests.docs.extending.pages import example

MOST_S = 40.0
TIMEOUT_S = 300.0


def test_the_example_claim_ends_soon(tmp_path: Path, figures: list[Figure]) -> None:
    """On the control, by the run's own result; its sabotage aside."""
    for name, text in example("claim.md").items():
        (tmp_path / name).write_text(text)
    options = ("--catalogue", "claims.toml", "--engine", "postgres", "--run-dir", "run", "-k", "survive")
    argv = (sys.executable, "-m", "pytest", "-q", "-c", str(ROOT / "pyproject.toml"), "--rootdir", ".", *options)
    env = {**clean_environment(tmp_path), "ROACHPROOF_STATE": str(tmp_path / "state")}
    used = used_by((*argv, "test_orders.py"), cwd=tmp_path, env=env, timeout_s=TIMEOUT_S)
    (claim,) = json.loads((tmp_path / "run" / RESULT_FILE).read_text())["claims"]
    figures.append(
        Figure(
            what="the example of a claim of one's own, on the control",
            promised=f"≤ {MOST_S:.0f} s",
            measured=f"{claim['seconds']:.0f} s; {used.wall_s:.0f} s with pytest's start and the reports",
            kept=claim["seconds"] <= MOST_S,
            how="once; its own result.json",
            raw=json.dumps(claim),
        )
    )
    assert claim["outcome"] == "pass"
    assert claim["seconds"] <= MOST_S
