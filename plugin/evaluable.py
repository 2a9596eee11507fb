"""Which claims can be evaluated with what was asked for, why others cannot, and which trials a suite requires."""

from collections.abc import Set
from itertools import product
from typing import TYPE_CHECKING

from clusters.declared import shown_path
from clusters.engines import ENGINES, SUBJECT
from clusters.errors import BadInput
from clusters.model import Capability
from clusters.substrates import SUBSTRATES
from plugin.evidence.redaction import redacted_json
from plugin.host import carries, drives
from plugin.options import AUTO
from plugin.profiles import node_of_size, profile_named
from plugin.run import Run
from plugin.workloads import WORKLOADS

if TYPE_CHECKING:
    from plugin.claims import Claim
    from plugin.required import Required


def reason_not_evaluated(claim: "Claim", nodes: int, run: Run, engine: str | None = None) -> str | None:
    """Why this claim cannot be evaluated with what was asked for, with figures; ``None`` when it can."""
    if claim.status == "planned":
        return "its test is planned, not written yet"
    if engine and (reason := _no_engine(engine, run)):
        return reason
    if claim.compares_versions and engine is None and len(run.targets) != 2:
        return f"compares two versions{_choosing_versions(run, 'twice')}"
    if claim.changes_versions and engine is None and len(run.targets) < claim.least_versions:
        return f"changes the version{_choosing_versions(run, 'twice or more often')}"
    if SUBSTRATES[run.settings.substrate].there_already and not run.settings.allow_disruption:
        return f"{run.settings.substrate} clusters are loaded and disturbed only with --allow-disruption"
    missing = claim.capabilities - offered(run, claim, engine) if claim.capabilities else frozenset()
    if missing:
        return f"{_meant(run, engine)} on {run.settings.substrate} cannot {_named(missing, run)}"
    if why := _unfit(claim, run):
        return why
    if (
        Capability.REBALANCE in claim.capabilities
        and run.profile.pace == "fast"
        and not SUBSTRATES[run.settings.substrate].fast()
    ):
        return (
            f"profile {run.profile.name} counts on servers that were started with a fast pace of repair, and those of "
            f"this {run.settings.substrate} cluster were not: give a --profile of the default pace, or let its owner "
            "give them that pace (docs/kubernetes.md)"
        )
    if not nodes_here(run):
        return drives(run.profile, run.host, generators=run.generators)
    return carries(run.profile, run.host, nodes) or _too_large(claim, nodes, run)


def nodes_here(run: Run) -> bool:
    """Whether nodes run on this host; of others' room their substrate knows."""
    return SUBSTRATES[run.settings.substrate].local


def _unfit(claim: "Claim", run: Run) -> str:
    """Why the profile's sizes do not suit the claim in this suite, as workloads say that it names something of."""
    for workload in WORKLOADS.values():
        asked = workload.parameters.keys() & claim.parameters.keys() or workload.costs.keys() & {*claim.costs}
        if workload.unfit and asked and (why := workload.unfit(run.size, run.parameters_for(claim))):
            return why
    return ""


def _choosing_versions(run: Run, times: str) -> str:
    """What is to be said where too few versions were asked for, or too many."""
    kind = ENGINES[run.settings.engine if run.settings.engine in ENGINES else SUBJECT]
    if not kind.choice.version:
        return f", and no option chooses those of {kind.title}"
    return f": give the old and the new one with {kind.choice.version}, {times}"


def _too_large(claim: "Claim", nodes: int, run: Run) -> str | None:
    """Why this host cannot give nodes the sizes of the claim's parameters; a control group grants cores nobody has."""
    if Capability.NODE_RESOURCES not in claim.capabilities:
        return None
    for value in claim.parameters_for(run.settings.suite).get("sizes", ()):
        for size in str(value).split():
            if size.isalpha():
                reason = carries(profile_named(size), run.host, nodes)
            else:
                cpus = node_of_size(size, run.profile.node).cpus or 0.0
                has = f"this host has {run.host.cores:g} cores"
                reason = f"{has}, and a node of size {size} is to get {cpus:g}" if cpus > run.host.cores else None
            if reason:
                return reason
    return None


def _named(missing: frozenset[Capability], run: Run) -> str:
    why = "; ".join(filter(None, map(SUBSTRATES[run.settings.substrate].why_not, sorted(missing))))
    return ", ".join(sorted(missing)) + (f" ({why})" if why else "")


def offered(run: Run, claim: "Claim", engine: str | None = None) -> frozenset[Capability]:
    """Which of the claim's capabilities engine and substrate have together; known without starting either."""
    able = ENGINES[_meant(run, engine)].capabilities
    return SUBSTRATES[run.settings.substrate].offered(claim.capabilities & able)


def _meant(run: Run, engine: str | None) -> str:
    """The name of the engine of a sabotage, or else of the run: of ``auto`` that which is found."""
    chosen = engine or run.settings.engine
    return run.engine().kind.name if chosen == AUTO else chosen


def claims(run: Run, *, whole: bool = False) -> "list[Claim]":
    """The claims of the suite that can be evaluated here; of the ``whole`` suite also those that nobody chose."""
    suite = run.settings.suite
    asked = (claim for claim in run.catalogue if suite in claim.suites and (whole or claim.id in run.chosen))
    return [claim for claim in asked if reason_not_evaluated(claim, most_nodes(claim, run), run) is None]


def most_nodes(claim: "Claim", run: Run, begins: int = 0) -> int:
    """How many nodes a trial of the claim has at the most, with those that join by a plan which is given.

    ``begins``: how many the cluster of a test begins with; as the claim's parameters say where that is not given.
    """
    most = max(begins, claim.nodes_for(run.settings.suite))
    parameters = run.parameters_for(claim)
    if run.plan is None or not (claim.changes_versions and run.plan.is_for(parameters)):
        return most
    declared = [int(str(value)) for value in parameters.get("nodes", ())]
    return max(most, (begins or max(declared, default=0)) + run.plan.joining)


def required(run: Run) -> "list[Required]":
    """What the suite requires: of each claim that can be evaluated here each trial on each target."""
    from plugin.required import Required

    return [
        Required(claim=claim.id, target=target, parameters=redacted_json(dict(zip(values, combination, strict=True))))
        for claim in claims(run)
        for values in (run.parameters_for(claim),)
        for target in (("",) if claim.takes_versions and len(run.targets) > 1 else run.targets)
        for combination in product(*values.values())
    ]


def left_out(tested: Set[str], run: Run) -> list[str]:
    """The claims of the whole suite that can be evaluated here and are not among these; none where none of ours is.

    ``tested``: with what is required, of which is said by itself that nobody decided it.
    """
    from plugin.catalogue import SHIPPED

    files = set(map(shown_path, SHIPPED))
    if not any(claim.id in tested for claim in run.catalogue if claim.file in files):
        return []
    return [claim.id for claim in claims(run, whole=True) if claim.file in files and claim.id not in tested]


def _no_engine(engine: str, run: Run) -> str | None:
    """Why a sabotage of this engine cannot run here. Other than a claim it needs no engine that was asked for."""
    try:
        run.named(engine)
    except BadInput as error:
        return f"no {engine} to be had: {str(error).splitlines()[0]}"
    return None
