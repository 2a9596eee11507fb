"""The interactive page: one file for one or several runs, with everything it needs inside and no request to anywhere."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from plugin.evidence.records import Event
from plugin.reports.paper import beside
from plugin.reports.series import Resilience, Series
from plugin.reports.stored import ENDED_EARLY, StoredArm, StoredRun
from plugin.reports.text import SIGNS, number, word

ASSETS = Path(__file__).with_name("assets")
FILE = "report.html"
STYLES: Mapping[str, str] = {"pass": "good", "fail": "bad", "inconclusive": "unsure", ENDED_EARLY: "unsure"}
MOST_EVENTS = 500
"""Events listed of one arm; a run of hours has many, and its charts show them all."""
MOST_FACTS = 300


def write_page(path: Path, runs: Sequence[StoredRun], *, source: str, control: str = "") -> Path:
    """Write the page of these runs. ``source`` is the directory to judge again; ``control`` the notice of a control run."""
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ASSETS), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    arms = [arm for run in runs for arm in run.arms]
    several = len(runs) > 1
    shown = [_arm(arm, f"a{index}", several=several) for index, arm in enumerate(arms)]
    data = {"arms": [_drawn(arm, told) for arm, told in zip(arms, shown, strict=True)]}

    def asset(name: str) -> Markup:
        return Markup((ASSETS / name).read_text(encoding="utf-8"))  # noqa: S704 - our own files

    text = environment.get_template("page.html").render(
        title="Roachproof: "
        + (", ".join(dict.fromkeys(told["tested"] for told in shown)) or "nothing was tested"),
        runs=[{"name": run.directory.name, "facts": _run_facts(run)} for run in runs],
        arms=shown,
        badge=lambda told: Markup('<span class="badge {}">{} {}</span>').format(
            told["style"], told["sign"], told["word"]
        ),
        control=control,
        source=source,
        data=Markup(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")),  # noqa: S704 - escaped here
        css=asset("page.css"),
        js=asset("page.js"),
        uplot_css=asset("uplot.css"),
        uplot_js=asset("uplot.js"),
    )
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text, encoding="utf-8")
    return temporary.replace(path)


def _run_facts(run: StoredRun) -> Mapping[str, str]:
    host = run.described.get("host", {})
    settings = run.described.get("settings", {})
    facts = {
        "started": run.described.get("started"),
        "suite": settings.get("suite"),
        "profile": settings.get("profile"),
        "host": host
        and f"{number(host.get('cores'))} cores, {number(host.get('memory_total_gib'))} GiB, {host.get('kernel', '')}",
        "seed": settings.get("seed"),
    }
    return {name: str(value) for name, value in facts.items() if value}


def tested(arm: StoredArm) -> str:
    """Engine and version."""
    context = arm.described.get("context") or {}
    return " ".join(str(context[key]) for key in ("engine", "version") if context.get(key)) or "no database"


def _arm(arm: StoredArm, anchor: str, *, several: bool) -> dict[str, Any]:
    described = arm.described
    verdict: Mapping[str, Any] = arm.verdict or {
        "results": (),
        "conditions": (),
        "tuned": described.get("tuned", ()),
        "context": {},
    }
    context = {**(described.get("context") or {}), "tuned": "; ".join(verdict["tuned"])}
    where = f"{arm.directory.parents[2].name}/" if several else ""
    red = arm.sabotage and arm.outcome == "fail"
    return {
        "anchor": anchor,
        "claim": described.get("claim", arm.directory.parent.name),
        "name": where + arm.directory.name,
        "sabotage": arm.sabotage,
        "tested": tested(arm),
        "outcome": arm.outcome,
        "word": word(arm.outcome) + (", as expected" if red else ""),
        "sign": SIGNS.get(arm.outcome, "…"),
        "style": "good" if red else STYLES.get(arm.outcome, "none"),
        "why": arm.why,
        "sentence": described.get("sentence", ""),
        "source": str(arm.claim.source or "") if arm.claim else "",
        "problems": [
            c["why"]
            for c in verdict["conditions"]
            if c["name"] in ("integrity", "no_errors") and not c["met"]
        ],
        "facts": {name: value for name, value in context.items() if value},
        "series": arm.series is not None,
        "resilience": [_cost(fault) for fault in (arm.series.resilience if arm.series else ())],
        "checks": [_check(result) for result in verdict["results"]],
        "paper": beside(arm.claim, verdict) if arm.claim and arm.verdict else [],
        "conditions": verdict["conditions"],
        "events": [_event(event) for event in arm.events[:MOST_EVENTS]],
    }


def _check(result: Mapping[str, Any]) -> dict[str, Any]:
    check, measured = result["check"], result["measurement"]
    unit = f" {check['unit']}" if check["unit"] else ""
    return {
        "metric": check["metric"],
        "measured": number(measured["value"]) + (unit if measured["value"] is not None else ""),
        "limit": f"{check['comparison']} {number(check['limit'])}{unit}"
        if check["limit"] is not None
        else "–",
        "kind": check["kind"],
        "mark": check["mark"],
        "source": check["source"],
        "word": f"{SIGNS.get(result['outcome'], '…')} {word(result['outcome'])}",
        "style": STYLES.get(result["outcome"], "none"),
        "why": "; ".join(filter(None, [result["why"], measured["note"]])),
        "examples": measured["examples"],
    }


def _cost(fault: Resilience) -> dict[str, str]:
    def seconds(value: float | None) -> str:
        return "–" if value is None else f"{value:.1f} s"

    return {
        "fault": f"{fault.fault} {', '.join(fault.nodes)}",
        "at": f"{fault.begin:.1f} to {fault.end:.1f} s",
        "recovery": seconds(fault.recovery_s),
        "gap": seconds(fault.gap_s),
        "victim_gap": seconds(fault.victim_gap_s),
        "degraded": seconds(fault.degraded_s),
        "lost": "–" if fault.lost is None else f"{fault.lost:.0f} ({100 * (fault.lost_share or 0):.0f} %)",
    }


def _event(event: Event) -> dict[str, Any]:
    facts = ", ".join(f"{name} {value}" for name, value in event.data.items())
    return {
        "t": event.t / 1e6,
        "name": event.name,
        "facts": facts[:MOST_FACTS] + ("…" if len(facts) > MOST_FACTS else ""),
    }


def _drawn(arm: StoredArm, told: Mapping[str, Any]) -> dict[str, Any]:
    """What the charts of an arm are drawn from."""
    checks = [
        {name: check[name] for name in ("metric", "measured", "limit", "word")} for check in told["checks"]
    ]
    label = f"{told['claim']} · {told['tested']} · {told['name']}"
    return {
        "label": label,
        "word": told["word"],
        "checks": checks,
        "series": arm.series and _rounded(arm.series),
    }


def _rounded(series: Series) -> dict[str, Any]:
    """Three significant places: what a chart shows, and a page of an hour stays small."""
    drawn = asdict(series)
    drawn["latency"] = {
        name: [None if value is None else float(f"{value:.3g}") for value in values]
        for name, values in series.latency.items()
    }
    return drawn
