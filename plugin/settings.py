"""What the user asked for: the options, read once into a typed ``Settings``, and refused where they make no sense."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clusters.declared import suggestion
from clusters.engines import ENGINES, SUBJECT, title
from clusters.errors import BadInput
from clusters.generators import MOST_GENERATORS
from clusters.substrates import LOCAL, SUBSTRATES
from plugin.options import AUTO, Keep, choices
from plugin.suites import Suite
from plugin.workloads import WORKLOADS


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What the user asked for. Paths are absolute; nothing here was looked up or started yet."""

    engine: str
    substrate: str
    topology: str | None
    profile: str
    suite: Suite
    strict_suite: bool
    """Whether ``--suite`` was given: then every claim of the suite that can be evaluated is required."""
    claims: tuple[str, ...]
    """Which claims alone are run and required: ids, or patterns of them; empty: all."""
    catalogues: tuple[Path, ...]
    objects: tuple[Path, ...]
    """Directories of the user's own checks of objects."""
    files: Mapping[str, tuple[Path, ...]]
    """By workload the user's files for it."""
    plan: str | None
    """Of changes of version: a path to draw, or a file as seen from ``home``."""
    home: Path
    """Where pytest was started."""
    path: str | None
    """Of the engine's program, and which versions of it: as its own options say."""
    versions: tuple[str, ...]
    cluster_settings: Mapping[str, str]
    """Of the engine's own settings, those that each new cluster is given."""
    run_dir: Path
    seed: int
    keep: Keep | None
    """What of clusters is there after the run."""
    generators: int | None
    """How many load generators a cluster has; ``None``: as many as the profile says."""
    generator_image: str | None
    allow_disruption: bool
    """Whether a cluster that is there already may be loaded and disturbed."""
    dry_run: bool
    at_hand_only: bool
    """Whether nothing may be downloaded: ``--claims`` and ``--dry-run`` say what is at hand."""
    report: Path | None
    """Where the page goes; ``None``: into the run directory, or what ``--judge`` was given."""
    sign: Path | None
    """The private key that signs the run."""

    @property
    def requires(self) -> bool:
        """Whether claims must be decided: those of a suite that was asked for, or those that were named."""
        return self.strict_suite or bool(self.claims)


def _refuse_adoption(engine: str, substrate: str, *, allowed: bool) -> None:
    """Raise ``BadInput`` for what makes no sense of a cluster that is there already, or of one that is not."""
    there = SUBSTRATES[substrate].there_already
    if allowed and not there:
        raise BadInput(f"--allow-disruption: clusters of {substrate} are Roachproof's own; leave it out")
    if there and (engine == AUTO or ENGINES[engine].adopt is None):
        able = " or ".join(name for name, kind in ENGINES.items() if kind.adopt)
        raise BadInput(f"--engine {engine}: is not taken over on --substrate {substrate}; give --engine {able}")


def _refuse_generators(substrate: str, number: int | None, image: str | None) -> None:
    """Raise ``BadInput`` for load generators where there can be none."""
    if number is not None and not 0 <= number <= MOST_GENERATORS:
        raise BadInput(f"--generators {number}: must be from 0 to {MOST_GENERATORS}; 0 for none")
    given = f"--generators {number}" if number else f"--generator-image {image}" if image else ""
    if given and SUBSTRATES[substrate].generators is None:
        able = " or ".join(name for name, kind in SUBSTRATES.items() if kind.generators)
        raise BadInput(
            f"{given}: {substrate} has no load generators of its own; leave it out, or give --substrate {able}"
        )
    if image and number == 0:
        raise BadInput(f"--generator-image {image}: there are none with --generators 0; leave one of them out")


def _settings_of(get: Callable[..., Any], engine: str, substrate: str) -> Mapping[str, str]:
    """What each cluster is given of its engine's settings. Raises ``BadInput`` where there is nothing to give it to."""
    found = dict[str, str]()
    for name, choice in choices():
        for given in (get(choice.setting, None) or ()) if choice.setting else ():
            key, equals, value = (part.strip() for part in given.partition("="))
            if not (key and equals):
                raise BadInput(f"{choice.setting} {given}: is not of the form NAME=VALUE, as {choice.setting} a.b=off")
            if name != engine:
                raise BadInput(f"{choice.setting} {given}: is of {title(name)}; leave it out, or give --engine {name}")
            if SUBSTRATES[substrate].there_already:
                raise BadInput(
                    f"{choice.setting} {given}: a cluster that is there already keeps its own settings; leave it out"
                )
            if found.setdefault(key, value) != value:
                raise BadInput(f"{choice.setting} {key}: is given twice, {found[key]} and {value}; leave one out")
    return found


