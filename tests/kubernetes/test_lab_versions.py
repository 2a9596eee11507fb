"""Which versions a command in the tests' Kubernetes changes between: no lab is needed for that."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from clusters.engines import Wanted
from clusters.engines.postgres import KIND
from clusters.engines.postgres.binaries import installed
from clusters.errors import BadInput
from tests.kubernetes.lab import __main__ as lab
from tests.kubernetes.lab import control
from tests.kubernetes.lab.__main__ import two_versions

BUILDS = ["v25.4.0", "v26.1.0", "v26.1.1", "v26.1.2"]
NEWEST = ["--cockroach-version", "v26.1.1", "--cockroach-version", "v26.1.2"]
CONTROL = ["--engine", "postgres", "--postgres-version", "16.2", "--postgres-version", "16.14"]
TAKES_BOTH = ["pytest", "-c", "pyproject.toml", "--engine", "auto"]


@pytest.fixture(autouse=True)
def _pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the control, whatever is installed here."""
    here = {version: Path(version) for version in ("18.4", "16.14", "16.2", "15.1")}
    monkeypatch.setattr(control, "installed", lambda: here)


def cache(directory: Path, cached: list[str]) -> Path:
    for version in cached:
        (directory / "cockroach" / version).mkdir(parents=True)
        (directory / "cockroach" / version / "cockroach").touch()
    return directory


@pytest.mark.parametrize(
    ("cached", "command", "named"),
    [
        (BUILDS, TAKES_BOTH, NEWEST),
        (BUILDS, ["pytest"], NEWEST),
        (BUILDS[:2], TAKES_BOTH, CONTROL),
        ([], TAKES_BOTH, CONTROL),
        ([], ["pytest", "--engine=auto"], CONTROL),
        (BUILDS, ["pytest", "--engine", "auto", "--engine=postgres"], CONTROL),
        ([], ["pytest"], []),
        ([], [*TAKES_BOTH, "--engine", "cockroach"], []),
        (BUILDS[1:], [*TAKES_BOTH, "--cockroach-version=v26.1.0"], []),
        ([], [*TAKES_BOTH, "--cockroach", "/a/binary"], []),
        (BUILDS, [*TAKES_BOTH, "--engine", "postgres", "--postgres-version", "18.4"], []),
    ],
    ids=[
        "the newest two of a series",
        "the same where no engine is named",
        "one of a series: the control",
        "none: the control",
        "in one word",
        "the command names the control",
        "none, and CockroachDB alone is taken",
        "none, and CockroachDB alone is named",
        "the command names one",
        "the command names a binary",
        "the command names one of the control",
    ],
)
def test_a_command_changes_to_the_newest_version(
    cached: list[str], command: list[str], named: list[str], tmp_path: Path
) -> None:
    assert two_versions(cache(tmp_path, cached), command) == named


class Sought:
    """In the place of what finds a CockroachDB."""

    def __init__(self, answer: Exception | SimpleNamespace) -> None:
        self.asked, self._answer = list[Wanted](), answer

    def __call__(self, wanted: Wanted) -> SimpleNamespace:
        self.asked.append(wanted)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def test_where_no_build_is_cached_one_is_looked_for_before_there_is_a_lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its network has no way out: on a fresh machine no run there ever had a CockroachDB."""
    find = Sought(SimpleNamespace(version="v26.1.2", program=tmp_path / "cockroach"))
    monkeypatch.setattr(lab, "find", find)
    assert lab.sought(tmp_path, TAKES_BOTH) == {"v26.1.2": tmp_path / "cockroach"}
    assert [wanted.download_s for wanted in find.asked] == [60.0]
    images = {image.name: image for image in lab.known_images(tmp_path, ["pytest"])}
    assert images["roachproof.local/cockroach:v26.1.2"].where == {str(tmp_path / "cockroach"): "/cockroach/cockroach"}
    find.asked.clear()
    assert lab.sought(tmp_path, CONTROL) == {}
    assert lab.sought(cache(tmp_path, BUILDS), TAKES_BOTH) == {}
    assert find.asked == []


def test_that_none_is_to_be_had_is_said_and_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lab, "find", Sought(BadInput("no CockroachDB to test: no way out")))
    assert not [image for image in lab.known_images(tmp_path, TAKES_BOTH) if "cockroach:" in image.name]
    assert "the lab has no CockroachDB: no CockroachDB to test: no way out" in capsys.readouterr().err


@pytest.mark.parametrize("here", [["18.4"], ["18.4", "16.14"], []])
def test_without_two_of_a_major_version_the_control_changes_none(
    here: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "installed", lambda: dict.fromkeys(here, tmp_path))
    assert two_versions(cache(tmp_path, []), TAKES_BOTH) == []


def test_a_node_may_change_between_the_two_of_the_control() -> None:
    """Back, too, as the claim does."""
    pair = control.pair()
    assert pair is not None
    old, new = pair
    for before, after in ((old, new), (new, old)):
        assert not KIND.change({"version": before}, {"version": after}).against


def test_the_image_of_the_control_has_each_version_that_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "installed", installed)
    image = control.image()
    assert image is not None
    assert len(installed()) > 1
    for programs in installed().values():
        assert image.where[str(programs.parent)] == str(programs.parent)
        assert programs / "postgres" in image.beside
