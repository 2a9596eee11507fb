"""The seal of a run: what was required of it and not decided, and digests of its description and of its trials' seals.

A trial that vanished, or was sealed anew, is noticed. Digests find accidents, not forgers: whoever can write the run
directory can write its seal, too. A signature of the seal finds those (``plugin.evidence.signature``).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plugin.evidence.records import SCHEMA
from plugin.evidence.store import MANIFEST, digest, stored_object, trials_in, write_json

RUN_FILE, RUN_SEAL = "run.json", "run-manifest.json"


def seal_run(directory: Path, undecided: Sequence[str]) -> None:
    """Write the seal, once the session is over. ``undecided``: what was required and nobody decided."""
    files = [RUN_FILE, *(f"{trial.relative_to(directory)}/{MANIFEST}" for trial in trials_in(directory))]
    sealed = {name: digest(directory / name) for name in files if (directory / name).exists()}
    write_json(directory / RUN_SEAL, {"schema": SCHEMA, "undecided": [*undecided], "sha256": sealed})


def broken_run_seal(directory: Path) -> tuple[str, ...]:
    """What does not agree with the seal, in words; empty where all does, and of what is no run."""
    if not (directory / RUN_FILE).exists():
        return ()
    sealed = stored_object(directory / RUN_SEAL)
    if sealed is None:
        return (f"the run was never sealed ({RUN_SEAL}): it ended early, so trials may be missing",)
    found = digests_of(sealed)
    here = {f"{trial.relative_to(directory)}/{MANIFEST}" for trial in trials_in(directory)}
    problems = [f"{name.removesuffix(f'/{MANIFEST}')} was added after the run" for name in sorted(here - found.keys())]
    for name, expected in found.items():
        what = name.removesuffix(f"/{MANIFEST}")
        if not (directory / name).is_file():
            problems.append(f"{what} is missing: the run had it when it ended")
        elif digest(directory / name) != expected:
            problems.append(f"{what} was changed after the run")
    return tuple(problems)


def digests_of(sealed: Mapping[str, Any]) -> Mapping[str, str]:
    """The digests of a seal; none where somebody left something else in their place."""
    found = sealed.get("sha256")
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def undecided_of(directory: Path) -> tuple[str, ...]:
    """What the run's own session found required and not decided."""
    found = (stored_object(directory / RUN_SEAL) or {}).get("undecided")
    return tuple(map(str, found)) if isinstance(found, list) else ()
