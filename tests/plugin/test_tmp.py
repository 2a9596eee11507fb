import pytest
@pytest.mark.parametrize("name", ["passes","refuted","inconclusive","harness","harness_in_setup","late_harness","node_died_in_a_group","unjudged","skipped","bad_input","crash","sabotage","blunt_sabotage","unproven_sabotage","ordinary","ordinary_failure"])
def test_x(gate, name):
    for ran in ([gate(*gate.tests(name), "-n","2")] if name=="crash" else gate.both(*gate.tests(name))):
        print("=====", name, ran.status); print(ran.text)
