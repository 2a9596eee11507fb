"""The options: one group of help, and for each value that cannot be used a refusal that says what to give instead."""

import json
import re

import pytest

from plugin.reports.result_files import SUMMARY_FILE
from tests.clusters.misbehaving import serving
from tests.plugin.conftest import Gate, Ran

OPTIONS = [
    "--engine", "--substrate", "--allow-disruption", "--generators", "--generator-image",
    "--topology", "--profile", "--suite", "--claim",
    "--default-keyword", "--catalogue", "--objects", "--tenant-template", "--plan",
    "--cockroach", "--cockroach-version", "--cluster-setting", "--postgres-version",
    "--run-dir", "--seed", "--keep", "--dry-run", "--claims", "--judge",
    "--sign", "--signed-by", "--report", "--micro-turns",
]  # fmt: skip


def test_help_lists_every_option_once_in_one_group(gate: Gate) -> None:
    ran = gate("--help", catalogue=False)
    assert ran.status == 0
    group = re.search(r"^Roachproof: .*\n((?:  .*\n)+)", ran.text, re.MULTILINE)
    assert group, ran.text
    assert re.findall(r"^  (--[a-z-]+)", group[1], re.MULTILINE) == OPTIONS
    for option in OPTIONS:
        assert len(re.findall(rf"^  {option}\b(?!-)", ran.text, re.MULTILINE)) == 1
    markers = gate("--markers", catalogue=False).text
    for marker in ("claim(id)", "sabotage(id", "topology(name", "hardware(profile)"):
        assert markers.count(f"@pytest.mark.{marker}") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--engine", "oracle"), ["--engine oracle: is unknown", "there are auto, cockroach, postgres"]),
        (("--engine", "cockroch"), ["--engine cockroch: is unknown", "did you mean 'cockroach'?"]),
        (("--allow-disruption",), ["--allow-disruption: clusters of processes are Roachproof's own; leave it out"]),
        (
            ("--substrate", "adopted", "--engine", "postgres"),
            ["--engine postgres: is not taken over", "--engine cockroach"],
        ),
        (
            ("--generators", "2"),
            [
                "--generators 2: processes has no load generators of its own",
                "or give --substrate kubernetes or adopted",
            ],
        ),
        (
            ("--substrate", "adopted", "--engine", "cockroach", "--generators", "2"),
            ["--generators: 2 load generators and no image for them", "give --generator-image"],
        ),
        (("--generator-image", "suite:1"), ["--generator-image suite:1: processes has no load generators"]),
        (("--generators", "-1"), ["--generators -1: must be from 0 to 1000"]),
        (("--substrate", "kubernetes", "--generators", "1001"), ["--generators 1001: must be from 0 to 1000"]),
        (
            ("--substrate", "kubernetes", "--generators", "2"),
            ["--generators: 2 load generators and no image for them", "give --generator-image", "or --generators 0"],
        ),
        (
            ("--substrate", "kubernetes", "--profile", "large"),
            ["profile large: 2 load generators and no image for them", "give --generator-image"],
        ),
        (
            ("--substrate", "kubernetes", "--generators", "0", "--generator-image", "suite:1"),
            ["--generator-image suite:1: there are none with --generators 0"],
        ),
        (("--substrate", "moon"), ["--substrate moon: is unknown", "there are adopted, kubernetes, processes"]),
        (("--suite", "weekly"), ["--suite", "'weekly'", "choose from", "gate", "nightly", "paper", "curve"]),
        (("--claims", "--judge", "out"), ["--claims and --judge exclude each other", "give one of them"]),
        (("--dry-run", "--judge", "out"), ["--judge and --dry-run exclude each other", "give one of them"]),
        (("--claim", "answer", "--judge", "out"), ["--judge and --claim exclude each other", "with all of its claims"]),
        (("--keep=running", "--judge", "out"), ["--judge and --keep exclude each other", "leave one of them out"]),
        (("--seed", "0", "--judge", "out"), ["--judge and --seed exclude each other"]),
        (
            ("--signed-by", "key.pub"),
            ["--signed-by: says who must have signed a stored run", "with --judge, or --sign"],
        ),
        (("--claims", "--claim", "survivabilty"), ["no claim is called so; did you mean 'survivability'?"]),
        (("--keep=forever",), ["--keep", "'forever'", "(choose from 'stores', 'running')"]),
        (
            ("--keep=running",),
            ["--keep running: leaves the cluster of one test up", "asks for the fixture cluster, by its node id"],
        ),
        (
            ("--keep=running", "test_claims.py::test_passes"),
            ["the one that will run here, test_passes, has no cluster of its own", "asks for the fixture cluster"],
        ),
        (("--keep=running", "--substrate", "kubernetes"), ["--keep running: not to be had on kubernetes; give --keep"]),
        (("--seed", "seven"), ["--seed", "'seven'", "int"]),
        (("--micro-turns", "0"), ["--micro-turns 0", "at least 1", "leave it out"]),
        (("--seed", "-1"), ["--seed -1", "from 0 to 2147483647", "leave it out"]),
        (("--seed", "2147483648"), ["--seed 2147483648", "from 0 to 2147483647", "leave it out"]),
        (("--profile", "lapdog"), ["--profile", "'lapdog' is unknown", "did you mean 'laptop'?"]),
        (("--topology", "nowhere"), ["--topology", "'nowhere' is unknown", "nine-in-three-zones", ".toml"]),
        (("--catalogue", "none.toml"), ["none.toml", "cannot be read", "No such file", "check the path"]),
        (("--objects", "nowhere"), ["--objects", "nowhere: is no directory", "give one with files of checks"]),
        (
            ("--tenant-template", "a.toml"),
            ["--tenant-template", "a.toml: none of these tests has tenants", "leave it out"],
        ),
        (("--run-dir", "claims.toml"), ["claims.toml", "cannot be written", "give another with --run-dir DIR"]),
        (("--cockroach", "a", "--cockroach-version", "v24.1.3"), ["--cockroach and --cockroach-version", "not both"]),
        (
            ("--engine", "postgres", "--cockroach", "a"),
            ["--engine postgres runs no CockroachDB", "leave out --cockroach, or give --engine cockroach"],
        ),
        (
            ("--postgres-version", "16.2"),
            ["--engine cockroach runs no PostgreSQL", "leave out --postgres-version, or give --engine postgres"],
        ),
        (
            ("--engine", "auto", "--postgres-version", "16.2"),
            ["--engine auto may run no PostgreSQL", "leave out --postgres-version, or give --engine postgres"],
        ),
        (
            ("--engine", "postgres", "--postgres-version", "16.3"),
            ["--postgres-version 16.3: neither the installed packages nor ", "16.14, 18.4"],
        ),
        (
            ("--suite", "gate", "--cockroach", "none"),
            ["--cockroach: ", "none: no such file", "name an existing program"],
        ),
        (("--cluster-setting", "a.b"), ["--cluster-setting a.b: is not of the form NAME=VALUE"]),
        (
            ("--engine", "postgres", "--cluster-setting", "a.b=1"),
            ["--cluster-setting a.b=1: is of CockroachDB; leave it out, or give --engine cockroach"],
        ),
        (
            ("--cluster-setting", "a.b=1", "--cluster-setting", "a.b=2"),
            ["--cluster-setting a.b: is given twice, 1 and 2; leave one out"],
        ),
        (
            ("--cluster-setting", "a.b=1", "--substrate", "adopted"),
            ["--cluster-setting a.b=1: a cluster that is there already keeps its own settings; leave it out"],
        ),
        (("--cockroach-version", ""), ["--cockroach-version: is empty", "or leave it out"]),
        (("--cockroach-version", "v24.1.3", "--cockroach-version", " "), ["--cockroach-version: is empty"]),
        (("--cockroach", ""), ["--cockroach: is empty", "name what is to be tested, or leave it out"]),
        (("--engine", "postgres", "--postgres-version", ""), ["--postgres-version: is empty"]),
        (
            ("--dry-run", "--cockroach-version", "newish"),
            ["--cockroach-version: 'newish'", "three numbers", "v24.1.3"],
        ),
        (
            ("--dry-run", "--cockroach-version", "v24.1.3"),
            [
                "--cockroach-version v24.1.3: it is not in the cache",
                "and the checksum of CockroachDB v24.1.3: http://127.0.0.1:1",
                "can't be reached",
                "--cockroach PATH",
            ],
        ),
        (("--dry-run", "--cockroach", "none"), ["none: no such file", "name an existing program"]),
        (("--dry-run", "--engine", "postgres", "--postgres-version", "9.1"), ["9.1"]),
        (
            ("--suite", "gate", "--cockroach-version", "newish"),
            ["--cockroach-version: 'newish'", "three numbers", "v24.1.3"],
        ),
    ],
    ids=lambda value: "-".join(value)[:40].replace("/", "") if isinstance(value, tuple) else "",
)
def test_a_value_that_cannot_be_used(gate: Gate, arguments: tuple[str, ...], said: list[str]) -> None:
    """It exits with 4, and the message names option, value, constraint and way out."""
    ran = gate(*gate.tests("passes"), *arguments)
    assert ran.status == 4, ran.text
    (message,) = re.findall(r"^ERROR: .*(?:\n.*)*", ran.text, re.MULTILINE)
    for words in said:
        assert words in message
    for unwanted in ("Traceback", "INTERNALERROR", "passed"):
        assert unwanted not in ran.text
    assert not (gate.path / ".roachproof").exists()


