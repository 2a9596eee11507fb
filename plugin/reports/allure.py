"""A trial as Allure shows it: plain values from stored evidence, the same for a live run and for ``--judge``.

Nothing here knows pytest or Allure's own classes; ``allure_results`` writes what is said here.
"""

import hashlib
import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clusters.engines import SUBJECT
from clusters.engines import title as title_of
from plugin.claims import Labels
from plugin.options import AUTO
from plugin.reports.allure_steps import STATUS, steps_of
from plugin.reports.builds import tested_of
from plugin.reports.section import Beside, Step
from plugin.reports.series import Resilience
from plugin.reports.source_tables import beside
from plugin.reports.stored_run import StoredTrial
from plugin.reports.terminal import verdict_lines
from plugin.reports.text import machine, number, shown

SABOTAGES = "Sabotages (expected to be refuted)"


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    """Everything that a result says, but for its attachments."""

    full_name: str
    name: str
    status: str
    message: str
    trace: str
    description: str
    """HTML; what came from outside is escaped."""
    labels: Sequence[tuple[str, str]]
    parameters: Mapping[str, str]
    excluded: Mapping[str, str]
    """Parameters that no history is kept by."""
    steps: Sequence[Step]
    start: int
    stop: int

    @property
    def case_id(self) -> str:
        """The same for every version, profile and parameter of one test."""
        return _digest(self.full_name)

    @property
    def history_id(self) -> str:
        """The same for every version."""
        return _digest(self.full_name, *(self.parameters[name] for name in sorted(self.parameters)))


def _digest(*parts: str) -> str:
    return hashlib.md5("\n".join(parts).encode(), usedforsecurity=False).hexdigest()


def content(
    trial: StoredTrial,
    *,
    run: Mapping[str, Any],
    began_ms: int,
    among: str = "",
) -> Content:
    """What Allure shows of a trial. ``among``: the name of its run, where several are shown together.

    ``run`` is its ``run.json``; ``began_ms`` the time at which its timeline began.
    """
    verdict, result = trial.verdict, trial.result
    why = next(iter(result.why.splitlines()), "") if trial.sabotage else result.why
    stop = max((event.t for event in trial.events), default=0)
    table = "\n".join(verdict_lines(verdict)) if verdict else ""
    passed = result.outcome == "pass"
    return Content(
        full_name=full_name(str(trial.described.get("test", trial.directory.name))),
        name=title(trial),
        status=STATUS.get(result.outcome, "broken"),
        message="" if passed else f"{shown(result)}: {why}",
        trace="" if passed else table,
        description=_description(trial, run, why),
        labels=labels(trial, run),
        parameters={**_parameters(trial, run), **({"run": among} if among else {})},
        excluded=_excluded(trial),
        steps=tuple(steps_of(trial, began_ms)),
        start=began_ms,
        stop=began_ms + stop // 1000,
    )


def full_name(nodeid: str) -> str:
    """A test's name without its parameters, as allure-pytest forms it."""
    plain, _, _ = nodeid.partition("[")
    path, *inner = plain.split("::")
    module = re.sub(r"\.py$", "", path).replace("/", ".")
    *classes, test = inner or [""]
    return ".".join([module, *classes]) + f"#{test}"


def _words(trial: StoredTrial) -> str:
    test = full_name(str(trial.described.get("test", ""))).rpartition("#")[2]
    return test.removeprefix("test_").replace("_", " ") or trial.directory.name


def title(trial: StoredTrial) -> str:
    """What a list of results shows of a trial."""
    context = trial.described.get("context") or {}
    about = [f"{name} {value}" for name, value in (trial.described.get("parameters") or {}).items()]
    tested = " ".join(str(context[key]) for key in ("engine", "version") if context.get(key))
    claim = str(trial.described.get("claim", trial.directory.parent.name))
    named = f"sabotage of {claim}" if trial.sabotage else claim
    return f"{named}: {', '.join([_words(trial), *about])}" + (f" · {tested}" if tested else "")


