"""What a new substrate takes is what the page says, shown on the one that the tests have."""

import re
from typing import Any

from clusters.substrates import SUBSTRATES, Nodes, Substrate
from tests.clusters.substrates import runner
from tests.docs.extending.pages import CHECKOUT, counted, tables

PAGE = "substrate.md"
ITS_OWN = {"runner.py", "enter.py", "test_runner.py"}
"""The substrate of the tests: itself, the program that it starts in a node, and the test of a claim on it."""


def members(protocol: Any) -> set[str]:
    return {name for name in vars(protocol) if not name.startswith("_")}


def test_the_page_counts_the_files_that_the_tests_own_substrate_takes() -> None:
    found = counted(PAGE)
    assert [name for name, new in found.items() if new] == ["clusters/substrates/NAME.py"]
    others = {name for name, new in found.items() if not new}
    assert all((CHECKOUT / name).is_file() for name in others)
    knowing = {
        str(path.relative_to(CHECKOUT))
        for room in ("clusters", "plugin", "fixtures", "tests")
        for path in (CHECKOUT / room).rglob("*.py")
        if path.name not in ITS_OWN
        and path.parent.name != "extending"
        and re.search(r"substrates[./]runner", path.read_text())
    }
    # Outside the checkout's substrates it adds its line to SUBSTRATES itself.
    assert knowing == others - {"clusters/known.py"}
    assert SUBSTRATES["runner"] is runner.KIND


def test_the_page_lists_every_operation() -> None:
    listed = {name for row in tables(PAGE, "operation") for name in re.findall(r"`(\w+)`", row[0])}
    assert listed == members(Substrate) | members(Nodes)
