"""JUnit XML: of stored runs what a session writes of each claim's test, and of a session what no test stands for."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from clusters.engines import is_control
from plugin.release import release
from plugin.reports.ending import concluded
from plugin.reports.properties import properties, properties_of_run
from plugin.reports.stored_run import NOT_AS_LEFT, StoredRun, StoredTrial, engine_of, names_of, nothing_decided
from plugin.reports.text import shown
from plugin.required import NO_CLAIM, NOT_DECIDED, NOTHING_DECIDED
from plugin.result import NO_VERDICT, SKIPPED

NOT_XML = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


def write_junit(path: Path, runs: Sequence[StoredRun]) -> str:
    """Write a test suite a run, with a test case a trial. Returns the line that says where it is, or why it is not.

    Never raises: a verdict stands without its report.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        ET.ElementTree(_suites(runs)).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        return f"JUnit XML: not written: {path}: {error.strerror}; give another place with --junit-xml FILE"
    except Exception as error:
        return f"JUnit XML: not written: {type(error).__name__}: {error}"
    return f"JUnit XML: {path}"


def _suites(runs: Sequence[StoredRun]) -> ET.Element:
    suites = ET.Element("testsuites")
    for run, name in zip(runs, names_of(runs), strict=True):
        suite = ET.SubElement(suites, "testsuite", name=_text(name))
        described = [trial.described for trial in run.trials if not trial.sabotage]
        control = any(is_control(engine_of(trial, run.described)) for trial in run.trials if not trial.sabotage)
        ended = concluded([run], control=control)
        told = properties_of_run(run.described, described, run.directory, run.not_tested, ended)
        _properties(suite, [*told, ("judged by", f"Roachproof {release()}")])
        kinds = [_case(suite, trial) for trial in run.trials]
        kinds += [_case_of(suite, "error", "required", required, NOT_DECIDED) for required in run.undecided]
        if nothing_decided(runs):
            kinds.append(_case_of(suite, "error", "required", NOTHING_DECIDED, NO_CLAIM))
        kinds += [_case_of(suite, "failure", "evidence", problem, NOT_AS_LEFT) for problem in run.problems]
        for kind in ("failure", "error", "skipped"):
            suite.set({"failure": "failures", "error": "errors"}.get(kind, kind), str(kinds.count(kind)))
        suite.set("tests", str(len(kinds)))
    return suites


def live(config: pytest.Config) -> list[Any]:
    """Pytest's own writer of JUnit XML, where this session has one."""
    return [plugin for plugin in config.pluginmanager.get_plugins() if type(plugin).__name__ == "LogXML"]


def tell_run(config: pytest.Config, told: Iterable[tuple[str, str]]) -> None:
    """Add properties to the suite of a session's JUnit XML, as ``record_testsuite_property`` does."""
    for xml in live(config):
        for name, value in told:
            xml.add_global_property(name, value)


def tell_unsaid(config: pytest.Config, unsaid: Mapping[str, str]) -> None:
    """Add to a session's JUnit XML an error for each that lets nothing through and no test stands for, and why."""
    for xml in live(config):
        for name, why in unsaid.items():
            for when, outcome in (("setup", "failed"), ("teardown", "passed")):
                about: Any = {"nodeid": f"required::{name}", "location": ("", None, name), "keywords": {}}
                xml.pytest_runtest_logreport(
                    pytest.TestReport(**about, when=when, outcome=outcome, longrepr=why)  # type: ignore[arg-type]
                )


def _case(suite: ET.Element, trial: StoredTrial) -> str:
    """Add the test case of a trial; of which kind its outcome is to a reader of JUnit."""
    file, _, name = str(trial.described.get("test", trial.directory.name)).rpartition("::")
    module = file.removesuffix(".py").replace("/", ".")
    about = {"classname": _text(module), "name": _text(name), "time": f"{trial.end / 1e6:.3f}"}
    case = ET.SubElement(suite, "testcase", about)
    result = trial.result
    told = properties(
        trial.claim_id, sabotage=trial.sabotage, result=result, verdict=trial.verdict, described=trial.described
    )
    _properties(case, told)
    if result.outcome == "pass":
        return ""
    kinds = {**dict.fromkeys(NO_VERDICT, "error"), SKIPPED: "skipped", "not evaluated": "skipped"}
    kind = kinds.get(result.outcome, "failure")
    ET.SubElement(case, kind, message=_text(f"{shown(result)}: {result.why}"))
    return kind


def _case_of(suite: ET.Element, kind: str, whose: str, name: str, why: str) -> str:
    """Add a test case for what no trial stands for: a ``failure``, or an ``error``."""
    case = ET.SubElement(suite, "testcase", {"classname": whose, "name": _text(name), "time": "0"})
    ET.SubElement(case, kind, message=why)
    return kind


def _properties(element: ET.Element, told: Iterable[tuple[str, str]]) -> None:
    found = ET.SubElement(element, "properties")
    for name, value in told:
        ET.SubElement(found, "property", name=_text(name), value=_text(value))


def _text(value: str) -> str:
    """Without the characters that XML has no place for."""
    return NOT_XML.sub("\ufffd", value)
