"""Workloads: what each is to the rest of the suite, and those that there are, by name.

A workload is a package of its own, declared in a catalogue file (``[workloads]``, ``name = "module"``); that module's
``KIND`` is its ``Workload``. Nothing else knows its name: what metrics there are, which sizes a profile may have, what
evidence is read back and what reports show is asked of all that are declared. See ``docs/extending/workload.md``.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from clusters.declared import Place, Rule, keyed, read, text
from clusters.engines import EngineKind
from clusters.errors import BadInput
from clusters.registry import Known, Registry

if TYPE_CHECKING:
    from clusters.events import Happened
    from plugin.judge.activity import Activity, Connections
    from plugin.judge.analysis import Analysis
    from plugin.judge.definitions import ConditionInfo, MetricInfo
    from plugin.judge.trial import TrialEvidence
    from plugin.reports.section import Section

S = TypeVar("S")

OWN = Path(__file__).parent / "catalogue" / "workloads.toml"
"""Declares the suite's own workloads."""

NAMES = keyed(
    text(pattern=r"[a-z][a-z0-9_]*", what="a name of small letters, digits and _"),
    text(pattern=r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", what="the dotted name of a module"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class FileOption(Generic[S]):
    """A command-line option by which a user gives a workload files, repeatable; of the suite's own workloads alone.

    ``check`` raises ``BadInput`` where they cannot be used, or not with the sizes of the profile, or on that engine.
    """

    name: str
    check: Callable[[S, "Where"], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Where:
    """On what something is to be done: an engine, on so many nodes.

    ``files``: what the user gave the workload; ``parameters``: those of the test, by name. ``size`` gives the profile's
    sizes of any workload.
    """

    engine: EngineKind
    nodes: int
    files: Sequence[Path] = ()
    parameters: Mapping[str, object] = field(default_factory=dict)
    size: "Callable[[Workload[Any]], Any] | None" = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What a part of a test takes, from declared figures: an estimate that ``--dry-run`` shows.

    ``what`` is done, in words that have a plural. Disk is of all nodes together with all copies, memory beside the
    nodes' caches; ``processes`` drive load. ``count`` of what (``unit``) there are, where fewer would take less.
    ``ends_by_itself``: before there is no room left. ``assumes``: what the time is worked out from, in words.
    """

    what: str
    seconds: float = 0.0
    disk_mib: float = 0.0
    memory_mib: float = 0.0
    processes: int = 0
    count: int = 0
    unit: str = ""
    ends_by_itself: bool = False
    assumes: str = ""


CostOf = Callable[[Any, Where], Cost]
"""What something takes, of a workload's sizes on a profile."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Workload(Generic[S]):
    """What a workload is to the rest of the suite.

    ``sizes`` reads the table ``[profiles.<profile>.<name>]``. ``fixtures`` are its pytest fixtures that need those
    sizes, each with the module it is in. ``option``: what it takes of the user's files. ``files``: what its evidence in
    a trial's directory is called, as a glob pattern. Where there is such a file, ``read`` gives what the directory
    holds of it, ``None`` for nothing, and adds to a list what is wrong with it; ``progress`` says in a few words what a
    running one did just now. ``events`` are the classes of its own events; ``phases`` names stretches of a trial's
    timeline, each with the event that begins it, those one of which ends it, and what is done in it. ``parameters``:
    what the values of a claim's parameter of this name must be. ``metrics`` and ``conditions`` are pure functions of
    the judge; ``contradictions`` says in words what in its evidence cannot be true, and ``activity`` what its clients
    did in time: a fault must have hit that; ``connections`` how many they had and when they ended. ``audited``: the
    metrics of what became of its rows, which reports attach as a table. ``answers`` gives by metric, of the results of
    all checks by theirs, what was measured for a column of a source's table, and the ratio; ``None`` where it is a
    number like any other. ``section`` gives what reports show, given the limits of checks by metric; ``None`` for
    nothing. ``costs``: by name what parts of a test take; a claim names its own. ``unfit`` says why the profile's
    sizes, which its first argument gives of any workload, do not suit a claim with such a parameter or cost, by the
    values of its parameters. ``spread``
    gives the sizes with so many processes at least, one for each load generator; by default one process drives it,
    wherever that runs. ``alone_s``: for how long its load must have a cluster of two versions for itself, so that its
    latency can be told. The module is imported at every start of the suite, so what is heavy is imported inside of
    functions, or named for later (``clusters.registry.later``).
    """

    name: str
    title: str
    sizes: Rule[S]
    fixtures: Mapping[str, str]
    option: FileOption[S] | None = None
    files: str = ""
    read: Callable[[Path, list[str]], Any] = lambda directory, problems: None
    progress: Callable[[Path], str] = lambda directory: ""
    events: "Sequence[type[Happened]]" = ()
    phases: "Mapping[str, tuple[type[Happened], Sequence[type[Happened]], str]]" = field(default_factory=dict)
    parameters: Mapping[str, Rule[Any]] = field(default_factory=dict)
    metrics: "Mapping[str, MetricInfo]" = field(default_factory=dict)
    conditions: "Mapping[str, ConditionInfo]" = field(default_factory=dict)
    contradictions: "Callable[[Analysis], Sequence[str]]" = lambda analysis: ()
    activity: "Callable[[Analysis], Activity | None]" = lambda analysis: None
    connections: "Callable[[Analysis], Connections | None]" = lambda analysis: None
    audited: Sequence[str] = ()
    answers: Mapping[str, Callable[[Mapping[str, Any]], tuple[str, str] | None]] = field(default_factory=dict)
    section: "Callable[[TrialEvidence, Mapping[str, float]], Section | None] | None" = None
    costs: Mapping[str, CostOf] = field(default_factory=dict)
    unfit: "Callable[[Callable[[Workload[Any]], Any], Mapping[str, Sequence[object]]], str] | None" = None
    spread: Callable[[S, int], S] = lambda sizes, processes: sizes
    alone_s: Callable[[S], float] = lambda sizes: 0.0

    def left(self, directory: Path) -> bool:
        """Whether a trial's directory holds evidence of it."""
        return bool(self.files) and next(directory.glob(self.files), None) is not None


def activity_of(analysis: "Analysis") -> "Activity | None":
    """What a trial's clients did in time, as far as the workload of its load tells it."""
    told = (WORKLOADS[name].activity(analysis) for name in analysis.evidence.workloads)
    return next((activity for activity in told if activity is not None), None)


def connections_of(analysis: "Analysis") -> "Sequence[Connections]":
    """The clients' connections, of each of a trial's workloads that tells of them."""
    told = (WORKLOADS[name].connections(analysis) for name in analysis.evidence.workloads)
    return [connections for connections in told if connections is not None]


def users() -> Iterator[Workload[Any]]:
    """Those that a user's catalogues declared."""
    return (WORKLOADS[name] for name in WORKLOADS if name not in OWN_NAMES)


def declared(document: Mapping[str, Any], top: Place) -> Mapping[str, str]:
    """The modules of the workloads that a catalogue file declares, by name. Raises ``BadInput``."""
    return NAMES(document.get("workloads", {}), top / "workloads")


WORKLOADS: Registry[Workload[Any]] = Registry("workload", declared(*read(OWN)))
"""All that are declared: the suite's own, and a user's once its catalogue was read."""

KNOWN_COSTS: Known[CostOf] = Known({}, lambda: (workload.costs for workload in WORKLOADS.values()))
"""What parts of tests take, of all workloads by name: a claim names its own."""

OWN_NAMES = frozenset(WORKLOADS)

_PLACES = {name: read(OWN)[1] / "workloads" / name for name in WORKLOADS}
"""Where each was declared."""


DIRECTORIES: list[str] = []
"""Where a user's workloads are, for processes that drive them."""


def declare(modules: Mapping[str, str], top: Place, directory: Path) -> None:
    """Add what a user's file declares; modules may lie beside it. Raises ``BadInput`` naming file and key."""
    place = top / "workloads"
    if modules and str(directory) not in DIRECTORIES:
        DIRECTORIES.append(str(directory))
        sys.path.append(str(directory))
    for name, module in modules.items():
        if _PLACES.get(name) == place / name:
            continue
        if name in WORKLOADS:
            other = _PLACES[name].file
            raise (place / name).wrong(f"{other} declares a workload of this name; rename one of them")
        _check(name, module, place / name)
        WORKLOADS.modules[name] = module
        _PLACES[name] = place / name


def _check(name: str, module: str, place: Place) -> None:
    try:
        kind = getattr(import_module(module), "KIND", None)
    except Exception as error:  # whatever a module of somebody's own may raise
        where = "the file's directory is searched, and then where Python looks for modules"
        raise place.wrong(f"{module!r} cannot be imported ({type(error).__name__}: {error}); {where}") from error
    if not isinstance(kind, Workload) or kind.name != name:
        raise place.wrong(f"module {module!r} must have a KIND that is a Workload of the name {name!r}; add it")


def sizes_missing(workload: Workload[Any], place: Place) -> BadInput:
    """The error where a claim needs the sizes of a workload, and the profile has none."""
    keys = ", ".join(workload.sizes.schema.get("properties", ()))
    return (place / workload.name).wrong(
        f"is missing: the size of {workload.title} on this hardware; add the table ({keys}), or choose another profile"
    )
