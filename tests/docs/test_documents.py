"""The README and the documents: short enough, and what they name exists."""

import configparser
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from plugin.catalogue import load
from plugin.claims import Status
from tests.plugin.conftest import Gate, gate

__all__ = ["gate"]

CHECKOUT = Path(__file__).resolve().parents[2]
DOCUMENTS = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]
README_WORDS = 900
"""So many words of prose are read in the first ten minutes; code is not counted."""
MOST_WORDS = 35
"""Who reads a longer sentence has forgotten its begin."""
FOREIGN = {"--quiet", "--junit-xml", "--alluredir", "--deselect", "--benchmark-storage", "--benchmark-max-time",
           "--benchmark-disable", "--benchmark-skip", "--maxfail", "--help", "--version",
           "--build-arg", "--userns", "--tags", "--always", "--long", "--follow", "--selector", "--output",
           "--clusterrole", "--serviceaccount"}  # fmt: skip
"""Options of pytest and its plugins, and of programs that are not ours, that the documents name."""


def prose(text: str) -> str:
    """Without code in fences."""
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def sentences(text: str) -> list[str]:
    """Of prose, of points and of the cells of tables. What is code counts as one word."""
    text = re.sub(r"^(?: {4}|#|!\[).*", "", prose(text), flags=re.MULTILINE)
    text = re.sub(r"`[^`\n]*`", "code", text)
    parts = re.split(r"\n\s*\n|\n\s*(?=(?:[-*]|\d+\.)\s|\|)|\s\|(?=\s|$)|(?<=[.!?])[\")*]*\s", text)
    return [part for part in map(str.strip, parts) if part]


def anchor(heading: str) -> str:
    """As the usual hosts of repositories make it."""
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


def test_the_readme_is_short() -> None:
    assert len(prose((CHECKOUT / "README.md").read_text()).split()) <= README_WORDS


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_sentences_are_short(page: Path) -> None:
    found = sentences(page.read_text())
    assert len(found) > 5
    assert [each for each in found if len(each.split()) > MOST_WORDS] == []


def test_every_claim_has_its_place() -> None:
    page = (CHECKOUT / "docs" / "claims.md").read_text()
    assert [
        name for name, claim in load().claims.items() if claim.status is Status.READY and f"`{name}`" not in page
    ] == []


def test_sources_are_told_as_the_catalogue_has_them() -> None:
    """By the README, and by the page of claims, which has all of them."""
    works = tomllib.loads((CHECKOUT / "plugin" / "catalogue" / "sources.toml").read_text())["sources"]
    named = {name.lower(): work for name, work in works.items()}
    told = {}
    for page in ("README.md", "docs/claims.md"):
        listed = (CHECKOUT / page).read_text().partition("\n## Sources\n")[2].partition("\n## ")[0]
        rows = re.findall(r"^(?:- \*(?P<name>[^*]+)\*:|\| (?P<cell>[^|]+) \|) (.*)$", listed, re.MULTILINE)
        told[page] = {(name or cell).lower(): entry for name, cell, entry in rows if cell != "called"}
    assert told["docs/claims.md"].keys() == named.keys()
    assert {"thesis", "22k-databases article"} <= told["README.md"].keys() <= named.keys()
    for page, listing in told.items():
        for name, entry in listing.items():
            work = {**named[name]}
            parts = [*work.pop("authors", ()), *map(str, work.values())]
            assert [part for part in parts if part not in entry] == [], f"{page}: {name}"


def test_the_readmes_minutes_are_the_catalogues(gate: Gate) -> None:
    """What ``--claims`` adds up for one version, and for two."""
    for version in ("v24.1.3", "v24.1.4"):
        gate.fake_cockroach(version)
    readme = (CHECKOUT / "README.md").read_text()
    (one, two) = re.findall(r"\| `[^`]*tox -e gate` \| .* \| (\d+) min; up to (\d+) with two versions \|", readme)[0]
    (hours,) = re.findall(r"\| `[^`]*tox -e nightly` \| .* \| (\d+) h \|", readme)

    def told(*versions: str) -> dict[str, str]:
        ran = gate("--claims", *(f"--cockroach-version={version}" for version in versions), catalogue=False)
        assert ran.status == 0, ran.text
        return dict(re.findall(r"(gate|nightly) \d+, about ([\d.]+) (?:min|h)", " ".join(ran.text.split())))

    assert told("v24.1.3")["gate"] == one
    assert told("v24.1.3", "v24.1.4")["gate"] == two
    assert round(float(told("v24.1.3")["nightly"])) == int(hours)


def test_the_readmes_numbers_of_claims_are_the_catalogues() -> None:
    readme = (CHECKOUT / "README.md").read_text()
    ready = (claim for claim in load() if claim.status is Status.READY)
    counted = Counter(suite for claim in ready for suite in claim.suites)
    told = dict(re.findall(r"\| `[^`]*\b(\w+)` \| (\d+): ", readme))
    assert told.pop("try") == "1"
    assert {suite: int(number) for suite, number in told.items()} == counted


def test_the_changelog_has_a_section_for_each_release() -> None:
    first, *released = re.findall(r"^## (.*)$", (CHECKOUT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first == "Unreleased"
    assert [head for head in released if not re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", head)] == []
    tags = subprocess.run(["git", "tag", "--list", "v*"], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert {tag.removeprefix("v") for tag in tags.stdout.split()} <= {head.split()[0] for head in released}


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text())
    for path, _, part in (link.partition("#") for link in links):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {path}"
        if part:
            assert part in map(anchor, re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)), (
                f"{page.name}: #{part}"
            )


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set[Path](), [CHECKOUT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        links = re.findall(r"\]\((?!https?:)([^)\s#]+\.md)", page.read_text())
        waiting += [(page.parent / link).resolve() for link in links]
    assert set(DOCUMENTS) <= reached


def test_environments_of_tox_that_are_named_exist() -> None:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(CHECKOUT / "tox.ini")
    known = {name.partition(":")[2] for name in tox.sections()}
    for page in DOCUMENTS:
        for name in re.findall(r"tox -e (\w+)", page.read_text()):
            assert name in known, f"{page.name}: tox -e {name}"


def test_options_and_variables_that_are_named_exist() -> None:
    known = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "--help"],
        cwd=CHECKOUT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    code = "".join(
        path.read_text()
        for room in ("plugin", "clusters", "fixtures", "tests")
        for path in (CHECKOUT / room).rglob("*.py")
    )
    for page in DOCUMENTS:
        text = page.read_text()
        for option in set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) - FOREIGN:
            assert re.search(rf"{option}(?![\w-])", known) or f'"{option}' in code, f"{page.name}: {option}"
        for variable in set(re.findall(r"ROACHPROOF_[A-Z_]*[A-Z]", text)):
            assert variable in code, f"{page.name}: {variable}"
