"""``--claims``: a table that fits any terminal, and with ``-v`` everything that the catalogue says of each claim."""

from tests.plugin.conftest import Gate


def test_the_table_says_what_runs_here_and_how_long_each_suite_takes(gate: Gate) -> None:
    ran = gate("--claims", "--engine=postgres", catalogue=False)
    assert ran.status == 0, ran.text
    lines = ran.text.splitlines()
    assert max(map(len, lines)) <= 80, max(lines, key=len)
    rows = {line.split()[0]: line for line in lines if " yes [" in line or " no [" in line}
    assert {"survivability", "hot-swap", "tenancy"} <= rows.keys()
    title = next(line for line in lines if line.startswith("claim "))
    gate_at, here_at = title.index("gate"), title.index("here")
    assert rows["survivability"][gate_at:].startswith("65 s ")
    assert rows["survivability-pause"][gate_at:].startswith("- ")
    reasons = dict(line[1:].split("] ", 1) for line in lines if line.startswith("["))
    assert reasons[rows["survivability"][here_at:].removeprefix("yes [")[:-1]] == "can be evaluated here"
    assert reasons[rows["rebalance"][here_at:].removeprefix("no [")[:-1]].startswith("not evaluated: postgres on")
    planned = lines[next(i for i, line in enumerate(lines) if line.startswith("planned, not built")) :]
    assert any(line.startswith("adversity ") for line in planned)
    assert "adversity" not in rows
    ready = sum(" yes [" in line for line in lines)
    assert f"{len(rows) + 3} claims, {ready} can be evaluated here: gate " in ran.text


def test_with_v_each_claim_is_told_in_full(gate: Gate) -> None:
    told = gate("--claims", "-v", "--engine=postgres", catalogue=False).text
    assert max(map(len, told.splitlines())) <= 80
    assert "  claim    A node that is drained and stopped in good order loses nothing" in told
    assert "  source   thesis, 5.4 (RQ4), table 5.6 (Kristina Håkansson and Andreas" in told
    assert "Blekinge Institute of Technology, 2021; http://urn.kb.se/" in " ".join(told.split())
    assert "  gate     about 65 s, 1200 MiB of disk" in told
    assert "  here     not evaluated: its test is planned, not written yet" in told
    assert "  suites   gate 65 s, nightly 10 min, paper 33 min" in told
    built, planned = told.split("\nplanned, not built\n")
    assert "\ntenancy-growth\n" in built
    assert planned.startswith("adversity\n")


def test_chosen_claims_alone_are_listed(gate: Gate) -> None:
    chosen = ["--claim", "survivability*", "--claim", "tenancy", "--suite", "nightly"]
    table = gate("--claims", *chosen, "--engine=postgres", catalogue=False)
    assert table.status == 0
    rows = [line.split()[0] for line in table.lines if " yes [" in line]
    kinds = ("", "-disk-lost", "-pause", "-drain", "-quorum")
    assert rows == [*(f"survivability{kind}" for kind in kinds), "tenancy"]
    assert "7 claims, 6 can be evaluated here" in table.text
    assert "planned" not in table.text
    assert "planned" not in gate("--claims", "-v", *chosen, "--engine=postgres", catalogue=False).text


def test_what_is_said_of_a_version_fits_too(gate: Gate) -> None:
    gate.fake_cockroach("v99.1.3")
    told = gate("--claims", "--cockroach-version", "v99.1.3", "--cockroach-version", "v99.1.4", catalogue=False).text
    assert "engine: cockroach v99.1.3" in told
    assert "v99.1.4 is not in the cache" in " ".join(told.split())
    assert max(map(len, told.splitlines())) <= 80, max(told.splitlines(), key=len)
