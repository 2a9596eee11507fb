"""Versions of the control: how they are read and ordered, which is chosen, and between which a node may change."""

from collections.abc import Callable
from pathlib import Path

import pytest

from clusters.engines import ENGINES, Engine, Wanted
from clusters.engines.postgres import binaries
from clusters.engines.postgres.version import choose, numbers, why_not_from
from clusters.errors import BadInput

KIND = ENGINES["postgres"]
ALWAYS = ("16.14", "18.4")
"""Both in the wheel that is installed on every platform."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [("16.2", (16, 2)), ("v16.14", (16, 14)), (" 18.4 ", (18, 4)), ("v16.2 (Patroni 4.1.5)", (16, 2))],
)
def test_a_version_is_read_in_every_form(text: str, expected: tuple[int, int]) -> None:
    assert numbers(text) == expected
    assert KIND.order(text) == expected


@pytest.mark.parametrize("text", ["", "16", "latest", "16.2.1", "9.6", "16.2 beta", "16.²", "-16.2", "16.2\nx"])
def test_what_is_no_version_is_refused_with_its_origin(text: str) -> None:
    with pytest.raises(BadInput, match=r"(?s)^--postgres-version: .* is not a PostgreSQL version.*16\.2 or v16\.2"):
        numbers(text, origin="--postgres-version")


def test_versions_are_ordered_by_numbers() -> None:
    assert sorted(["18.4", "16.14", "v16.2 (Patroni 4.1.5)"], key=KIND.order) == [
        "v16.2 (Patroni 4.1.5)",
        "16.14",
        "18.4",
    ]


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [("16.2", "16.2"), ("v16.2", "16.2"), ("16", "16.14"), ("18", "18.4"), ("16.1", None), ("17", None)],
)
def test_one_of_those_that_are_there_is_chosen(wanted: str, chosen: str | None) -> None:
    assert choose(wanted, ["16.2", "16.14", "18.4"], origin="option") == chosen


def test_what_is_no_version_is_not_looked_for() -> None:
    with pytest.raises(BadInput, match=r"^option: '1' is not a PostgreSQL version"):
        choose("1", ["16.2"], origin="option")


@pytest.mark.parametrize(("old", "new"), [("16.2", "16.14"), ("16.14", "16.2"), ("16.2", "v16.2 (Patroni 4.1.5)")])
def test_a_node_may_change_to_any_version_of_its_major_one(old: str, new: str) -> None:
    assert why_not_from(old, new) == KIND.change({"version": old}, {"version": new}).against == ""


@pytest.mark.parametrize(("old", "new"), [("16.14", "18.4"), ("v18.4 (Patroni 4.1.5)", "v16.14 (Patroni 4.1.5)")])
def test_a_node_may_not_change_to_another_major_version(old: str, new: str) -> None:
    why = KIND.change({"version": old}, {"version": new}).against
    assert why == why_not_from(old, new)
    assert f"PostgreSQL {new} cannot start with the data of {old}" in why
    assert "two versions of" in why


def found(version: str | None) -> Engine:
    return KIND.find(Wanted(version=version, download=False))


def test_the_newest_is_the_default() -> None:
    assert found(None).version.startswith("v18.4 (Patroni ")
    assert found(None) == found("18.4") == found("18")


def test_each_version_is_found_in_its_own_directory() -> None:
    engines = [found(version) for version in ALWAYS]
    assert [engine.version.partition(" ")[0] for engine in engines] == ["v16.14", "v18.4"]
    assert len({engine.program for engine in engines}) == 2
    assert len({engine.fingerprint["postgres_sha256"] for engine in engines}) == 2
    assert found("16").program == found("16.14").program


def _without(module: str) -> Callable[[str], Path | None]:
    genuine = binaries._directory
    return lambda name: None if name == module else genuine(name)


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty one, on a machine whose Python has no wheel of the older version."""
    monkeypatch.setattr(binaries, "_directory", _without(binaries.OLDER))
    monkeypatch.setenv("ROACHPROOF_CACHE", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("wanted", ["16.2", "17.1"])
def test_an_unknown_version_names_those_that_are_there(cache: Path, wanted: str) -> None:
    with pytest.raises(BadInput) as refused:
        found(wanted)
    said = str(refused.value)
    assert f"--postgres-version {wanted}: neither the installed packages nor {cache}/postgres hold it" in said
    assert "16.14, 18.4. 16.2 comes with the wheel pgserver==0.1.4" in said
    assert f"pip install --no-deps --target {cache}/postgres --python-version 3.12 " in said
    assert found(None).version.startswith("v18.4"), "the older one is needed by nobody who does not ask for it"


def test_an_older_version_may_be_put_into_the_cache(cache: Path) -> None:
    """As the message says: the packages of a wheel, of which none is imported."""
    program = cache / "postgres" / "pgserver" / "pginstall" / "bin" / "postgres"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 16.2'\n")
    program.chmod(0o755)
    assert found("16.2").program == program.parent
    with pytest.raises(BadInput, match=r"16\.2, 16\.14, 18\.4$"):
        found("17.1")
