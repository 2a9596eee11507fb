"""What the tests of the pages on extending share: the list of files that a page counts, and the code that it shows."""

import re
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]
PAGES = CHECKOUT / "docs" / "extending"


def tables(page: str, head: str) -> list[list[str]]:
    """The rows of the table whose first column has this head, as cells."""
    text = (PAGES / page).read_text()
    (table,) = re.findall(rf"^\| {head} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]


def counted(page: str) -> dict[str, bool]:
    """The files that something new takes, and whether each is a new one; the page counts them rightly."""
    found = {row[0].strip("`"): row[1] == "new" for row in tables(page, "file")}
    text = " ".join((PAGES / page).read_text().split())
    said = re.search(r"takes \*\*(\d+) files? and (\d+) lines?\*\*", text)
    assert said is not None
    new = sum(found.values())
    assert [int(number) for number in said.groups()] == [new, len(found) - new]
    return found


def example(page: str, *, of: str = "toml|python") -> dict[str, str]:
    """The files of the page's example by name; each block of these languages says in its first line which it is."""
    files = {}
    for block in re.findall(rf"^```(?:{of})\n(.*?)^```$", (PAGES / page).read_text(), re.MULTILINE | re.DOTALL):
        title = re.match(r"# ~/mine/(\S+)\n", block)
        assert title, f"the block does not say in its first line which file it is:\n{block}"
        files[title[1]] = block
    return files


def code(page: str, number: int = 0) -> str:
    """A block of Python that the page shows."""
    blocks: list[str] = re.findall(r"```python\n(.*?)```", (PAGES / page).read_text(), re.DOTALL)
    return blocks[number]
