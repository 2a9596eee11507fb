"""What a run and a claim's test say of themselves in JUnit XML, for machines that read nothing else."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from clusters.engines import is_control
from plugin.evidence.redaction import redacted
from plugin.options import AUTO
from plugin.reports.builds import builds_of, tested_of
from plugin.reports.text import limit_text, measured_text
from plugin.result import HARNESS, NO_VERDICT, Result
from plugin.status import Conclusion


def properties(
    claim: str, *, sabotage: bool, result: Result, verdict: Mapping[str, Any] | None, described: Mapping[str, Any]
) -> Sequence[tuple[str, str]]:
    """Names and values: ``claim``, ``verdict``, ``why``, what was tested, and ``check.<metric>``.

    ``described`` is the trial's ``trial.json``, empty where none was written. The verdict is ``pass``, ``refuted``,
    ``inconclusive`` or ``not evaluated`` as in ``verdict.json``, or else ``harness`` (also of one that ended
    early), ``skipped``, ``bad input``. A sabotage is marked as one, and its verdict says whether it is as expected.
    """
    found = [("claim", claim)]
    if sabotage:
        found.append(("sabotage", "yes"))
    outcome = HARNESS if result.outcome in NO_VERDICT else result.outcome
    found.append(("verdict", f"{result.expected} as expected" if result.expected else outcome))
    if result.why:
        found.append(("why", result.why))
    if tested := tested_of(described):
        found.append(("tested", tested))
    found += builds_of(described).items()
    found += [(f"check.{r['check']['metric']}", _check(r)) for r in (verdict["results"] if verdict else ())]
    return [(redacted(name), redacted(value)) for name, value in found]


def properties_of_run(
    run: Mapping[str, Any],
    described: Iterable[Mapping[str, Any]],
    directory: Path,
    not_tested: Sequence[str] = (),
    ended: Conclusion | None = None,
) -> Sequence[tuple[str, str]]:
    """Names and values of a run's own: what was tested, how, with which seed, and where its evidence is.

    ``run`` is its ``run.json``, ``described`` the ``trial.json`` of each trial. Engine and version are what trials ran,
    else what was asked for. ``not_tested``: the claims of its suite that were neither tested nor required; ``ended``:
    what it came to, where a claim was to be decided.
    """
    settings: Mapping[str, Any] = run.get("settings") or {}
    contexts = [trial.get("context") or {} for trial in described]

    def ran(name: str) -> list[str]:
        return [*dict.fromkeys(str(context[name]) for context in contexts if context.get(name))]

    engines = ran("engine") or [str(settings.get("engine", ""))]
    found = {
        "engine": ", ".join(engines),
        "version": ", ".join(ran("version") or map(str, settings.get("versions", ()))),
        "control": "yes" if any(is_control(name) for name in engines if name not in ("", AUTO)) else "no",
        **{name: str(settings.get(name, "")) for name in ("seed", "profile", "suite", "substrate")},
        "Roachproof": str(run.get("suite_revision", "")),
        "run directory": str(directory),
        **({"not tested": ", ".join(not_tested)} if not_tested else {}),
        **({"conclusion": ended.text} if ended else {}),
    }
    return [(name, redacted(value)) for name, value in found.items()]


def _check(result: Mapping[str, Any]) -> str:
    told = " ".join(filter(None, [measured_text(result), limit_text(result["check"])]))
    return f"{told}: {result['outcome']}"