def test_versions_may_be_repeated_and_are_followed_by_paths(gate: Gate) -> None:
    """Each of them is tested; a version that is given twice is told apart by a number; a path after it is none."""
    for version in ("v24.1.3", "v24.2.0"):
        gate.fake_cockroach(version)
    (gate.path / "test_it.py").write_text(
        "import pytest\n@pytest.mark.claim('answer')\nasync def test_it(target, judge):\n"
        "    judge.measure('answer', 42)\n    assert judge.decide()\n"
    )
    versions = [word for name in ("v24.1.3", "v24.2.0", "v24.1.3") for word in ("--cockroach-version", name)]
    ran = gate(*versions, "test_it.py", "-v", "--run-dir", "out", "--suite", "gate")
    assert sorted(re.findall(r"test_it\[(\S+)\] PASSED", ran.text)) == ["v24.1.3#1", "v24.1.3#2", "v24.2.0"]
    assert len(gate.trials) == 3
    assert "testing cockroach v24.1.3" in ran.text


def test_the_control_is_tested_at_each_version_that_is_asked_for(gate: Gate) -> None:
    """What names tests and directories is the version as it was asked for, without what else it calls itself."""
    (gate.path / "test_it.py").write_text(
        "import pytest\n@pytest.mark.claim('answer')\nasync def test_it(engine, trial, judge):\n"
        "    trial.know(found=engine.version)\n    judge.measure('answer', 42)\n    assert judge.decide()\n"
    )
    versions = [word for name in ("16.2", "16.14", "16") for word in ("--postgres-version", name)]
    ran = gate("--engine", "postgres", *versions, "test_it.py", "-v", "--run-dir", "out")
    assert sorted(re.findall(r"test_it\[(\S+)\] PASSED", ran.text)) == ["16", "16.14", "16.2"], ran.text
    found = {trial.name: json.loads((trial / "trial.json").read_text())["found"] for trial in gate.trials}
    assert all(re.fullmatch(r"v16\.(2|14) \(Patroni [0-9.]+\)", version) for version in found.values())
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in found)
    assert sorted(version.partition(" ")[0] for version in found.values()) == ["v16.14", "v16.14", "v16.2"]


