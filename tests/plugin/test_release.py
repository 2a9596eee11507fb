"""Every report says which release of the suite made it, by the tag of its checkout and its commit."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from plugin.release import VARIABLE, release
from tests.plugin.conftest import CHECKOUT, Gate

DESCRIBED = "v3.2.1-rc.1-0-g0123456789ab"
SAID = "3.2.1-rc.1 (0123456789ab)"
GIT = ("git", "-c", "user.name=n", "-c", "user.email=e@localhost", "-c", "commit.gpgsign=false")


@pytest.fixture(autouse=True)
def fresh() -> None:
    release.cache_clear()


def test_by_tag_commit_and_change(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        return subprocess.run([*GIT, *words], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    def said() -> str:
        release.cache_clear()
        return release(tmp_path).replace(git("rev-parse", "--short=12", "HEAD").strip(), "COMMIT")

    project = tmp_path / "pyproject.toml"
    project.write_text('[project]\nversion = "0.3.0.dev0"\n')
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    assert said() == "0.3.0.dev0 (COMMIT)"
    git("tag", "v0.2.0")
    git("tag", "another")
    assert said() == "0.2.0 (COMMIT)"
    project.write_text(project.read_text() + "# changed\n")
    assert said() == "0.2.0 (COMMIT+)"
    git("commit", "-qam", "two")
    assert said() == "0.3.0.dev0 (COMMIT)"


def test_without_a_repository_an_image_says_what_it_was_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text('version = "0.3.0.dev0"\n')
    monkeypatch.delenv(VARIABLE, raising=False)
    assert release(tmp_path) == "0.3.0.dev0"
    release.cache_clear()
    monkeypatch.setenv(VARIABLE, DESCRIBED)
    assert release(tmp_path) == SAID
    assert VARIABLE in (CHECKOUT / "Containerfile").read_text()


def test_every_report_says_it(gate: Gate) -> None:
    (gate.path / "nothing" / "git").symlink_to(str(shutil.which("git", path=os.defpath)))
    ran = gate(*gate.tests("passes"), "--run-dir", "out", "--junit-xml", "junit.xml", "--alluredir", "allure")
    assert ran.status == 0, ran.text
    said = release()
    assert re.fullmatch(r"\S+ \([0-9a-f]{12}\+?\)", said)
    assert f"roachproof {said}: " in " ".join(ran.text.split())
    for report in ("out/run.json", "out/result.json"):
        assert json.loads((gate.path / report).read_text())["suite_revision"] == said
    for report in ("out/report.html", "junit.xml", "allure/environment.properties"):
        assert said in (gate.path / report).read_text()
