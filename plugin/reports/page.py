"""The interactive page: one file for one or several runs, which holds all that it needs."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby
from pathlib import Path
from typing import Any

from markupsafe import Markup
from msgspec import to_builtins

from clusters.engines import SUBJECT, is_control
from clusters.events import ClocksCompared
from plugin.called import called
from plugin.claims import Claim
from plugin.counts import number_of
from plugin.differences import Differences, changed
from plugin.evidence.events import Event, ObjectLooked, ProcessesSeen
from plugin.evidence.store import write
from plugin.release import release
from plugin.reports.bands import FAULTED
from plugin.reports.builds import tested_of
from plugin.reports.charts import Chart, as_told, clock
from plugin.reports.ending import concluded, left_out
from plugin.reports.reasons import decided, meaning
from plugin.reports.section import Beside
from plugin.reports.series import Resilience
from plugin.reports.source_tables import beside
from plugin.reports.stored_run import NOT_AS_LEFT, StoredRun, StoredTrial, names_of, told_of
from plugin.reports.text import ASSETS, SIGNS, capital, limit_text, machine, measured_text, rendered, word
from plugin.reports.text import shown as shown_result
from plugin.reports.timeline import timeline_of
from plugin.result import BAD_INPUT, NO_VERDICT, NOT_AS_EXPECTED
from plugin.status import Conclusion

UNSURE = dict.fromkeys(("inconclusive", BAD_INPUT, *NO_VERDICT), "unsure")
STYLES = {"pass": "good", "refuted": "bad", NOT_AS_EXPECTED: "bad", **UNSURE}
SABOTAGES = "Sabotages: expected to be refuted, or inconclusive; no part of the verdict"
MOST_EVENTS = 500  # events listed of one trial; a run of hours has many, and its charts show them all
MOST_FACTS = 300
FOLDED = ("pass", "reported")
"""Outcomes of checks that a reader opens who wants to see them."""
UNSEEN = "not evaluated"
"""That of checks which nothing here could decide: in a fold of their own, below those that decided."""
COSTS = (
    ("recovery", "recovery_s", "from undoing the fault to the whole cluster"),
    ("gap", "gap_s", "longest stretch without a success on any range"),
    ("gap through the hit node", "victim_gap_s", ""),
    ("degraded", "degraded_s", "time below 80 % of the baseline"),
    ("writes not made", "lost", "so many fewer than at the baseline's rate; none was acknowledged, so none is lost"),
)
"""Columns of what a fault cost: the head, what of it, and what that is."""
GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"
WORST = ("bad", "unsure")  # styles of trials that are listed before all others, in this order
FIRST = ("refuted", "inconclusive")  # outcomes of checks that are listed before all others, in this order


def write_page(
    path: Path,
    runs: Sequence[StoredRun],
    *,
    judge: str,
    control: str = "",
    ended: Conclusion | None = None,
    differs: Mapping[Path, Differences] | None = None,
) -> Path:
    """Write the page of these runs. ``judge``: options that judge them again; ``control``: a control's notice.

    ``ended``: what the session came to; by what is stored where it is not given. ``differs``: of trials that were
    judged again, what is not as it was stored; the page then says on top that it is no run's own.
    """
    names = names_of(runs)
    trials = [(trial, name) for run, name in zip(runs, names, strict=True) for trial in run.trials]
    on = [machine(run.described.get("host") or {}) for run in runs for _ in run.trials]
    several = len(runs) > 1
    shown = [_trial(trial, at, name if several else "", on[at]) for at, (trial, name) in enumerate(trials)]
    for told in shown:
        told["differs"] = (differs or {}).get(told["of"].directory, Differences())
    drawn = {"trials": [_drawn(told, name) for (_, name), told in zip(trials, shown, strict=True)]}
    plain = _short(to_builtins(drawn, str_keys=True))
    data = json.dumps(plain, separators=(",", ":"), allow_nan=False)
    claims, sabotages = (
        _worst_first(told for told in shown if told["of"].sabotage is wanted) for wanted in (False, True)
    )

    tested = ", ".join(dict.fromkeys(told["tested"] for told in shown)) or "nothing was tested"
    ended = ended or concluded(runs, control=bool(control))
    text = rendered(
        "page.html",
        title=f"Roachproof: {tested}",
        ended=ended,
        runs=[{"name": name, "facts": _run_facts(run)} for run, name in zip(runs, names, strict=True)],
        trials=shown,
        groups=(("", claims), (SABOTAGES, sabotages)),
        summary="; ".join(filter(None, [_counted("Trials", claims), _counted("sabotages", sabotages)])),
        undecided=told_of(runs, "undecided"),
        not_tested=[f"{capital(told)}." for told in left_out(runs)],
        problems=told_of(runs, "problems"),
        not_as_left=NOT_AS_LEFT,
        control=control,
        judged_again=_judged_again(differs, len(shown)) if differs is not None else "",
        words=_words(told["of"].claim for told in shown),
        faulted=FAULTED,
        judge=called("gate", judge),
        data=Markup(data.replace("<", "\\u003c")),  # noqa: S704 - escaped here
        asset=lambda name: Markup((ASSETS / name).read_text(encoding="utf-8")),  # noqa: S704 - our own files
        clock=clock,
        facts_of=_facts,
        number_of=number_of,
    )
    return write(path, text)


def _judged_again(judged: Mapping[Path, Differences], trials: int) -> str:
    """What a page of so many ``trials`` says on top that was made by a replay. ``judged``: what differs, by trial."""
    told = changed(judged.values()) or "every verdict is as it was stored"
    added = sum(len(differs.added) for differs in judged.values())
    told += f"; {number_of(added, 'checks are')} new" if added else ""
    told += f"; {trials - len(judged)} could not be judged" if len(judged) < trials else ""
    return f"Judged again by Roachproof {release()}, with its limits: {told}."


def _words(claims: Iterable[Claim | None]) -> Sequence[tuple[str, str]]:
    """The project's words and what they mean, and the works that these claims are taken from.

    No words where the documents are not at hand.
    """
    lines = GLOSSARY.read_text(encoding="utf-8").splitlines() if GLOSSARY.exists() else []
    rows = [line.strip("|").split("|", 1) for line in lines if line.startswith("| ")]
    words = {row[0].strip(): _unmarked(row[1].strip()) for row in rows[1:]}
    sources = (claim.source for claim in claims if claim and claim.source and claim.source.about)
    words |= {source.work: source.cited for source in sources}
    return sorted(words.items(), key=lambda word: word[0].casefold())


def _unmarked(text: str) -> str:
    """Without Markdown's marks; of a link its words."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", text)


