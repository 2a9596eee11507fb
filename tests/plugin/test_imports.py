"""What imports what: no circle between files of different rooms, and none longer than two files inside one."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
FILES = {
    ".".join(path.relative_to(CHECKOUT).with_suffix("").parts).removesuffix(".__init__"): path
    for room in ("plugin", "clusters", "fixtures")
    for path in (CHECKOUT / room).rglob("*.py")
}
"""All modules of the product by name."""


def imported(path: Path) -> Iterator[str]:
    """All that a file imports, also inside of functions and for the type checker."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module, f"{path}: imports are absolute"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in FILES else node.module


def reached(module: str, graph: Mapping[str, set[str]]) -> set[str]:
    """All that a module imports, directly or not."""
    found: set[str] = set()
    left = [module]
    while left:
        new = graph[left.pop()] - found
        found |= new
        left += new
    return found


def test_no_workload_is_known_outside_of_its_package() -> None:
    """Its name, its sizes, its metrics and how its test goes are behind its registration."""
    own = re.compile("ledger|tpc-?c|warehouse|rows_|audit:", re.IGNORECASE)
    files = [path for path in (CHECKOUT / "plugin").rglob("*.*") if path.suffix in (".py", ".html", ".js")]
    found = [f"{path.name}: {word[0]}" for path in files for word in own.finditer(path.read_text("utf-8"))]
    assert len(files) > 50
    assert found == []


def test_circles_are_of_two_files_in_one_room() -> None:
    graph = {name: {one for one in imported(path) if one in FILES} - {name} for name, path in FILES.items()}
    assert sum(map(len, graph.values())) > 500, "imports were found"
    all_reached = {name: reached(name, graph) for name in graph}
    for name, found in all_reached.items():
        circle = {name} | {other for other in found if name in all_reached[other]}
        assert len(circle) <= 2, sorted(circle)
        assert len({FILES[one].parent for one in circle}) == 1, sorted(circle)
