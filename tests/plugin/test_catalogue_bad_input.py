"""Every kind of bad input in a catalogue of a user's own is said with file, key, value, constraint and way out."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusters.errors import BadInput
from plugin.catalogue import HOME, SHIPPED, load
from plugin.judge.conditions import KNOWN_CONDITIONS

MINIMAL = """
[claims.mine]
sentence = "Nothing is lost."
checks = [{ metric = "lost", comparison = "==", limit = 0 }]
"""

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_(text: str, name: str = "mine.toml") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write_


def with_check(check: str) -> str:
    first = 'metric = "lost", comparison = "==", limit = 0'
    return f'[claims.mine]\nsentence = "S."\nchecks = [{{ {first} }}, {{ {check} }}]\n'


def with_line(line: str) -> str:
    return MINIMAL + line + "\n"


GAP = 'metric = "gap_s", comparison = "<=", '

BAD = {
    "nothing": ("", "claims: is missing; declare at least one"),
    "malformed": ("[claims.mine]\nsentence = ", "is not valid TOML: .*line 2"),
    "key twice": (MINIMAL + 'sentence = "again"\n', "is not valid TOML: .*line 5"),
    "claim twice in a file": (MINIMAL + MINIMAL, "is not valid TOML: .*line 6"),
    "nested too deeply": ("x = " + "[" * 5000, "nested too deeply|not valid TOML"),
    "a number too long": ("x = " + "1" * 5000, "is not valid TOML"),
    "unknown table": (MINIMAL + "[claim.b]\n", "claim: unknown key; did you mean 'claims'"),
    "claims no table": ("claims = 3", r"claims: 3 must be a table"),
    "a claim no table": ("[claims]\nmine = 3", r"claims\.mine: 3 must be a table with sentence"),
    "id not kebab-case": (MINIMAL.replace("mine", "Mine_1"), r"claims\.Mine_1: 'Mine_1' must be kebab-case"),
    "id with a dot": (MINIMAL.replace("mine", '"a.b"'), r'claims\."a\.b": .*kebab-case'),
    "no sentence": (
        '[claims.mine]\nchecks = [{ metric = "lost", comparison = "==", limit = 0 }]',
        r"claims\.mine\.sentence: is missing",
    ),
    "empty sentence": (MINIMAL.replace("Nothing is lost.", " "), r"sentence: ' ' must be a text that is not empty"),
    "sentence on two lines": (MINIMAL.replace("is lost", "\\nlost"), "sentence: .* on one line"),
    "sentence with control characters": (MINIMAL.replace("is lost", "\\u001b[2J"), "control characters"),
    "no check": ('[claims.mine]\nsentence = "S."', r"claims\.mine\.checks: is missing; a claim without a check"),
    "empty checks": ('[claims.mine]\nsentence = "S."\nchecks = []', r"claims\.mine\.checks: is missing"),
    "checks no array": ('[claims.mine]\nsentence = "S."\nchecks = "lost"', r"checks: 'lost' must be an array"),
    "unknown key of a claim": (with_line("suits = []"), r"claims\.mine\.suits: unknown key; did you mean 'suites'"),
    "unknown key of a check": (
        with_check(GAP + "limits = 3"),
        r"checks\[1\]\.limits: unknown key; did you mean 'limit'",
    ),
    "unknown suite": (
        with_line('suites = ["nightley"]'),
        r"suites\[0\]: 'nightley' must be a suite; did you mean 'nightly'",
    ),
    "suite no text": (with_line("suites = [[1]]"), r"suites\[0\]: an array must be a suite"),
    "suite twice": (with_line('suites = ["gate", "gate"]'), r"suites\[1\]: 'gate' stands there already"),
    "unknown status": (with_line('status = "done"'), r"status: 'done' must be a status; there are planned, ready"),
    "unknown capability": (
        with_line('capabilities = ["kil"]'),
        r"capabilities\[0\]: 'kil' must be a capability; did you mean 'kill'",
    ),
    "unknown condition": (
        with_line('needs = ["fault_bits"]'),
        r"needs\[0\]: .*evidence condition; did you mean 'fault_bit'",
    ),
    "unknown condition of a check": (
        with_check(GAP + 'limit = 3, needs = ["x"]'),
        r"checks\[1\]\.needs\[0\]: 'x' must be an evidence",
    ),
    "unknown severity": (with_line('labels = { severity = "high" }'), r"labels\.severity: 'high' must be a severity"),
    "no nodes": (with_line("nodes = 0"), r"nodes: 0 must be a whole number from 1 to 100"),
    "nodes not whole": (with_line("nodes = 3.0"), r"nodes: 3\.0 must be a whole number"),
    "nodes true": (with_line("nodes = true"), r"nodes: True must be a whole number"),
    "unknown include": (
        with_line('include = ["ledger-audits"]'),
        r"include\[0\]: .* must be a set of checks; there is none",
    ),
    "set of checks empty": (MINIMAL + "[checks]\nmine = []", r"checks\.mine: an array must be an array of at least 1"),
    "missing limit": (
        with_check('metric = "gap_s", comparison = "<="'),
        r"checks\[1\]\.limit: is missing from the check of 'gap_s'",
    ),
    "missing comparison": (with_check('metric = "gap_s", limit = 3'), r"checks\[1\]\.comparison: is missing"),
    "missing metric": (with_check('comparison = "<=", limit = 3'), r"checks\[1\]\.metric: is missing"),
    "negative limit": (
        with_check(GAP + "limit = -1"),
        r"claims\.mine\.checks\[1\]\.limit: -1 must be at least 0; give a figure",
    ),
    "limit NaN": (
        with_check(GAP + "limit = nan"),
        r"limit: nan must be a finite number.*nothing can be compared with it",
    ),
    "limit infinite": (with_check(GAP + "limit = inf"), r"limit: inf must be a finite number"),
    "limit beyond floats": (with_check(GAP + "limit = 1" + "0" * 400), r"limit: 10+\.\.\. must be a finite number"),
    "limit beyond printing": (
        with_check(GAP + "limit = 0x1" + "0" * 9000),
        r"limit: this number must be a finite number",
    ),
    "limit a text": (
        with_check(GAP + 'limit = "30"'),
        r"limit: '30' must be a number, at least 0; write it without quotes",
    ),
    "limit true": (with_check(GAP + "limit = true"), r"limit: True must be a number"),
    "unknown comparison": (
        with_check('metric = "gap_s", comparison = "=<", limit = 3'),
        r"comparison: '=<' must be a comparison; did you mean '<='\?",
    ),
    "half a comparison": (
        with_check('metric = "gap_s", comparison = "=", limit = 3'),
        r"comparison: '=' must be a comparison; did you mean '=='\?",
    ),
    "unknown kind": (
        with_check(GAP + 'limit = 3, kind = "absolut"'),
        r"kind: 'absolut' must be a kind of limit; did you mean 'absolute'",
    ),
    "unknown mark": (with_check(GAP + 'limit = 3, mark = "X"'), r"mark: 'X' must be a mark; there are D, R, S"),
    "mark without a source": (
        with_check(GAP + 'limit = 3, mark = "S"'),
        r"checks\[1\]\.source: is missing, though mark S says there is one",
    ),
    "profile kind without profiles": (
        with_check(GAP + 'limit = 3, kind = "profile"'),
        r"limit: 3.0: a profile limit .*give a table",
    ),
    "absolute kind with profiles": (
        with_check(GAP + "limit = { laptop = 3 }"),
        r"limit: an absolute limit holds on any hardware",
    ),
    "unknown profile": (
        with_check(GAP + 'limit = { lapttop = 3 }, kind = "profile"'),
        r"limit\.lapttop: 'lapttop' must be a profile; did you mean 'laptop'",
    ),
    "no profile": (with_check(GAP + 'limit = {}, kind = "profile"'), r"limit: names no profile"),
    "negative limit of a profile": (
        with_check(GAP + 'limit = { laptop = -3 }, kind = "profile"'),
        r"limit\.laptop: -3 must be at least 0",
    ),
    "limit of a report": (
        with_check('metric = "gap_s", kind = "report", limit = 3'),
        r"limit: a report is shown and never judged",
    ),
    "comparison of a report": (
        with_check('metric = "gap_s", kind = "report", comparison = "<="'),
        r"comparison: a report is shown",
    ),
    "the same check twice": (
        with_check('metric = "lost", comparison = "==", limit = 1'),
        r"checks\[1\]: claim 'mine' checks 'lost' in this way already",
    ),
    "unknown metric": (
        with_check('metric = "gaps_s", comparison = "<=", limit = 3'),
        r"metric: 'gaps_s' is nothing the judge measures; did you mean 'gap_s'.*recorded = true",
    ),
    "metric not snake_case": (
        with_check('metric = "Gap-s", comparison = "<=", limit = 3'),
        r"metric: 'Gap-s' must be snake_case",
    ),
    "recorded no flag": (with_check(GAP + 'limit = 3, recorded = "yes"'), r"recorded: 'yes' must be true or false"),
    "parameter no argument": (
        with_line('parameters = { "two words" = [1] }'),
        r"parameters\.\"two words\": .* must be the name of an argument",
    ),
    "parameter empty": (
        with_line("parameters.inserts = []"),
        r"parameters\.inserts: an array must be an array of at least 1",
    ),
    "parameter twice the same": (
        with_line("parameters.inserts = [1, 1]"),
        r"parameters\.inserts\[1\]: 1 stands there already",
    ),
    "parameter a table": (
        with_line("parameters.inserts = [{ a = 1 }]"),
        r"parameters\.inserts\[0\]: a table must be a text, a number",
    ),
    "parameter NaN": (with_line("parameters.inserts = [nan]"), r"parameters\.inserts\[0\]: nan must be"),
    "parameter lacks a suite": (
        with_line("parameters.inserts = { gate = [1] }"),
        r"parameters: has nothing for suite 'nightly'",
    ),
    "no warehouses": (
        with_line("parameters.warehouses = [1, 0]"),
        r"parameters\.warehouses\[1\]: 0 must be a whole number from 1 to \d+; give such",
    ),
    "negative warehouses": (
        with_line("parameters.warehouses = { gate = [2], nightly = [-3] }"),
        r"parameters\.warehouses\.nightly\[0\]: -3 must be a whole number from 1",
    ),
    "half a warehouse": (
        with_line("parameters.warehouses = [1.5]"),
        r"parameters\.warehouses\[0\]: 1\.5 must be a whole number",
    ),
    "one size": (
        with_line('nodes = 9\ncapabilities = ["rebalance"]\nparameters.sizes = ["3"]'),
        r"parameters\.sizes: '3' must be at least two numbers of nodes; give such as '3 6 9'",
    ),
    "sizes that are none": (
        with_line('nodes = 9\ncapabilities = ["rebalance"]\nparameters.sizes = ["3 six"]'),
        r"parameters\.sizes: '3 six' must be at least two numbers",
    ),
    "a smaller size among larger ones": (
        with_line('nodes = 9\ncapabilities = ["rebalance"]\nparameters.sizes = ["3 9 6"]'),
        r"'3 9 6' must be sizes of which each is larger than the one before; give such as '3 6 9'",
    ),
    "growth that shrinks": (
        with_line('nodes = 9\ncapabilities = ["rebalance"]\nparameters.sizes = ["6 3"]'),
        r"'6 3' must be sizes of which each is larger than the one before; give such as '3 6 9'",
    ),
    "shrinking that grows": (
        with_line('nodes = 9\ncapabilities = ["rebalance", "remove_node"]\nparameters.sizes = ["3 6"]'),
        r"'3 6' must be sizes of which each is smaller than the one before; give such as '6 3'",
    ),
    "shrinking that ends early": (
        with_line('nodes = 9\ncapabilities = ["rebalance", "remove_node"]\nparameters.sizes = ["9 6"]'),
        r"'9 6' must be sizes down to 3, since .* end with 3",
    ),
    "a size twice": (
        with_line('nodes = 9\ncapabilities = ["rebalance"]\nparameters.sizes = ["3 3"]'),
        r"'3 3' must be sizes of which each is larger",
    ),
    "fewer nodes than replicas": (
        with_line('nodes = 9\ncapabilities = ["rebalance"]\nparameters.sizes = ["2 4"]'),
        r"'2 4' must be sizes of 3 nodes at the least, one for each replica",
    ),
    "one size of a node": (
        with_line('capabilities = ["node_resources"]\nparameters.sizes = ["0.5"]'),
        r"parameters\.sizes: '0\.5' must be at least two sizes of a node; give such as '0\.5/1024 1/2048'",
    ),
    "a size of a node that is none": (
        with_line('capabilities = ["node_resources"]\nparameters.sizes = ["0.5 huge"]'),
        r"parameters\.sizes: is '0\.5 huge', but profile 'huge' is unknown",
    ),
    "a node without memory": (
        with_line('capabilities = ["node_resources"]\nparameters.sizes = ["1 0.5/64"]'),
        r"but size '0\.5/64': give the name of a profile, or CPUs above 0, or '0\.5/1024' with at least 512 MiB",
    ),
    "more nodes than declared": (
        with_line('capabilities = ["rebalance"]\nparameters.sizes = ["3 6"]'),
        r"'3 6' must be sizes up to nodes \(3 in suite gate\); say nodes = 6",
    ),
    "parameter of an unknown suite": (
        with_line("parameters.inserts = { gate = [1], nightli = [2] }"),
        r"parameters\.inserts\.nightli: 'nightli' must be a suite",
    ),
    "estimate lacks a suite": (
        with_line("estimate = { gate = { seconds = 1 } }"),
        r"estimate: has nothing for suite 'nightly'",
    ),
    "estimate negative": (with_line("estimate = { seconds = -1 }"), r"estimate\.seconds: -1 must be greater than 0"),
    "source without a work": (with_line('source = { section = "1" }'), r"source\.work: is missing"),
    "source a text": (with_line('source = "a book"'), r"source: 'a book' must be a table with work, section, where"),
    "steps a text": (with_line('steps = "first"'), r"steps: 'first' must be an array"),
    "paper no table": (with_line("paper = 5"), r"paper: 5 must be a table"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str, write: Write) -> None:
    text, said = BAD[case]
    path = write(text)
    with pytest.raises(BadInput) as caught:
        load([*SHIPPED, path] if "include" not in case else [path])
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert re.search(said, message), message
    assert "\n" not in message
    assert len(message) < 2 * 400


def test_unreadable_files(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    with pytest.raises(BadInput, match=rf"{missing}: cannot be read \(No such file.*check the path"):
        load([missing])
    with pytest.raises(BadInput, match=r"cannot be read \(Is a directory"):
        load([tmp_path])
    (latin := tmp_path / "latin.toml").write_bytes(MINIMAL.replace("lost.", "perdu à").encode("latin-1"))
    with pytest.raises(BadInput, match=r"latin\.toml: byte 44 is not UTF-8; save the file as UTF-8"):
        load([latin])


def test_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    (path := tmp_path / "bom.toml").write_bytes(b"\xef\xbb\xbf" + MINIMAL.encode())
    assert load([path]).claim("mine").sentence == "Nothing is lost."


def test_duplicates_name_both_files(tmp_path: Path) -> None:
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text(MINIMAL)
    second.write_text(MINIMAL)
    with pytest.raises(BadInput, match=rf"{second} and {first}: both declare the claim 'mine'"):
        load([first, second])
    first.write_text(MINIMAL.replace("mine", "survivability"))
    with pytest.raises(
        BadInput,
        match=rf"{first} and plugin/catalogue/survivability\.toml: both declare the claim 'survivability'",
    ):
        load([*SHIPPED, first])
    first.write_text(MINIMAL + '[checks]\nledger-audit = [{ metric = "lost", comparison = "==", limit = 9 }]\n')
    with pytest.raises(BadInput, match="both declare the set of checks 'ledger-audit'"):
        load([*SHIPPED, first])


def test_included_set_with_an_unknown_metric_names_its_own_place(write: Write) -> None:
    sets = '[checks]\nfine = [{ metric = "losst", comparison = "==", limit = 0 }]\n'
    with pytest.raises(BadInput, match=r"checks\.fine\[0\]\.metric: 'losst' is nothing the judge measures"):
        load([write(with_line('include = ["fine"]') + sets)])


def test_planned_claims_may_name_metrics_that_do_not_exist_yet(write: Write) -> None:
    text = MINIMAL.replace("lost", "to_be_measured") + 'status = "planned"\n'
    assert load([write(text)]).claim("mine").checks[0].metric == "to_be_measured"


SHARED, VALID = ((HOME / f"{family}.toml").read_text() for family in ("shared", "survivability"))
SECTION = VALID[VALID.index("[claims.survivability]") : VALID.index("[claims.survivability-disk-lost]")]
SMALL = SHARED + SECTION
JUNK = st.one_of(
    st.sampled_from(
        [
            '"',
            "[",
            "]",
            "{",
            "}",
            "=",
            ",",
            "\n",
            "'",
            "nan",
            "-1",
            "0x1F",
            "1e999",
            "1979-05-27",
            "true",
            "[[claims]]",
            "\x00",
            ".",
        ]
    ),
    st.text(max_size=4),
)


@settings(
    deadline=None,
    max_examples=300,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    derandomize=True,
)
@given(edits=st.lists(st.tuples(st.integers(0, len(SMALL)), st.integers(0, 12), JUNK), min_size=1, max_size=3))
def test_mutilated_text_loads_or_is_bad_input(edits: list[tuple[int, int, str]], tmp_path: Path) -> None:
    text = SMALL
    for at, dropped, junk in edits:
        text = text[:at] + junk + text[at + dropped :]
    (path := tmp_path / "mutant.toml").write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        assert load([path]).claims
    except BadInput as error:
        assert str(path) in str(error)  # noqa: PT017 - both ways out are lawful


SPOTS = [match.span(1) for match in re.finditer(r"= *([^\s=,{}\[\]\"]+|\"[^\"]*\"|\{[^{}]*\}|\[[^\[\]]*\])", SMALL)]
VALUES = st.sampled_from(
    [
        "3",
        "-3",
        "0",
        "nan",
        "-inf",
        "1e400",
        "true",
        '""',
        '"x"',
        "[]",
        "{}",
        "[[1]]",
        "{ a = 1 }",
        "1979-05-27",
        "07:32:00",
        "0x" + "f" * 6000,
        "9" * 500,
        '"\\u0007"',
        '["gate"]',
        '"kill"',
    ]
)


@settings(
    deadline=None,
    max_examples=300,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    derandomize=True,
)
@given(spot=st.sampled_from(SPOTS), value=VALUES)
def test_any_value_in_any_place_loads_or_is_bad_input(spot: tuple[int, int], value: str, tmp_path: Path) -> None:
    text = SMALL[: spot[0]] + value + SMALL[spot[1] :]
    (path := tmp_path / "mutant.toml").write_text(text)
    try:
        assert load([path]).claims
    except BadInput as error:
        assert str(path) in str(error)  # noqa: PT017 - both ways out are lawful


def test_the_mutations_start_from_something_valid(write: Write) -> None:
    assert load([write(SMALL)]).claim("survivability").checks
    assert len(SPOTS) > 100
    assert set(tomllib.loads(SMALL)["claims"]["survivability"]["needs"]) <= set(KNOWN_CONDITIONS)