def _short(value: Any) -> Any:
    """The same with ``values`` and ``shares`` as stretches of one value, ``[value, how many, …]``, where that is short.

    Baselines, and nodes that are up, are the same for hours; the page makes them long again.
    """
    if isinstance(value, Mapping):
        return {name: _runs(part) if name in ("values", "shares") else _short(part) for name, part in value.items()}
    return [_short(part) for part in value] if isinstance(value, list | tuple) else value


def _runs(values: Sequence[Any]) -> Any:
    runs = [part for value, same in groupby(values) for part in (value, sum(1 for _ in same))]
    return {"runs": runs} if len(runs) < len(values) else values


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
        "Roachproof": run.described.get("suite_revision"),
    }
    return {name: str(value) for name, value in facts.items() if value}


def _test(trial: StoredTrial) -> str:
    """The test's name without its file; the number of an A/A run."""
    name = str(trial.described.get("test", "")).rpartition("::")[2] or trial.directory.name
    target = str(trial.described.get("target", ""))
    return f"{name} #{target.partition('#')[2]}" if "#" in target and "#" not in name else name


def _trial(trial: StoredTrial, index: int, run: str, on: str) -> dict[str, Any]:
    described, claim = trial.described, trial.claim
    verdict: Mapping[str, Any] = trial.verdict or {"results": (), "conditions": (), "tuned": described.get("tuned", ())}
    context = {**trial.context, "tuned": "; ".join(map(str, verdict["tuned"])), **trial.builds}
    why, points = decided(trial)
    sections = trial.sections.values()
    paper = beside(claim, trial.verdict, machine=on, sections=sections) if claim and trial.verdict else []
    own = [section.html(index) for section in sections]
    groups = _groups(trial, paper)
    checks = [_check(result, {point.name for point in points}) for result in _in_order(verdict["results"])]
    broken = [c for c in verdict["conditions"] if c["name"] in ("integrity", "no_errors") and not c["met"]]
    return {
        "of": trial,
        "anchor": f"a{index}",
        "index": index,
        "name": f"{run}: {_test(trial)}" if run else _test(trial),
        "control": is_control(context.get("engine", SUBJECT)),
        "tested": tested_of(described) or "no database",
        "word": shown_result(trial.result),
        "sign": SIGNS.get(trial.result.outcome, "…"),
        "style": STYLES.get(trial.result.outcome, "none"),
        "why": why,
        "points": points,
        "notes": [f"{capital(note)}." for note in trial.notes],
        "found": [told for each in sections for told in each.sentences if told not in each.notices],
        "problems": [c["why"] for c in broken if c["name"] not in {point.name for point in points}]
        + [trial.problem] * bool(trial.problem),
        "facts": {name: value for name, value in context.items() if value},
        "checks": checks,
        "told": [check for check in checks if check["outcome"] not in (*FOLDED, UNSEEN)],
        "folds": [
            (title, rows)
            for title, outcomes in ((_folding(checks), FOLDED), (_unseen(checks), (UNSEEN,)))
            if (rows := [check for check in checks if check["outcome"] in outcomes])
        ],
        "costs": _costs(trial),
        "groups": groups,
        "timed": "time" in groups,
        "paper": paper,
        "own": own,
        "conditions": verdict["conditions"],
        "events": [event for event in trial.events if _told(event)][:MOST_EVENTS],
    }


