"""The seal of a run: what it left undecided and untested, and digests of its description and of its trials' seals.

A trial that vanished, or was sealed anew, is noticed, also where ``run.json`` vanished with it: a run is known by its
seal or its signature alone. It is noticed where only a part of the run is judged, too. Digests find accidents, not
forgers: whoever can write the run directory can write its seal, too. A signature of the seal finds those
(``plugin.evidence.signature``).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clusters.executables import sha256
from plugin.counts import number_of
from plugin.evidence.records import SCHEMA
from plugin.evidence.store import EVENTS, MANIFEST, TRIAL_FILE, stored_object, trials_in, write_json

RUN_FILE, RUN_SEAL = "run.json", "run-manifest.json"
SIGNATURE = f"{RUN_SEAL}.sig"
MARKS = (RUN_FILE, RUN_SEAL, SIGNATURE)
"""By any of them a run is known."""
LOST = f"has lost its {TRIAL_FILE}, without which it is no trial and is not judged"


def seal_run(directory: Path, undecided: Sequence[str], not_tested: Sequence[str] = ()) -> None:
    """Write the seal, once the session is over. ``undecided``: what was required, or begun and left no trial.

    ``not_tested``: the claims of the suite that were neither tested nor required.
    """
    sealed = {name: sha256(directory / name) for name in (RUN_FILE, *_of_trials(directory))}
    told = {"undecided": [*undecided], "not_tested": [*not_tested]}
    write_json(directory / RUN_SEAL, {"schema": SCHEMA, **told, "sha256": sealed})


def _of_trials(directory: Path) -> list[str]:
    """Of each trial its manifest, or its description where the trial ended before it was sealed."""
    files = (trial / (MANIFEST if (trial / MANIFEST).exists() else TRIAL_FILE) for trial in trials_in(directory))
    return [str(file.relative_to(directory)) for file in files]


def _undescribed(directory: Path) -> list[str]:
    """Where evidence of a trial is, and no trial, whatever the seal knows."""
    places = {file.parent for name in (MANIFEST, EVENTS) for file in (directory / "claims").rglob(name)}
    return sorted(str(place.relative_to(directory)) for place in places if not (place / TRIAL_FILE).exists())


def home_of(directory: Path) -> Path | None:
    """The run that the directory is, or is a part of; ``None`` of what is none of a run."""
    place = directory.resolve()
    return next((each for each in (place, *place.parents) if _is_run(each)), None)


def runs_below(directory: Path) -> list[Path]:
    """The directory itself, or the runs and the single trials that it holds where it is no run and no part of one."""
    files = (file for name in MARKS for file in directory.rglob(name)) if home_of(directory) is None else ()
    runs = sorted({file.parent for file in files})
    loose = [trial for trial in trials_in(directory) if not any(map(trial.is_relative_to, runs))]
    return [*runs, *loose] if runs else [directory]


def _is_run(directory: Path) -> bool:
    return any((directory / name).is_file() for name in MARKS)


def broken_run_seal(directory: Path) -> tuple[str, ...]:
    """What does not agree with the seal, in words; empty where all does, and of a single trial.

    Of a part of a run: what of that part does not agree with the seal of the whole.
    """
    home = home_of(directory)
    if home is None:
        told = f"it has neither {RUN_FILE} nor {RUN_SEAL}: which trials the run had is not known: some may be missing"
        return () if (directory / TRIAL_FILE).is_file() else (told,)
    part = directory.resolve().relative_to(home)
    sealed = stored_object(home / RUN_SEAL)
    if sealed is None:
        # No other trial is missed in the directory of one.
        told = f"the run was never sealed ({RUN_SEAL}): it ended early, so trials may be missing"
        return () if (directory / TRIAL_FILE).is_file() else (told,)
    found = {name: digest for name, digest in {RUN_FILE: "", **digests_of(sealed)}.items() if _lies_in(part, name)}
    here = [name for name in _of_trials(home) if _lies_in(part, name)]
    known = {*map(_what, found)}
    problems = [f"{_what(name)} was added after the run" for name in here if _what(name) not in known]
    problems += [f"{name} {LOST}" for name in _undescribed(home) if _lies_in(part, name) and name not in known]
    for name, expected in found.items():
        if not (home / name).is_file():
            problems.append(f"{_what(name)} is missing: the run had it when it ended")
        elif sha256(home / name) != expected:
            problems.append(f"{_what(name)} was changed after the run")
        elif name.endswith(MANIFEST) and name not in here:
            problems.append(f"{_what(name)} {LOST}")
        elif name.endswith(TRIAL_FILE) and name not in here:
            problems.append(f"{_what(name)} was sealed after the run, in which it had ended early")
    return tuple(problems)


def _lies_in(part: Path, name: str) -> bool:
    return Path(name).is_relative_to(part)


def share_of_run(directory: Path) -> str:
    """Of a part of a run: how many of its trials that is, in words; empty of a whole run and of what is none."""
    home = home_of(directory)
    if home is None or home == directory.resolve():
        return ""
    sealed = {_what(name) for name in digests_of(stored_object(home / RUN_SEAL) or {}) if name != RUN_FILE}
    every = len(sealed) or len(trials_in(home))
    of = number_of(every, "trials")
    return f"{len(trials_in(directory))} of {of} of the run {home.name}: the others are not judged here"


def _what(name: str) -> str:
    """A trial by its directory, anything else by its own name."""
    return name.removesuffix(f"/{MANIFEST}").removesuffix(f"/{TRIAL_FILE}")


def digests_of(sealed: Mapping[str, Any]) -> Mapping[str, str]:
    """The digests of a seal; none where somebody left something else in their place."""
    found = sealed.get("sha256")
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def undecided_of(directory: Path) -> tuple[str, ...]:
    """What the run's own session found required and not decided."""
    return _listed(directory, "undecided")


def not_tested_of(directory: Path) -> tuple[str, ...]:
    """The claims of its suite that the run's own session neither tested nor required."""
    return _listed(directory, "not_tested")


def _listed(directory: Path, name: str) -> tuple[str, ...]:
    found = (stored_object(directory / RUN_SEAL) or {}).get(name)
    return tuple(map(str, found)) if isinstance(found, list) else ()
