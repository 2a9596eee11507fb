"""What is told to a container, and what it answers."""

import subprocess
import time

import pytest

from clusters.errors import HarnessError
from clusters.substrates.kubernetes.orders import CLOCK, reading


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
