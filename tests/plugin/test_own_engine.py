"""An engine of somebody's own, registered by one line of a ``conftest.py``."""

from tests.plugin.conftest import Gate

REGISTERED = "from clusters.engines import ENGINES\nENGINES.modules['toy'] = 'tests.clusters.engines.toy'\n"


def test_a_run_takes_it_for_a_control(gate: Gate) -> None:
    (gate.path / "conftest.py").write_text(REGISTERED)
    ran = gate(*gate.tests("passes"), "--engine", "toy")
    assert ran.status == 0, ran.text
    assert ran.lines[0] == "CONTROL RUN on Toy: it says nothing about CockroachDB."
