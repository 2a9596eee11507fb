"""Allure's HTML: what is missing where it cannot be built, and what is done to it where it can."""

import json
import os
from pathlib import Path

import pytest

from plugin.reports import allure_html
from tests.plugin.reports.allure_reading import read
from tests.plugin.reports.samples import run_of


def test_html_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert allure_html.main([]) == 4
    assert "holds no stored run; run the gate first" in capsys.readouterr().err
    (tmp_path / "nothing").mkdir()
    assert allure_html.main(["nothing"]) == 4
    assert "holds neither Allure results nor evidence" in capsys.readouterr().err
    run_of(tmp_path / ".roachproof" / "run", trials=[{"judged": False}])
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert allure_html.main([]) == 4
    assert "missing: Node with npm" in capsys.readouterr().err
    assert read(tmp_path / ".roachproof" / "run" / "allure-results"), "they were made from the evidence"


def programs(place: Path, *, npm: str, node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins for npm and node."""
    place.mkdir()
    for name, script in (("npm", npm), ("node", node)):
        (place / name).write_text(f"#!/bin/sh\n{script}\n")
        (place / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}/usr/bin:/bin")
    monkeypatch.setenv("ROACHPROOF_CACHE", str(place / "cache"))


def test_html_without_a_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(tmp_path / "run", trials=[{"judged": False}])
    programs(tmp_path / "bin", npm="echo ENOTFOUND >&2; exit 1", node="exit 1", monkeypatch=monkeypatch)
    assert allure_html.main([str(run)]) == 4
    said = capsys.readouterr().err
    assert "missing: the npm package allure" in said
    assert "ENOTFOUND" in said


def test_html_counts_a_run_once_and_asks_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(tmp_path / "runs" / "one", trials=[{"judged": False}])
    counting = '<script async src="https://www.googletagmanager.com/gtag/js?id=G-X"></script>\n<script>gtag();</script>'
    (tmp_path / "page").write_text(f"<html>{counting}<p>kept</p><script>kept()</script></html>")
    programs(
        tmp_path / "bin",
        monkeypatch=monkeypatch,
        npm='mkdir -p "$3/node_modules/allure"; touch "$3/node_modules/allure/cli.js"',
        node=f'mkdir -p "$6"; cp {tmp_path}/page "$6/index.html"; '
        'echo "{\\"name\\": \\"$ROACHPROOF_NAME\\"}" >> "$ROACHPROOF_HISTORY"',
    )
    for _ in range(2):
        assert allure_html.main([str(run)]) == 0, capsys.readouterr().err
    page = (run / "allure-report" / "index.html").read_text()
    assert page == "<html><p>kept</p><script>kept()</script></html>"
    history = (tmp_path / "runs" / "allure-history.jsonl").read_text().splitlines()
    assert [json.loads(line)["name"] for line in history] == ["one"]
