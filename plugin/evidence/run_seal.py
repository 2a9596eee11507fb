"""The seal of a run: what was required of it and not decided, and digests of its description and of its trials' seals.

A trial that vanished, or was sealed anew, is noticed, also where ``run.json`` vanished with it: a run is known by its
seal or its signature alone. Digests find accidents, not forgers: whoever can write the run directory can write its
seal, too. A signature of the seal finds those (``plugin.evidence.signature``).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clusters.executables import sha256
from plugin.evidence.records import SCHEMA
from plugin.evidence.store import MANIFEST, TRIAL_FILE, stored_object, trials_in, write_json

RUN_FILE, RUN_SEAL = "run.json", "run-manifest.json"
SIGNATURE = f"{RUN_SEAL}.sig"


def seal_run(directory: Path, undecided: Sequence[str]) -> None:
    """Write the seal, once the session is over. ``undecided``: what was required and nobody decided."""
    sealed = {name: sha256(directory / name) for name in (RUN_FILE, *_of_trials(directory))}
    write_json(directory / RUN_SEAL, {"schema": SCHEMA, "undecided": [*undecided], "sha256": sealed})


def _of_trials(directory: Path) -> list[str]:
    """Of each trial its manifest, or its description where the trial ended before it was sealed."""
    files = (trial / (MANIFEST if (trial / MANIFEST).exists() else TRIAL_FILE) for trial in trials_in(directory))
    return [str(file.relative_to(directory)) for file in files]


def broken_run_seal(directory: Path) -> tuple[str, ...]:
    """What does not agree with the seal, in words; empty where all does, and of what is no run."""
    if not any((directory / name).exists() for name in (RUN_FILE, RUN_SEAL, SIGNATURE)):
        return ()
    sealed = stored_object(directory / RUN_SEAL)
    if sealed is None:
        return (f"the run was never sealed ({RUN_SEAL}): it ended early, so trials may be missing",)
    found = {RUN_FILE: "", **digests_of(sealed)}
    here = _of_trials(directory)
    known = {*map(_what, found)}
    problems = [f"{_what(name)} was added after the run" for name in here if _what(name) not in known]
    for name, expected in found.items():
        if not (directory / name).is_file():
            problems.append(f"{_what(name)} is missing: the run had it when it ended")
        elif sha256(directory / name) != expected:
            problems.append(f"{_what(name)} was changed after the run")
        elif name.endswith(MANIFEST) and name not in here:
            problems.append(f"{_what(name)} has lost its {TRIAL_FILE}, without which it is no trial and is not judged")
        elif name.endswith(TRIAL_FILE) and name not in here:
            problems.append(f"{_what(name)} was sealed after the run, in which it had ended early")
    return tuple(problems)


def _what(name: str) -> str:
    """A trial by its directory, anything else by its own name."""
    return name.removesuffix(f"/{MANIFEST}").removesuffix(f"/{TRIAL_FILE}")


def digests_of(sealed: Mapping[str, Any]) -> Mapping[str, str]:
    """The digests of a seal; none where somebody left something else in their place."""
    found = sealed.get("sha256")
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def undecided_of(directory: Path) -> tuple[str, ...]:
    """What the run's own session found required and not decided."""
    found = (stored_object(directory / RUN_SEAL) or {}).get("undecided")
    return tuple(map(str, found)) if isinstance(found, list) else ()
