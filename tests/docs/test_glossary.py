"""Whoever reads a report finds each word of the papers, and of TPC-C, in the glossary, which the page has, too."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugin.catalogue import load
from plugin.judge.metrics import KNOWN_METRICS
from plugin.judge.model import Outcome
from plugin.required import NOT_DECIDED
from plugin.result import BAD_INPUT, NO_VERDICT, NOT_AS_EXPECTED, SKIPPED

CHECKOUT = Path(__file__).parents[2]
TERMS = (
    "warehouse", "think time", "keying", "ramp", "headroom", "new-order", "payment", "order-status", "delivery",
    "stock-level", "tpmC", "efc", "retries", "licence", "backup", "batched", "cloned", "restored", "interval", "median",
    "endpoint", "schedule", "saturated", "fell behind", "quorum", "replica", "lease", "range", "gateway", "p99",
    "decommissioned", "zone", "region", "consistency", "drained", "native", "built-in",
    "acknowledged", "recovery", "outage", "SQLSTATE", "margin", "noise", "namespace",
    "percentile", "provision", "disturb", "heal",
)  # fmt: skip
"""What the papers, TPC-C and CockroachDB call things, and somebody who operates databases need not know."""


def _told(file: Path) -> Iterator[str]:
    """The texts of a program that it tells, and so no docstring; of a template all of it."""
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".py":
        yield text
        return
    tree = ast.parse(text)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


@pytest.fixture(scope="module")
def told() -> str:
    """Everything that a page may say: templates, sentences, metrics with their meaning, the catalogue."""
    rooms = (CHECKOUT / "plugin", CHECKOUT / "fixtures", CHECKOUT / "clusters")
    shown = [file for room in rooms for file in room.rglob("*") if file.suffix in (".py", ".html")]
    assert len(shown) > 40
    metrics = [f"{name.replace('_', ' ')}: {known.description}" for name, known in KNOWN_METRICS.items()]
    claims = [f"{claim.sentence} {claim.disturbs} {claim.refuted_by}" for claim in load().claims.values()]
    return "\n".join([*(part for file in shown for part in _told(file)), *metrics, *claims])


@pytest.fixture(scope="module")
def heads() -> str:
    """The glossary's first column, a head a line."""
    lines = (CHECKOUT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    return "\n".join(line.split("|")[1].strip() for line in lines if line.startswith("| "))


def stands(term: str, text: str) -> bool:
    """As a word, in the plural, too, and as names of columns write it."""
    written = re.escape(term).replace(r"\ ", "[ _-]").replace(r"\-", "[ _-]")
    return re.search(rf"(?<![A-Za-z]){written}s?(?![A-Za-z])", text, re.IGNORECASE) is not None


@pytest.mark.parametrize("term", TERMS)
def test_a_word_that_a_report_says_has_its_entry(term: str, told: str, heads: str) -> None:
    assert stands(term, told), "no report says it any more: take it out of the list"
    assert stands(term, heads), "docs/glossary.md has no entry for it"


@pytest.mark.parametrize("outcome", [*Outcome, *NO_VERDICT, BAD_INPUT, SKIPPED, NOT_AS_EXPECTED, NOT_DECIDED])
def test_whatever_a_claim_comes_to_has_its_entry(outcome: str, heads: str) -> None:
    assert stands(outcome.lower(), heads), "docs/glossary.md has no entry for it"


def test_the_entries_are_in_order(heads: str) -> None:
    names = [re.sub(r"[^\w ]", "", head).strip().casefold() for head in heads.splitlines()[1:]]
    assert names == sorted(names)


def test_no_word_has_two_entries(heads: str) -> None:
    names = [name.strip().lower() for head in heads.splitlines() for name in head.split(", ")]
    assert sorted({name for name in names if names.count(name) > 1}) == []
