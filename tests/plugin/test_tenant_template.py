"""Templates of tenants of a user's own, given on the command line."""

import pytest

from fixtures.workloads.tenants.provisioning import FILE, Asked, Counted, read_provisioning
from tests.plugin.conftest import Gate
from tests.slow import slow

TEST = """
import pytest

@pytest.mark.claim("answer")
async def test_it(tenants, judge):
    async with tenants.provisioning():
        await tenants.provision()
    judge.measure("answer", 42)
    assert judge.decide()
"""

MINE = """
[templates.mine]
what = "ours"
file = "mine.sql"
tenants = 3
"""

SQL = """
CREATE TABLE customers (id INT8 PRIMARY KEY, name VARCHAR(80) NOT NULL);
CREATE TABLE "Orders; all" (id INT8 PRIMARY KEY, customer INT8 NOT NULL REFERENCES customers (id));
INSERT INTO customers VALUES (1, 'it''s; fine');
"""


@pytest.fixture
def own(gate: Gate) -> Gate:
    for name, text in {"test_own.py": TEST, "mine.toml": MINE, "mine.sql": SQL}.items():
        (gate.path / name).write_text(text)
    return gate


ARGUMENTS = ("test_own.py", "--tenant-template", "mine.toml")


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("mine.toml", "[templates.mine]", "[templates.Mine]", "mine.toml: templates.Mine"),
        ("mine.toml", "[templates.mine]", "[templates.tpcc]", "mine.toml: templates.tpcc: fixtures/"),
        ("mine.toml", "[templates.mine]", "[template.mine]", "mine.toml: template: unknown key"),
        ("mine.toml", "what =", "wat =", "mine.toml: templates.mine.wat"),
        ("mine.toml", "tenants = 3", "", "mine.toml: templates.mine.tenants: is missing; say how many"),
        ("mine.toml", "tenants = 3", "tenants = 0", "mine.toml: templates.mine.tenants: 0 must be"),
        ("mine.toml", "tenants = 3", "tenants = 1000000", "tenants must be at most 1000000; ask for fewer"),
        ("mine.toml", "mine.sql", "none.sql", "mine.toml: templates.mine.file: "),
        ("mine.toml", 'file = "mine.sql"', "", "mine.toml: templates.mine: must have either module or file"),
        ("mine.toml", "[templates", "[[templates", "mine.toml: is not valid TOML"),
        ("mine.sql", "INSERT", "BEGIN; INSERT", "mine.toml: templates.mine.file: "),
        (
            "mine.sql",
            "CREATE TABLE customers",
            "CREATE ROLE x; CREATE TABLE customers",
            "mine.sql, line 2: `CREATE ROLE x`",
        ),
        ("mine.sql", "'it''s", "'it'''s", "the quote ' of line "),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_starts(
    own: Gate, file: str, old: str, new: str, said: str
) -> None:
    own.edit(file, old, new)
    ran = own(*ARGUMENTS, "--engine", "postgres", "--run-dir", "out")
    assert ran.status == 4, ran.text
    assert said in ran.text
    assert "Traceback" not in ran.text
    assert not own.trials


def test_a_file_that_is_not_there_is_refused(own: Gate) -> None:
    ran = own("test_own.py", "--tenant-template", "none.toml", "--engine", "postgres")
    assert ran.status == 4
    assert "none.toml: cannot be read" in ran.text


@slow
def test_tenants_of_ones_own_are_made_beside_the_profiles(own: Gate) -> None:
    ran = own(*ARGUMENTS, "--engine", "postgres", "--run-dir", "out")
    assert ran.status == 0, ran.text
    (trial,) = own.trials
    problems = list[str]()
    found = list(read_provisioning(trial / FILE, problems))
    assert not problems
    (asked,) = [one for one in found if isinstance(one, Asked)]
    assert asked.mix["mine"] == 3
    assert len(asked.mix) > 1
    (counted,) = [one for one in found if isinstance(one, Counted)]
    assert (counted.databases, counted.whole, counted.halves) == (asked.tenants, asked.tenants, 0)
    assert counted.tables == counted.whole_tables == asked.tables


@slow
def test_a_template_that_the_server_refuses_half_way_ends_the_run(own: Gate) -> None:
    own.edit("mine.sql", "INSERT INTO customers", "INSERT INTO costumers")
    ran = own(*ARGUMENTS, "--engine", "postgres", "--run-dir", "out")
    assert ran.status == 4, ran.text
    assert "mine.sql: template 'mine', line 4: `INSERT INTO costumers" in ran.text
    assert "correct it" in ran.text


def test_a_statement_that_is_longer_than_a_message_ends_the_run_before_anything_starts(own: Gate) -> None:
    own.edit("mine.sql", "it''s; fine", "x" * (16 << 20))
    ran = own(*ARGUMENTS, "--engine", "cockroach")
    assert ran.status == 4, ran.text
    assert "mine.sql: template 'mine', line 4: `INSERT INTO customers VALUES (1, 'xxx" in ran.text
    assert "CockroachDB takes at most 16,777,216 in a message; make several statements of it" in ran.text
    assert not own.trials
