"""The command line: one group of options. Read at every start of pytest, so nothing of ours is imported for it."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import pytest

from clusters.known import CHOICES, ENGINES, LOCAL, SUBJECT, SUBSTRATES, Choice
from fixtures.workloads.known import FILES
from plugin.option_names import declare
from plugin.suites import Suite

AUTO = "auto"
"""Stands for the subject if it can be had, else for a control that is embedded."""


TOX = ".venv/bin/tox"
"""How commands that are printed call tox: as the README has it installed."""


PROFILE = "laptop"
"""The profile that is meant where none is named."""


DEFAULTS: dict[str, Any] = {}
"""Of each option that was declared."""


class Keep(StrEnum):
    """What is left of clusters after a run."""

    STORES = "stores"
    RUNNING = "running"


def add(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("roachproof", "Roachproof: may this CockroachDB version go into production?")

    def option(name: str, **told: Any) -> None:
        declare(group, name, **told)
        DEFAULTS[name] = told.get("default")

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
    for name, what in FILES.items():
        option(name, action="append", default=[], metavar="FILE", help=f"{what} (repeatable)")
    option(
        "--plan",
        metavar="FILE",
        help="what a change of version does: a file as plan.json of a trial is, to be followed instead of a plan that "
        "is drawn; or the name of a path to draw (drawn, final …) instead of the suite's",
    )
    for engine, choice in choices():
        if choice.path:
            option(choice.path, metavar="PATH", help=f"the {engine} binary to test")
        if choice.version:
            # What can be named by a path can also be brought here; any other is embedded.
            origin = "from the cache or the vendor's downloads" if choice.path else "of the installed packages"
            option(
                choice.version,
                action="append",
                default=[],
                metavar="X",
                help=f"version to test, {origin} (repeatable: every claim runs on each; the same twice is an A/A run)",
            )
        if choice.setting:
            option(
                choice.setting,
                action="append",
                default=[],
                metavar="NAME=VALUE",
                help=f"a setting that each new cluster of {engine} is given, as yours has it (repeatable; verdicts "
                "tell it)",
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
        choices=[keep.value for keep in Keep],
        const=Keep.STORES.value,
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


def choices() -> Iterator[tuple[str, Choice]]:
    """The engines that have options of their own, and those."""
    for name in ENGINES:
        choice = CHOICES[name] if name in CHOICES else ENGINES[name].choice
        if choice.path or choice.version:
            yield name, choice


def any_given(config: pytest.Config) -> bool:
    """Whether the user gave one of them."""
    given = ((config.getoption(name), default) for name, default in DEFAULTS.items())
    return any(value is not None and value is not False and value != default for value, default in given)


def choose(config: pytest.Config) -> None:
    """Let ``--default-keyword`` choose the tests where nothing else does."""
    default = config.getoption("--default-keyword")
    by_path = config.args_source is pytest.Config.ArgsSource.ARGS
    chosen = by_path or config.option.keyword or config.option.markexpr or config.getoption("--claim")
    if default and not chosen:
        config.option.keyword = default
