"""The interactive page: one file for one or several runs, with everything it needs inside and no request to anywhere."""

import json
import os
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from markupsafe import Markup
from msgspec import to_builtins

from clusters.engines import SUBJECT
from plugin.evidence.events import Event
from plugin.reports.builds import tested_of
from plugin.reports.charts import Chart, clock
from plugin.reports.reasons import decided, meaning
from plugin.reports.section import Beside
from plugin.reports.series import Resilience
from plugin.reports.source_tables import beside
from plugin.reports.stored_run import StoredRun, StoredTrial, names_of
from plugin.reports.text import SIGNS, machine, number, word
from plugin.reports.text import shown as shown_result
from plugin.reports.timeline import timeline_of
from plugin.result import BAD_INPUT, NO_VERDICT, NOT_AS_EXPECTED

ASSETS = Path(__file__).with_name("assets")
STYLES: Mapping[str, str] = {
    "pass": "good",
    "fail": "bad",
    NOT_AS_EXPECTED: "bad",
    **dict.fromkeys(("inconclusive", BAD_INPUT, *NO_VERDICT), "unsure"),
}
MOST_EVENTS = 500
"""Events listed of one trial; a run of hours has many, and its charts show them all."""
MOST_FACTS = 300
FIRST = ("fail", "inconclusive")
"""Outcomes of checks that are listed before all others, in this order."""


def write_page(path: Path, runs: Sequence[StoredRun], *, judge: str, control: str = "") -> Path:
    """Write the page of these runs.

    ``judge``: the options that judge them again; ``control`` the notice of a control run.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ASSETS), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    names = names_of(runs)
    trials = [(trial, name) for run, name in zip(runs, names, strict=True) for trial in run.trials]
    on = [machine(run.described.get("host") or {}) for run in runs for _ in run.trials]
    shown = [
        _trial(trial, index, name if len(runs) > 1 else "", on[index]) for index, (trial, name) in enumerate(trials)
    ]
    drawn = {"trials": [_drawn(trial, told, name) for (trial, name), told in zip(trials, shown, strict=True)]}
    data = json.dumps(to_builtins(drawn, str_keys=True), separators=(",", ":"), allow_nan=False)
    claims, sabotages = ([told for told in shown if told["sabotage"] is wanted] for wanted in (False, True))

    def asset(name: str) -> Markup:
        return Markup((ASSETS / name).read_text(encoding="utf-8"))  # noqa: S704 - our own files

    text = environment.get_template("page.html").render(
        title="Roachproof: " + (", ".join(dict.fromkeys(told["tested"] for told in shown)) or "nothing was tested"),
        runs=[{"name": name, "facts": _run_facts(run)} for run, name in zip(runs, names, strict=True)],
        trials=shown,
        groups=[("", claims)] * bool(claims)
        + [("Sabotages: expected to be refuted, or inconclusive; no part of the verdict", sabotages)] * bool(sabotages),
        summary="; ".join(filter(None, [_counted("Claims", claims), _counted("sabotages", sabotages)])),
        badge=lambda told: Markup('<span class="badge {}">{} {}</span>').format(
            told["style"], told["sign"], told["word"]
        ),
        control=control,
        judge=judge,
        data=Markup(data.replace("<", "\\u003c")),  # noqa: S704 - escaped here
        css=asset("page.css"),
        js=asset("page.js"),
        uplot_css=asset("uplot.css"),
        uplot_js=asset("uplot.js"),
    )
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8", errors="replace")
        return temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _counted(what: str, shown: Sequence[Mapping[str, Any]]) -> str:
    words = [told["word"].lower() for told in shown]
    return (words and f"{what}: " + ", ".join(f"{words.count(w)} {w}" for w in dict.fromkeys(words))) or ""


def _run_facts(run: StoredRun) -> Mapping[str, str]:
    settings = run.described.get("settings", {})
    facts = {
        "started": run.described.get("started"),
        "suite": settings.get("suite"),
        "profile": settings.get("profile"),
        "host": machine(run.described.get("host") or {}),
        "seed": settings.get("seed"),
        "suite's revision": run.described.get("suite_revision"),
    }
    return {name: str(value) for name, value in facts.items() if value}


def _test(trial: StoredTrial) -> str:
    """The test's name without its file; the number of an A/A run."""
    name = str(trial.described.get("test", "")).rpartition("::")[2] or trial.directory.name
    target = str(trial.described.get("target", ""))
    return f"{name} #{target.partition('#')[2]}" if "#" in target and "#" not in name else name