def labels(trial: StoredTrial, run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """By what Allure sorts and filters."""
    described = trial.described
    context = described.get("context") or {}
    settings = run.get("settings") or {}
    claim = str(described.get("claim", trial.directory.parent.name))
    own = trial.claim.labels if trial.claim else Labels()
    engine = engine_of(trial, run)
    epic = SABOTAGES if trial.sabotage else own.epic if engine == SUBJECT else f"{own.epic} (control: {engine})"
    found = {
        "epic": epic,
        "feature": own.feature or claim,
        "story": _words(trial) if trial.sabotage else own.story or _words(trial),
        "severity": str(own.severity),
        "owner": own.owner,
        "parentSuite": epic,
        "suite": claim,
        "subSuite": " ".join(filter(None, [engine, str(context.get("version", ""))])),
        "claim": claim,
        "engine": engine,
        "version": str(context.get("version", "")),
        "profile": str(described.get("profile", settings.get("profile", ""))),
        "substrate": str(context.get("substrate", settings.get("substrate", ""))),
        "framework": "pytest",
    }
    tags = [
        str(described.get("suite", "")),
        "sabotage" if trial.sabotage else "",
        "control" if engine != SUBJECT else "",
        "tuned" if described.get("tuned") else "",
        shown(trial.result).lower(),
    ]
    return [*found.items(), *(("tag", tag) for tag in tags if tag)]


def engine_of(trial: StoredTrial, run: Mapping[str, Any]) -> str:
    """The engine, also of a test that ended before its context was known."""
    asked = (run.get("settings") or {}).get("engine")
    known = (trial.described.get("context") or {}).get("engine")
    return str(known or (asked if asked and asked != AUTO else SUBJECT))


def _parameters(trial: StoredTrial, run: Mapping[str, Any]) -> dict[str, str]:
    """What tells results of one test apart in its history. Versions do not: a history runs across them.

    Several versions in one run have a history by their place, as the second would else hide the first.
    """
    settings = run.get("settings") or {}
    own = {str(name): str(value) for name, value in (trial.described.get("parameters") or {}).items()}
    # Runs that were stored before engines had options of their own call them by another name.
    targets = settings.get("versions") or settings.get("cockroach_versions") or []
    target = str(trial.described.get("target") or "")
    if len(targets) > 1 and target:
        version, _, times = target.partition("#")
        places = [place for place, name in enumerate(targets, 1) if name == version]
        place = places[min(int(times or 1), len(places)) - 1] if places else 0
        own["place among the versions"] = f"{place} of {len(targets)}"
    profile = str(trial.described.get("profile", settings.get("profile", "")))
    return {**own, "engine": engine_of(trial, run), "profile": profile}


def _excluded(trial: StoredTrial) -> dict[str, str]:
    known = {**(trial.described.get("context") or {}), "seed": trial.described.get("seed", "")}
    return {name: str(known[name]) for name in ("version", "seed") if known.get(name) not in (None, "")}


def _description(trial: StoredTrial, run: Mapping[str, Any], why: str) -> str:
    described, claim, sections = trial.described, trial.claim, trial.sections.values()
    context = described.get("context") or {}
    about = [
        tested_of(described) or "no database",
        ", ".join(f"{name} {value}" for name, value in context.items() if name not in ("engine", "version")),
        *(f"{name} {value}" for name, value in trial.builds.items()),
    ]
    rows: list[tuple[str, str]] = []
    if trial.sabotage:
        rows.append(
            (
                "A sabotage",
                f"{trial.about or 'the cluster was misconfigured or broken on purpose.'} The claim must be refuted. This is no "
                "part of the verdict on a version: it shows that the claim can fail.",
            )
        )
    if (engine := engine_of(trial, run)) != SUBJECT:
        rows.append(("A control", f"{engine} was tested. This says nothing about {title_of(SUBJECT)}."))
    rows += [
        ("Verdict", why if trial.result.expected else f"{shown(trial.result)}: {why}"),
        ("What was found", " ".join(f"{told}." for each in sections for told in each.sentences)),
        ("What was tested", "; ".join(filter(None, about))),
        ("Tuned", "; ".join(map(str, described.get("tuned") or ()))),
        ("On", machine(run.get("host") or {})),
        ("What was done", claim.disturbs if claim else ""),
        (
            "What happened",
            "; ".join(cost(fault) for fault in (trial.series.resilience if trial.series else ())),
        ),
        ("Source", str(claim.source or "") if claim else ""),
        ("What would refute it", claim.refuted_by if claim else ""),
        ("What differs from the source", claim.note if claim else ""),
    ]
    lines = "".join(f"<li><b>{html.escape(name)}</b>: {html.escape(text)}</li>" for name, text in rows if text)
    on = machine(run.get("host") or {})
    tables = (
        "".join(map(_table, beside(claim, trial.verdict, machine=on, sections=sections)))
        if claim and trial.verdict
        else ""
    )
    return f"<p><b>{html.escape(str(described.get('sentence', '')))}</b></p><ul>{lines}</ul>{''.join(each.description for each in sections)}{tables}"


def _table(table: Beside) -> str:
    """The source's row, what was measured below it, and the ratio."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in table.head)
    rows = "".join(
        f"<tr><th>{html.escape(name)}</th>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>"
        for name, *cells in table.rows
    )
    return (
        f"<p><b>Source beside measurement: {html.escape(table.title)}</b></p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        + "".join(f"<p>{html.escape(told)}.</p>" for told in table.reading)
        + "".join(f"<p>{html.escape(whose)}: {html.escape(what)}</p>" for whose, what in table.setups)
    )


def cost(fault: Resilience) -> str:
    """What a fault cost, in a sentence."""
    known = [
        ("recovered in", fault.recovery_s, "s"),
        ("longest gap of any range", fault.gap_s, "s"),
        ("of the victims' own clients", fault.victim_gap_s, "s"),
        ("degraded for", fault.degraded_s, "s"),
        ("writes fewer than normal", None if fault.lost is None else round(fault.lost), ""),
    ]
    told = [f"{name} {number(value)} {unit}".strip() for name, value, unit in known if value is not None]
    named = f"{fault.fault.replace('_', ' ')} {', '.join(fault.nodes)}"
    return f"{named} from {fault.begin:.1f} to {fault.end:.1f} s: {', '.join(told) or 'nothing else is known'}"
