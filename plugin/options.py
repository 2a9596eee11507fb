"""The command line: one group of options, read once into a typed ``Settings``."""

import os
import re
from argparse import ArgumentError
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from clusters.declared import suggestion
from clusters.engines import ENGINES, SUBJECT, Choice, EngineKind
from clusters.errors import BadInput
from clusters.generators import MOST_GENERATORS
from clusters.substrates import LOCAL, SUBSTRATES
from plugin.suites import Suite
from plugin.workloads import WORKLOADS, FileOption

AUTO = "auto"
"""Stands for the subject if it can be had, else for a control that is embedded."""


PROFILE = "laptop"
"""The profile that is meant where none is named."""


class Keep(StrEnum):
    """What is left of clusters after a run."""

    STORES = "stores"
    RUNNING = "running"


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


@contextmanager
def names_told() -> Iterator[None]:
    """Raise ``UsageError`` for an option whose name is taken, which pytest answers with a traceback."""
    try:
        yield
    except (ValueError, ArgumentError) as error:
        if not re.search(r"option.* already (added|used)|conflicting option", str(error)):
            raise
        raise pytest.UsageError(
            f"a conftest.py declares an option whose name is taken: {error}; give it another name "
            "(pytest --help has those of Roachproof)"
        ) from error


def add(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("roachproof", "Roachproof: may this CockroachDB version go into production?")
    option = group.addoption
    option(
        "--engine",
        default=SUBJECT,
        metavar="NAME",
        help=f"the database, one of {', '.join(ENGINES)} (default: {SUBJECT}; any other is a control, which says "
        f"nothing about it); {AUTO}: {SUBJECT} if one can be had, else the embedded control",
    )
    option(
        "--substrate",
        default=LOCAL,
        metavar="NAME",
        help=f"where nodes run, one of {', '.join(SUBSTRATES)} (default: {LOCAL})",
    )
    option(
        "--allow-disruption",
        action="store_true",
        help="load and disturb a cluster that Roachproof did not make (--substrate adopted)",
    )
    option(
        "--generators",
        type=int,
        metavar="N",
        help="load comes from so many pods beside the nodes (--substrate kubernetes; default: the profile's number; 0: "
        "it comes from this machine)",
    )
    option(
        "--generator-image",
        metavar="IMAGE",
        help="what those pods run: an image of this very checkout (docs/ci.md builds one)",
    )
    option(
        "--topology",
        metavar="NAME",
        help="a file of clusters/topologies (three, nine-in-three-zones …) for tests that declare none",
    )
    option(
        "--profile",
        default=PROFILE,
        metavar="NAME",
        help=f"class of hardware and size of work (default: {PROFILE}; see plugin/profiles.toml)",
    )
    option(
        "--suite",
        choices=[suite.value for suite in Suite],
        default=None,
        help="choice of claims; when given, every claim of it that can be evaluated here is required (default: gate, "
        "only what is collected is required)",
    )
    option(
        "--claim",
        action="append",
        default=[],
        metavar="ID",
        help="run and require only this claim, or a family: --claim 'survivability*' (repeatable; --claims lists them)",
    )
    option(
        "--default-keyword",
        metavar="EXPRESSION",
        help="the -k that counts when neither -k, -m, --claim nor a path says what to run",
    )
    option(
        "--catalogue", action="append", default=[], metavar="FILE", help="a catalogue of your own claims (repeatable)"
    )
    option(
        "--objects",
        action="append",
        default=[],
        metavar="DIR",
        help="a directory of your own checks of objects, which a change of version must leave as they are (repeatable)",
    )
    for own in _takes_files():
        option(own.name, action="append", default=[], metavar="FILE", help=f"{own.help} (repeatable)")
    option(
        "--plan",
        metavar="FILE",
        help="what a change of version does: a file as plan.json of a trial is, to be followed instead of a plan that "
        "is drawn; or the name of a path to draw (drawn, final …) instead of the suite's",
    )
    for kind, choice in _choices():
        if choice.path:
            option(choice.path, metavar="PATH", help=f"the {kind.name} binary to test")
        if choice.version:
            origin = "of the installed packages" if kind.embedded else "from the cache or the vendor's downloads"
            option(
                choice.version,
                action="append",
                default=[],
                metavar="X",
                help=f"version to test, {origin} (repeatable: every claim runs on each; the same twice is an A/A run)",
            )
    option(
        "--run-dir",
        metavar="DIR",
        help="where the evidence goes (default: .roachproof/<time>-<pid> below the root directory)",
    )
    option("--seed", type=int, metavar="N", help="seed of everything random (default: drawn, and printed)")
    option(
        "--keep",
        nargs="?",
        choices=[*Keep],
        const=Keep.STORES,
        metavar="running",
        help="keep the stores and logs of clusters after the run; --keep running leaves the cluster of a single test "
        "up, and prints how to connect to it and how to end it",
    )
    option(
        "--dry-run",
        action="store_true",
        help="print what would be started, disturbed and checked, in order, and start nothing",
    )
    option(
        "--claims",
        action="store_true",
        help="list the catalogue and what can be evaluated here (-v: in full), and exit",
    )
    option(
        "--judge",
        action="append",
        metavar="DIR",
        help="judge a stored run again with today's limits and exit (repeatable: one page compares them)",
    )
    option("--sign", metavar="KEY", help="sign the run with this private OpenSSH key, once it is over")
    option(
        "--signed-by",
        metavar="KEY.pub",
        help="of --judge: a run that the holder of this key did not sign is inconclusive at best",
    )
    option(
        "--report",
        metavar="FILE",
        help="where the page goes (default: report.html in the run directory; of several --judge comparison.html here)",
    )


def _choices() -> Iterator[tuple[EngineKind, Choice]]:
    """The engines that have options of their own, and those."""
    return ((kind, kind.choice) for kind in ENGINES.values() if kind.choice.path or kind.choice.version)


def _takes_files() -> Iterator[FileOption[Any]]:
    """The options of workloads."""
    return (workload.option for workload in WORKLOADS.values() if workload.option)


def choose(config: pytest.Config) -> None:
    """Let ``--default-keyword`` choose the tests where nothing else does."""
    default = config.getoption("--default-keyword")
    by_path = config.args_source is pytest.Config.ArgsSource.ARGS
    chosen = by_path or config.option.keyword or config.option.markexpr or config.getoption("--claim")
    if default and not chosen:
        config.option.keyword = default


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


def read(config: pytest.Config, default_run_name: str) -> Settings:
    """The settings of this session. Raises ``BadInput`` for combinations that make no sense."""
    get: Any = config.getoption
    engine = get("engine")
    if engine not in (*ENGINES, AUTO):
        raise BadInput(f"--engine {engine}: is unknown; {suggestion(engine, [*ENGINES, AUTO])}")
    if get("substrate") not in SUBSTRATES:
        raise BadInput(f"--substrate {get('substrate')}: is unknown; {suggestion(get('substrate'), SUBSTRATES)}")
    if get("keep") == Keep.RUNNING and SUBSTRATES[get("substrate")].leave is None:
        raise BadInput(f"--keep running: not to be had on {get('substrate')}; give --keep, or --substrate {LOCAL}")
    if get("allow_disruption") or get("substrate") != LOCAL:  # else no substrate is imported yet
        _refuse_adoption(engine, get("substrate"), allowed=get("allow_disruption"))
    _refuse_generators(get("substrate"), get("generators"), get("generator_image"))
    asked, path, versions = ENGINES[SUBJECT if engine == AUTO else engine], None, ()
    for kind, choice in _choices():
        # An engine that a conftest.py registers comes too late to have options.
        one = get(choice.path, None) if choice.path else None
        several = tuple(get(choice.version, None) or ()) if choice.version else ()
        for option, value in [(choice.path, one), *((choice.version, name) for name in several)]:
            if value is not None and not value.strip():
                raise BadInput(
                    f"{option}: is empty, and would stand for any; name what is to be tested, or leave it out"
                )
        if one and several:
            raise BadInput(f"{choice.path} and {choice.version} exclude each other: a path or versions, not both")
        if kind is asked:
            path, versions = one, several
        elif one or several:
            given = choice.path if one else choice.version
            runs = f"may run no {kind.title}" if engine == AUTO else f"runs no {kind.title}"
            raise BadInput(f"--engine {engine} {runs}: leave out {given}, or give --engine {kind.name}")
    seed = get("seed")
    if seed is not None and not 0 <= seed < 2**31:
        raise BadInput(f"--seed {seed}: must be from 0 to {2**31 - 1}; leave it out to have one drawn")
    root, home = config.rootpath, config.invocation_params.dir
    report = (home / get("report")).absolute() if get("report") else None
    if report and report.suffix != ".html":
        raise BadInput(f"--report {report}: must be named .html, so that nothing else is overwritten")
    if report:
        from plugin.evidence.store import TRIAL_FILE

        if trial := next((d for d in report.parents if (d / TRIAL_FILE).exists()), None):
            raise BadInput(f"--report {report}: {trial} is sealed evidence; give a place outside of it")
    return Settings(
        engine=engine,
        substrate=get("substrate"),
        topology=get("topology"),
        profile=get("profile"),
        suite=Suite(get("suite") or Suite.GATE),
        strict_suite=get("suite") is not None,
        claims=tuple(get("claim")),
        catalogues=tuple((home / name).absolute() for name in get("catalogue")),
        objects=tuple((home / name).absolute() for name in get("objects")),
        files={
            name: tuple((home / path).absolute() for path in get(workload.option.name, None) or ())
            for name, workload in WORKLOADS.items()
            if workload.option
        },
        plan=get("plan"),
        home=home,
        path=path,
        versions=versions,
        run_dir=(home / get("run_dir")).absolute() if get("run_dir") else root / ".roachproof" / default_run_name,
        seed=seed if seed is not None else int.from_bytes(os.urandom(4)) >> 1,
        keep=get("keep") and Keep(get("keep")),
        generators=get("generators"),
        generator_image=get("generator_image") or None,
        allow_disruption=get("allow_disruption"),
        dry_run=get("dry_run"),
        at_hand_only=get("dry_run") or get("claims"),
        report=report,
        sign=(home / get("sign")).absolute() if get("sign") else None,
    )