def _trial(trial: StoredTrial, index: int, run: str, on: str) -> dict[str, Any]:
    described = trial.described
    verdict: Mapping[str, Any] = trial.verdict or {
        "results": (),
        "conditions": (),
        "tuned": described.get("tuned", ()),
        "context": {},
    }
    context = {
        **(described.get("context") or {}),
        "tuned": "; ".join(map(str, verdict["tuned"])),
        **trial.builds,
    }
    claim = trial.claim
    shown = _outcome(trial)
    why, points = decided(trial)
    told = {point.name for point in points}
    return {
        "anchor": f"a{index}",
        "index": index,
        "claim": described.get("claim", trial.directory.parent.name),
        "name": f"{run}: {_test(trial)}" if run else _test(trial),
        "sabotage": trial.sabotage,
        "about": trial.about,
        "control": context.get("engine", SUBJECT) != SUBJECT,
        "tested": tested_of(described) or "no database",
        "word": shown[0],
        "sign": shown[1],
        "style": shown[2],
        "why": why,
        "points": points,
        "sentence": described.get("sentence", ""),
        "source": str(claim.source or "") if claim else "",
        "disturbs": claim.disturbs if claim else "",
        "refuted_by": claim.refuted_by if claim else "",
        "problems": [
            c["why"]
            for c in verdict["conditions"]
            if c["name"] in ("integrity", "no_errors") and not c["met"] and c["name"] not in told
        ]
        + [trial.problem] * bool(trial.problem),
        "facts": {name: value for name, value in context.items() if value},
        "series": trial.series is not None,
        "resilience": [_cost(fault) for fault in (trial.series.resilience if trial.series else ())],
        "checks": [_check(result, told) for result in _in_order(verdict["results"])],
        "paper": beside(claim, verdict, machine=on, sections=trial.sections.values())
        if claim and trial.verdict
        else [],
        "sections": [
            {
                "notices": section.notices,
                "sentences": [told for told in section.sentences if told not in section.notices],
                "html": Markup(section.html(index)),  # noqa: S704 - the workload escapes it
            }
            for section in trial.sections.values()
        ],
        "conditions": verdict["conditions"],
        "events": [_event(event) for event in trial.events[:MOST_EVENTS]],
        "happened": len(trial.events),
    }


def _outcome(trial: StoredTrial) -> tuple[str, str, str]:
    """Word, sign and style."""
    outcome = trial.result.outcome
    return shown_result(trial.result), SIGNS.get(outcome, "…"), STYLES.get(outcome, "none")


def _in_order(results: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What decided first."""
    return sorted(results, key=lambda r: FIRST.index(r["outcome"]) if r["outcome"] in FIRST else len(FIRST))


def _check(result: Mapping[str, Any], told: AbstractSet[str]) -> dict[str, Any]:
    """``told``: checks whose examples are shown already."""
    check, measured = result["check"], result["measurement"]
    # A pass or fail says in words what the columns beside it say.
    why = "" if result["outcome"] in ("pass", "fail") else result["why"]
    note = "" if measured["note"] in why else measured["note"]
    unit = f" {check['unit']}" if check["unit"] else ""
    return {
        "metric": check["metric"],
        "meaning": meaning(check["metric"]),
        "measured": number(measured["value"]) + (unit if measured["value"] is not None else ""),
        "limit": f"{check['comparison']} {number(check['limit'])}{unit}" if check["limit"] is not None else "–",
        "kind": check["kind"],
        "mark": check["mark"],
        "source": check["source"],
        "word": f"{SIGNS.get(result['outcome'], '…')} {word(result['outcome'])}",
        "style": STYLES.get(result["outcome"], "none"),
        "why": "; ".join(filter(None, [why, note])),
        "examples": () if check["metric"] in told else measured["examples"],
    }


def _cost(fault: Resilience) -> dict[str, str]:
    def seconds(value: float | None) -> str:
        return "–" if value is None else f"{value:.1f} s"

    return {
        "fault": f"{fault.fault} {', '.join(fault.nodes)}",
        "at": f"{fault.begin:.1f} to {fault.end:.1f} s"
        + (f" ({clock(fault.begin)} to {clock(fault.end)})" if fault.end >= 120 else ""),
        "recovery": seconds(fault.recovery_s),
        "gap": seconds(fault.gap_s),
        "victim_gap": seconds(fault.victim_gap_s),
        "degraded": seconds(fault.degraded_s),
        "lost": "–" if fault.lost is None else f"{fault.lost:.0f} ({100 * (fault.lost_share or 0):.0f} %)",
    }


def _event(event: Event) -> dict[str, Any]:
    facts = ", ".join(f"{name} {_plain(value)}" for name, value in event.data.items())
    return {
        "t": event.t / 1e6,
        "name": event.name,
        "facts": facts[:MOST_FACTS] + ("…" if len(facts) > MOST_FACTS else ""),
    }


def _plain(value: object) -> str:
    """A JSON value as people write it."""
    if isinstance(value, Mapping):
        return " ".join(f"{name}={_plain(item)}" for name, item in value.items()) or "none"
    if isinstance(value, list):
        return " ".join(map(_plain, value)) or "none"
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def _drawn(trial: StoredTrial, told: Mapping[str, Any], run: str) -> dict[str, Any]:
    """What the charts of a trial are drawn from. ``names``: from what is common to what is its own."""
    names = [told["claim"], told["tested"], run, _test(trial)]
    results = _in_order(trial.verdict["results"]) if trial.verdict else ()
    checks = [
        {name: check[name] for name in ("metric", "measured", "limit", "word")}
        | {"value": result["measurement"]["value"]}
        for check, result in zip(told["checks"], results, strict=True)
    ]
    return {
        "names": names,
        "label": " · ".join([told["claim"], told["tested"], told["name"]]),
        "word": told["word"],
        "sabotage": told["sabotage"],
        "checks": checks,
        "groups": _groups(trial, told["paper"]),
    }


def _groups(trial: StoredTrial, paper: Sequence[Beside]) -> dict[str, Sequence[Chart]]:
    """The trial's charts, by the place of the page that they are drawn in."""
    found: dict[str, Sequence[Chart]] = {f"paper{i}": table.charts for i, table in enumerate(paper)}
    for section in trial.sections.values():
        found |= section.charts
    if trial.series is not None:
        found["time"] = timeline_of(trial.series, trial.sections.values())
    return {name: charts for name, charts in found.items() if charts}