def _costs(trial: StoredTrial) -> Sequence[tuple[str, str, Sequence[str]]]:
    """Head, meaning and cells of each column that has something to say of one fault at least: not all have a probe."""
    faults = trial.series.resilience if trial.series else ()
    known = (column for column in COSTS if any(getattr(fault, column[1]) is not None for fault in faults))
    return [(head, meaning, [_cost(fault, of) for fault in faults]) for head, of, meaning in known]


def _cost(fault: Resilience, of: str) -> str:
    value = getattr(fault, of)
    if value is None:
        return "–"
    return f"{value:.0f} ({100 * (fault.lost_share or 0):.0f} %)" if of == "lost" else f"{value:.1f} s"


def _told(event: Event) -> bool:
    """Whether an event is listed: not that all objects, or all processes, are as ever, or that there is one clock."""
    match event.what:
        case ObjectLooked(wrong=wrong):
            return bool(wrong)
        case ProcessesSeen(others=others):
            return bool(others)
        case ClocksCompared(own=own, sources=sources, unread=unread):
            return bool(unread) or any(source.clock != own for source in sources.values())
    return True


def _worst_first(shown: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Trials as they are listed: what somebody must look at comes first."""
    return sorted(shown, key=lambda told: WORST.index(told["style"]) if told["style"] in WORST else len(WORST))


def _in_order(results: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What decided first."""
    return sorted(results, key=lambda r: FIRST.index(r["outcome"]) if r["outcome"] in FIRST else len(FIRST))


def _folding(checks: Sequence[Mapping[str, Any]]) -> str:
    """What the fold is called that hides the checks that hold, and those that are only reported."""
    passed, reported = (sum(check["outcome"] == outcome for check in checks) for outcome in FOLDED)
    return f"{passed} passed, {reported} reported"


def _unseen(checks: Sequence[Mapping[str, Any]]) -> str:
    """What the fold is called that hides the checks which this run could not decide."""
    count = sum(check["outcome"] == UNSEEN for check in checks)
    return f"{count} not evaluated: this profile, version or plan cannot show {'it' if count == 1 else 'them'}"


def _check(result: Mapping[str, Any], told: AbstractSet[str]) -> dict[str, Any]:
    """``told``: checks whose examples are shown already."""
    check, measured = result["check"], result["measurement"]
    # What passes or is refuted says in words what the columns beside it say.
    why = "" if result["outcome"] in ("pass", "refuted") else result["why"]
    note = "" if measured["note"] in why else measured["note"]
    return {
        "metric": check["metric"],
        "meaning": meaning(check["metric"]),
        "measured": measured_text(result),
        "limit": limit_text(check) or "–",
        "kind": check["kind"],
        "mark": check["mark"],
        "source": check["source"],
        "word": f"{SIGNS.get(result['outcome'], '…')} {word(result['outcome'])}",
        "outcome": result["outcome"],
        "style": STYLES.get(result["outcome"], "none"),
        "why": "; ".join(filter(None, [why, note])),
        "examples": () if check["metric"] in told else measured["examples"],
    }


def _facts(event: Event) -> str:
    facts = ", ".join(f"{name} {_plain(value)}" for name, value in event.data.items())
    return facts[:MOST_FACTS] + ("…" if len(facts) > MOST_FACTS else "")


def _plain(value: object) -> str:
    """A JSON value as people write it."""
    if isinstance(value, Mapping):
        return " ".join(f"{name}={_plain(item)}" for name, item in value.items()) or "none"
    if isinstance(value, list):
        return " ".join(map(_plain, value)) or "none"
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def _drawn(told: Mapping[str, Any], run: str) -> dict[str, Any]:
    """What the charts of a trial are drawn from. ``names``: from what is common to what is its own."""
    trial: StoredTrial = told["of"]
    names = [trial.claim_id, told["tested"], run, _test(trial)]
    results = _in_order(trial.verdict["results"]) if trial.verdict else ()
    checks = [
        {name: check[name] for name in ("metric", "measured", "limit", "word")}
        | {"value": result["measurement"]["value"]}
        for check, result in zip(told["checks"], results, strict=True)
    ]
    return {
        "names": names,
        "label": " · ".join([trial.claim_id, told["tested"], told["name"]]),
        "word": told["word"],
        "sabotage": trial.sabotage,
        "checks": checks,
        "groups": told["groups"],
    }


def _groups(trial: StoredTrial, paper: Sequence[Beside]) -> dict[str, Sequence[Chart]]:
    """The trial's charts, by the place of the page that they are drawn in."""
    found: dict[str, Sequence[Chart]] = {f"paper{i}": table.charts for i, table in enumerate(paper)}
    for section in trial.sections.values():
        found |= section.charts
    if trial.series is not None:
        found["time"] = timeline_of(trial.series, trial.sections.values())
    told = {name: as_told(charts, trial.zero) for name, charts in found.items()}
    return {name: charts for name, charts in told.items() if charts}