@pytest.mark.parametrize("given", ["binary", "none"])
def test_a_suite_says_in_its_header_what_it_tests(gate: Gate, given: str) -> None:
    """Asked for by name, the database is looked for before anything is collected, with workers and without."""
    if given == "binary":
        gate.fake_cockroach("v24.1.3")
    for ran in gate.both(*gate.tests("ordinary"), "--suite", "gate"):
        if given == "binary":
            assert ran.status == 6, "no claim of the suite was collected"
            header = ran.text.partition("1 item")[0]
            assert header.count("testing cockroach v24.1.3, newest in the cache") == 1
            assert "REQUIRED AND NOT DECIDED: answer" in ran.text
        else:
            assert ran.status == 4
            assert ran.text.count("ERROR: no CockroachDB to test.") == 1
            assert "--cockroach PATH names a binary" in ran.text
            assert "passed" not in ran.text
    if given == "none":
        assert gate(*gate.tests("ordinary")).status == 0, "ordinary tests look for nothing"
        assert gate("--suite", "gate", "--dry-run", *gate.tests("passes")).status == 0, "nor does a plan"


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["plain", "workers"])
def test_auto_passes_over_no_binary_that_was_named(
    gate: Gate, workers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COCKROACH_BINARY", str(gate.path / "claims.toml"))
    ran = gate(*gate.tests("passes"), "--engine", "auto", *workers)
    assert ran.status == 4, ran.text
    assert f"ERROR: COCKROACH_BINARY: {gate.path}/claims.toml: not executable" in ran.text
    assert "CONTROL RUN" not in ran.text
    assert "passed" not in ran.text


LATE = """
from itertools import count

from clusters.engines.cockroach import binary

download = binary.download
binary.download = lambda *given: download(*given, clock=count(step=61).__next__)
"""
"""Each look at the clock of a download is more than a minute after the one before."""


def test_auto_does_not_wait_for_a_download_that_nobody_asked_for(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs the control, and says how to have CockroachDB; asked for it waits for as long as it takes."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    (gate.path / "conftest.py").write_text(LATE)
    with serving() as server:
        monkeypatch.setenv("ROACHPROOF_DOWNLOADS", server.url)
        ran = gate(*gate.tests("passes"), "--engine", "auto")
        assert ran.status == 0, ran.text
        why = next(line for line in ran.lines if line.startswith("why the control: "))
        told = " ".join(ran.text[ran.text.index(why) :].split())
        assert "came in the 60 s that a download which nobody asked for may take" in told
        assert "--cockroach-version v26.2.1 waits for as long as it takes" in told
        assert not list((gate.path / "cache" / "cockroach").glob("[!.]*"))
        ran = gate(*gate.tests("passes"), "--engine", "auto", "--cockroach-version", "v26.2.1")
        assert ran.status == 0, ran.text
        assert "testing cockroach v26.2.1" in ran.text


def test_a_control_run_says_so_in_its_first_and_last_line(gate: Gate) -> None:
    """Once each, for ``--engine postgres`` as for ``auto`` where no CockroachDB is to be had."""
    options = [*gate.tests("passes"), "--engine", "auto"]
    plain, workers = gate(*options, "--run-dir", "out"), gate(*options, "-n", "2")
    quiet = gate(*gate.tests("refuted"), "--engine", "postgres", "-q")
    notice = "CONTROL RUN on PostgreSQL: it says nothing about CockroachDB."
    for ran, status in ((plain, 0), (workers, 0), (quiet, 1)):
        assert ran.status == status, ran.text
        lines = [line for line in ran.lines if line]
        assert lines[0] == lines[-1] == notice, ran.text
        assert ran.text.count("CONTROL RUN") == 2
    assert f"\n**{notice}**\n" in (gate.run_dir / SUMMARY_FILE).read_text()
    for ran in (plain, workers):
        assert ran.text.count("why the control: no CockroachDB to test.") == 1
        assert lines_of(ran, "next: ") == [
            "next: for CockroachDB itself run .venv/bin/tox -e try -- --cockroach-version X, or --cockroach FILE"
        ]
    assert lines_of(quiet, "next: ") == [], "who named the control knows of it"


def test_a_run_of_cockroachdb_says_what_comes_next(gate: Gate) -> None:
    """Claims of one's own are in it, too."""
    binary = gate.fake_cockroach("v24.1.3")
    own = "tests/claims test_claims.py::test_passes --catalogue claims.toml"
    for given, told in (
        ([], "--cockroach-version v24.1.3"),
        (["--cockroach-version", "v24.1.3"], "--cockroach-version v24.1.3"),
        (["--cockroach", str(binary)], f"--cockroach {binary}"),
    ):
        ran = gate(*gate.tests("passes"), "--engine", "auto", *given)
        assert ran.status == 0, ran.text
        assert lines_of(ran, "next: ") == [f"next: for all claims run .venv/bin/tox -e gate -- {told} {own}"]
    assert lines_of(gate(*gate.tests("passes"), "--engine", "cockroach"), "next: ") == [], "who named it knows"


def lines_of(ran: Ran, begin: str) -> list[str]:
    return [line for line in ran.lines if line.startswith(begin)]


@pytest.mark.parametrize("imports", ["from {}.helper import ANSWER", "from {} import helper"])
@pytest.mark.parametrize("name", ["clusters", "fixtures"])
def test_a_directory_that_is_called_as_a_package_of_the_suite_is_said(gate: Gate, name: str, imports: str) -> None:
    (gate.path / name).mkdir()
    (gate.path / name / "helper.py").write_text("ANSWER = 42")
    own = gate.path / "test_own.py"
    own.write_text(f"{imports.format(name)}\n\ndef test_answer(): pass")
    told = gate(own.name).text
    assert f"there is no module {name}.helper: {name} is the name of a package of Roachproof's" in told
    assert "Traceback" not in told


@pytest.mark.parametrize("where", [".", "tests"])
@pytest.mark.parametrize("imports", ["from {}.helper import ANSWER", "from {} import helper"])
@pytest.mark.parametrize("name", ["clusters", "fixtures"])
def test_so_is_one_that_a_conftest_imports(gate: Gate, name: str, imports: str, where: str) -> None:
    (gate.path / where / name).mkdir(parents=True)
    (gate.path / where / name / "helper.py").write_text("ANSWER = 42")
    conftest = (gate.path / where / "conftest.py").resolve()
    conftest.write_text(imports.format(name))
    ran = gate(where)
    assert ran.status == 4, ran.text
    told = f"ERROR: {conftest}: there is no module {name}.helper: {name} is the name of a package of Roachproof's"
    assert told in ran.text
    assert "Traceback" not in ran.text
    conftest.write_text("import nothing_of_ours")
    assert "No module named 'nothing_of_ours'" in gate(where).text, "what is not ours to tell is pytest's"


def test_checks_of_objects_that_no_test_looks_at_are_not_passed_over(gate: Gate) -> None:
    (gate.path / "mine").mkdir()
    (gate.path / "mine" / "orders.toml").write_text('[checks.orders]\nwhat = "Orders."\nholds = ["SELECT true"]\n')
    ran = gate(*gate.tests("passes"), "--objects", "mine")
    assert ran.status == 4, ran.text
    assert "mine: none of these tests looks at objects; leave it out, or choose one that does" in ran.text


def test_a_claims_parameters_and_its_tests_arguments_fit(gate: Gate) -> None:
    """Said before anything starts, also by a dry run."""
    gate.edit("claims.toml", "[claims.question]\n", "[claims.question]\nparameters.question = [1]\n")
    gate.edit("test_claims.py", "async def test_inconclusive(judge)", "async def test_inconclusive(judge, questions)")
    dry = gate("--dry-run", *gate.tests("inconclusive"))
    assert dry.status == 4, dry.text
    assert "claims.toml: claims.question.parameters.question: the claim's test test_inconclusive (test_" in dry.text
    assert "has no argument of this name; did you mean 'questions'?" in dry.text
    gate.edit("claims.toml", "parameters.question = [1]\n", "")
    gate.edit("test_claims.py", "test_inconclusive(judge, questions)", "test_inconclusive(judge, jugde)")
    ran = gate(*gate.tests("inconclusive"))
    assert ran.status == 4, ran.text
    assert "test_inconclusive: its argument 'jugde' is no fixture" in ran.text
    assert "did you mean 'judge'? Or declare its values as parameters.jugde" in ran.text
