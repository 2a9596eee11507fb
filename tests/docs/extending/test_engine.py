"""What a new engine takes is what the page says, shown on the toy that the tests have."""

import re
from pathlib import Path
from typing import Any

from clusters.engines import Deployment
from clusters.sql import Failure
from tests.clusters.engines import toy
from tests.docs.extending.pages import counted, tables

PAGE = "engine.md"


def test_the_page_counts_the_files_that_a_toy_takes() -> None:
    found = counted(PAGE)
    made = {f"clusters/engines/NAME/{file.name}" for file in Path(toy.__path__[0]).glob("*.py")}
    assert {name for name, new in found.items() if new} == made
    assert [name for name, new in found.items() if not new] == ["clusters/known.py"]


def test_the_page_lists_every_method_and_every_class_of_errors() -> None:
    protocol: Any = Deployment
    listed = {name for row in tables(PAGE, "method") for name in re.findall(r"`(\w+)`", row[0])}
    assert listed == {name for name in vars(protocol) if not name.startswith("_")}
    assert {row[0].strip("`") for row in tables(PAGE, "class")} == {each.name for each in Failure}
