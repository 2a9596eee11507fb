"""What is told to a container, and what it answers."""

import subprocess
import time
from collections.abc import Mapping

import pytest

from clusters.errors import HarnessError
from clusters.substrates.kubernetes.commands import CLOCK, limits, reading


def test_the_clock_of_a_machine_is_read_as_it_is() -> None:
    before = time.time()
    done = subprocess.run(["/bin/sh", "-c", CLOCK], capture_output=True, text=True, check=True)
    told = reading(done.stdout, "n1")
    assert told.clock.startswith("boot ")
    assert before - 1 <= told.seconds <= time.time() + 1


@pytest.mark.parametrize("said", ["", "4f1c 1700000000.%N", "sh: date: not found"])
def test_what_is_no_time_is_said(said: str) -> None:
    with pytest.raises(HarnessError, match=r"the clock of n1 cannot be read .* image whose date knows"):
        reading(said, "n1")


@pytest.mark.parametrize(
    ("said", "has"),
    [
        ("50000 100000 67108864\n", {"cpus": 0.5, "memory_mib": 64.0}),
        ("max 100000 max", {}),
        ("-1 100000 9223372036854771712", {}),
        ("200000 100000 max", {"cpus": 2.0}),
    ],
    ids=["both", "none", "none, of the first version", "cores alone"],
)
def test_limits_are_those_of_the_control_group(said: str, has: Mapping[str, float]) -> None:
    assert limits(said, "n1") == has


@pytest.mark.parametrize("said", ["", "50000 100000", "cat: cpu.max: No such file", "many 100000 1"])
def test_what_are_no_limits_is_said(said: str) -> None:
    with pytest.raises(HarnessError, match="the limits of n1 cannot be read: "):
        limits(said, "n1")