def read(config: pytest.Config, default_run_name: str) -> Settings:
    """The settings of this session. Raises ``BadInput`` for combinations that make no sense."""
    get: Any = config.getoption
    engine = get("--engine")
    if engine not in (*ENGINES, AUTO):
        raise BadInput(f"--engine {engine}: is unknown; {suggestion(engine, [*ENGINES, AUTO])}")
    if get("--substrate") not in SUBSTRATES:
        raise BadInput(f"--substrate {get('--substrate')}: is unknown; {suggestion(get('--substrate'), SUBSTRATES)}")
    if get("--keep") == Keep.RUNNING and SUBSTRATES[get("--substrate")].leave is None:
        raise BadInput(f"--keep running: not to be had on {get('--substrate')}; give --keep, or --substrate {LOCAL}")
    if get("--allow-disruption") or get("--substrate") != LOCAL:  # else no substrate is imported yet
        _refuse_adoption(engine, get("--substrate"), allowed=get("--allow-disruption"))
    _refuse_generators(get("--substrate"), get("--generators"), get("--generator-image"))
    asked, path, versions = SUBJECT if engine == AUTO else engine, None, ()
    own = _settings_of(get, asked, get("--substrate"))
    for name, choice in choices():
        # An engine that a conftest.py registers comes too late to have options.
        one = get(choice.path, None) if choice.path else None
        several = tuple(get(choice.version, None) or ()) if choice.version else ()
        for option, value in [(choice.path, one), *((choice.version, one_of) for one_of in several)]:
            if value is not None and not value.strip():
                raise BadInput(
                    f"{option}: is empty, and would stand for any; name what is to be tested, or leave it out"
                )
        if one and several:
            raise BadInput(f"{choice.path} and {choice.version} exclude each other: a path or versions, not both")
        if name == asked:
            path, versions = one, several
        elif one or several:
            given = choice.path if one else choice.version
            runs = f"may run no {title(name)}" if engine == AUTO else f"runs no {title(name)}"
            raise BadInput(f"--engine {engine} {runs}: leave out {given}, or give --engine {name}")
    seed = get("--seed")
    if seed is not None and not 0 <= seed < 2**31:
        raise BadInput(f"--seed {seed}: must be from 0 to {2**31 - 1}; leave it out to have one drawn")
    root, home = config.rootpath, config.invocation_params.dir
    report = (home / get("--report")).absolute() if get("--report") else None
    if report and report.suffix != ".html":
        raise BadInput(f"--report {report}: must be named .html, so that nothing else is overwritten")
    if report:
        from plugin.evidence.store import TRIAL_FILE

        if trial := next((d for d in report.parents if (d / TRIAL_FILE).exists()), None):
            raise BadInput(f"--report {report}: {trial} is sealed evidence; give a place outside of it")
    return Settings(
        engine=engine,
        substrate=get("--substrate"),
        topology=get("--topology"),
        profile=get("--profile"),
        suite=Suite(get("--suite") or Suite.GATE),
        strict_suite=get("--suite") is not None,
        claims=tuple(get("--claim")),
        catalogues=tuple((home / name).absolute() for name in get("--catalogue")),
        objects=tuple((home / name).absolute() for name in get("--objects")),
        files={
            name: tuple((home / path).absolute() for path in get(workload.option.name, None) or ())
            for name, workload in WORKLOADS.items()
            if workload.option
        },
        plan=get("--plan"),
        home=home,
        path=path,
        versions=versions,
        cluster_settings=own,
        run_dir=(home / get("--run-dir")).absolute() if get("--run-dir") else root / ".roachproof" / default_run_name,
        seed=seed if seed is not None else int.from_bytes(os.urandom(4)) >> 1,
        keep=get("--keep") and Keep(get("--keep")),
        generators=get("--generators"),
        generator_image=get("--generator-image") or None,
        allow_disruption=get("--allow-disruption"),
        dry_run=get("--dry-run"),
        at_hand_only=get("--dry-run") or get("--claims"),
        report=report,
        sign=(home / get("--sign")).absolute() if get("--sign") else None,
    )
