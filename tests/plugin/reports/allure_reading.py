"""Allure's results as a reader of their directory finds them."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plugin.catalogue import load
from plugin.evidence.run_seal import RUN_FILE, seal_run
from plugin.reports import allure_results
from plugin.reports.stored_run import stored_run
from tests.plugin.reports.samples import run_of


@dataclass(frozen=True)
class Result:
    """One result as a reader of the directory finds it."""

    home: Path
    json: Mapping[str, Any]

    @property
    def message(self) -> str:
        return str(self.json.get("statusDetails", {}).get("message", ""))

    @property
    def labels(self) -> dict[str, str]:
        return {str(each["name"]): str(each["value"]) for each in self.json["labels"] if each["name"] != "tag"}

    @property
    def tags(self) -> set[str]:
        return {label["value"] for label in self.json["labels"] if label["name"] == "tag"}

    @property
    def parameters(self) -> dict[str, str]:
        return {each["name"]: each["value"] for each in self.json.get("parameters", []) if not each.get("excluded")}

    @property
    def steps(self) -> list[Mapping[str, Any]]:
        return list(self.json.get("steps", []))

    def attached(self, name: str) -> str:
        found = [each for each in self.json["attachments"] if each["name"] == name]
        assert len(found) == 1, [each["name"] for each in self.json["attachments"]]
        return (self.home / str(found[0]["source"])).read_text()

    @property
    def names(self) -> list[str]:
        return [each["name"] for each in self.json.get("attachments", [])]


def read(home: Path) -> list[Result]:
    files = sorted(home.glob("*-result.json"))
    assert not list(home.glob(".*")), "a file that was not written to its end"
    return [Result(home, json.loads(file.read_text())) for file in files]


def by_test(home: Path) -> dict[str, Result]:
    found = {f"{r.json['fullName'].rpartition('#')[2]}{sorted(r.parameters.items())}": r for r in read(home)}
    assert len(found) == len(read(home)), "a result was written twice, or two have one name"
    return {re.sub(r"\[.*", "", name).removeprefix("test_"): r for name, r in found.items()}


def written(place: Path, *trials: Mapping[str, Any], **settings: Any) -> list[Result]:
    """The results of a stored run with these trials."""
    run = run_of(place / "run", trials=trials or ({},), **settings)
    return again(place, run)


def again(place: Path, run: Path, name: str = "results") -> list[Result]:
    """The results of a run that ends as it is now."""
    if (run / RUN_FILE).exists():
        seal_run(run, ())
    stored = stored_run(run, load())
    assert allure_results.write_run(place / name, [stored]) == len(stored.trials)
    return read(place / name)


def everything(home: Path) -> str:
    return "\n".join(file.read_text(errors="replace") for file in home.iterdir() if file.is_file())
