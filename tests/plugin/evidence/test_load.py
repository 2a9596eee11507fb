"""What of a trial's files nobody could have written is refused or left out, and stops no judge."""

import json
from pathlib import Path
from typing import Any

import pytest

from clusters.errors import BadInput
from plugin.evidence.events import SabotageExpected, TrialEnd
from plugin.evidence.load import HOST, describe_trial, load_trial
from plugin.evidence.store import TRIAL_FILE, TrialStore, seal
from plugin.judge.trial import HostSecond

DESCRIBED: dict[str, Any] = {
    "claim": "survivability", "parameters": {"inserts": 2000}, "profile": "laptop", "seed": 1, "context": {},
    "checks": [], "needs": [], "tuned": [], "buckets": 3,
}  # fmt: skip


def trial(directory: Path, **changes: Any) -> Path:
    store = TrialStore(directory / "trial", {**DESCRIBED, **changes})
    store.close()
    return store.directory


@pytest.mark.parametrize(
    "change",
    [
        {"buckets": "three"},
        {"buckets": 10**25},
        {"buckets": None},
        {"seed": "1"},
        {"context": {"engine": ["cockroach"]}},
        {"needs": [["integrity"]]},
        {"tuned": [1]},
        {"checks": ["lost"]},
        {"fingerprint": "v24.1.3"},
        {"sides": {"old": "v24.1.3"}},
    ],
    ids=str,
)
def test_a_description_that_nobody_could_have_written_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    home = trial(tmp_path, **change)
    with pytest.raises(BadInput, match=f"not the description of a trial .*{next(iter(change))}"):
        describe_trial(home)


def test_a_description_of_before_ranges_were_counted_is_read(tmp_path: Path) -> None:
    home = trial(tmp_path)
    described = json.loads((home / TRIAL_FILE).read_text())
    del described["buckets"]
    (home / TRIAL_FILE).write_text(json.dumps(described))
    assert load_trial(home, describe_trial(home)).buckets == 0


def test_what_was_recorded_of_the_machine_is_read_back(tmp_path: Path) -> None:
    home = trial(tmp_path)
    used = {"cpu_percent": 40, "others_percent": 3, "disk_stalled_percent": 5.5, "network_percent": 70}
    (home / HOST).write_text(json.dumps({"t": 5, **used}) + "\n")
    assert load_trial(home, describe_trial(home)).host == [HostSecond(5, 40.0, 3.0, 5.5, None, 70.0)]


@pytest.mark.parametrize(
    "line",
    ["[]", "null", "5", '{"t": 1e999, "cpu_percent": 1}', '{"t": null, "cpu_percent": 1}', '{"t": 1}', '{"t": 1, "cpu'],
)
def test_a_line_that_is_no_second_of_the_host_is_left_out_and_told(line: str, tmp_path: Path) -> None:
    home = trial(tmp_path)
    (home / HOST).write_text(f'{{"t": 5, "cpu_percent": 40}}\n{line}\n{{"t": 9, "cpu_percent": 50}}\n')
    found = load_trial(home, describe_trial(home))
    assert found.host == [HostSecond(5, 40.0), HostSecond(9, 50.0)]
    (problem,) = found.host_problems
    assert problem.startswith(f"{HOST}: line 2: ")
    assert problem.endswith("is no second of the host")


def test_of_the_host_s_record_times_that_run_backwards_are_told(tmp_path: Path) -> None:
    home = trial(tmp_path)
    lines = [f'{{"t": {t}, "cpu_percent": 40}}\n' for t in (1_000_000, 2_000_000, 3_000_000)]
    for written, problems in (
        (lines, ()),
        ([*lines, "# 3 lines, CRC-32 00000000\n"], ()),
        ([*lines, lines[0][:9]], ()),
        ([*reversed(lines)], (f"{HOST}: 2.0 s after 3.0 s, times run backwards",)),
    ):
        (home / HOST).write_text("".join(written))
        assert load_trial(home, describe_trial(home)).host_problems == problems


@pytest.mark.parametrize("sabotage", [True, False])
def test_a_claim_s_trial_names_nothing_that_a_sabotage_must_come_to(sabotage: bool, tmp_path: Path) -> None:
    store = TrialStore(tmp_path / "trial", {**DESCRIBED, "sabotage": sabotage})
    store.event(SabotageExpected(metrics=["lost"]))
    store.event(TrialEnd())
    store.close()
    seal(store.directory)
    problems = load_trial(store.directory, describe_trial(store.directory)).problems
    assert [problem for problem in problems if "says that it is no sabotage" in problem] == list(problems)
    assert bool(problems) is not sabotage
