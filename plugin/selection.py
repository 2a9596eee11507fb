"""Which tests of claims a session runs, with which arguments, and where each is evaluated."""

import re
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.mark.expression import Expression

from clusters.declared import shown_path, suggestion
from clusters.engines import ENGINES
from clusters.errors import BadInput
from clusters.model import Topology
from clusters.substrates import SUBSTRATES
from clusters.topology import load as load_topology
from clusters.topology import of as topology_of
from plugin.evaluable import most_nodes, reason_not_evaluated
from plugin.evidence.redaction import HIDDEN, redacted, redacted_json
from plugin.options import AUTO, Keep
from plugin.ours import in_claims
from plugin.profiles import profile_named, shipped
from plugin.run import Run
from plugin.workloads import WORKLOADS, Where, Workload

if TYPE_CHECKING:
    from plugin.claims import Claim

KEYWORDS: Mapping[str, Set[str]] = {"claim": set(), "sabotage": {"engine"}}
"""The keyword arguments that each marker which names a claim takes."""

KEPT = "cluster"
"""The fixture whose cluster ``--keep running`` leaves up."""

GIVEN: pytest.StashKey[list[pytest.Mark]] = pytest.StashKey()
"""The markers of hardware that a test was given here, beside those of its author."""


def claim_id(item: pytest.Item) -> tuple[str | None, bool]:
    """The claim that a test is about, and whether it sabotages it. Raises ``BadInput`` for a malformed marker."""
    found = [marker for name in KEYWORDS if (marker := item.get_closest_marker(name)) is not None]
    if not found:
        return None, False
    if len(found) > 1:
        raise BadInput(f"{item.nodeid}: is marked as claim and as sabotage; a test is one of the two")
    name, marker = found[0].name, found[0]
    if len(marker.args) != 1 or not isinstance(marker.args[0], str) or set(marker.kwargs) - KEYWORDS[name]:
        raise BadInput(f"{item.nodeid}: @pytest.mark.{name} takes one claim id, for instance {name}('survivability')")
    return marker.args[0], name == "sabotage"


def parameters_of(item: pytest.Item) -> dict[str, object]:
    """The values of the arguments by which the trials of a claim are told apart."""
    callspec = getattr(item, "callspec", None)
    return {name: value for name, value in callspec.params.items() if name != "target"} if callspec else {}


def target_of(item: pytest.Item) -> str:
    """What the test is about, of several versions; nothing where there is one."""
    callspec = getattr(item, "callspec", None)
    return str(callspec.params.get("target", "")) if callspec else ""


def base_name(item: pytest.Item) -> str:
    """The test's name without its parameters, with its file's: what the trials of a claim share."""
    return f"{item.path.stem}-{getattr(item, 'originalname', item.name)}"


def trial_name(item: pytest.Item, target: str) -> str:
    """What a trial's evidence is called. Values that hide a secret are told apart by their places in their lists."""
    values = parameters_of(item)
    plain = [str(value) for value in values.values()]
    hidden = redacted_json(values)
    shown = [HIDDEN if hidden[name] == HIDDEN else redacted(str(value)) for name, value in values.items()]
    parts = [base_name(item), *shown, *([target] if target else [])]
    if shown != plain:
        parts += [str(place) for place in item.callspec.indices.values()]  # type: ignore[attr-defined]
    return "-".join(parts)


def seed_of(item: pytest.Item, run: Run) -> int:
    """The seed of a test: the same for every version and worker, so that two versions are dealt the same."""
    return run.seed_for(f"{claim_id(item)[0]}/{base_name(item)}/{sorted(parameters_of(item).items())}")


def topology_for(item: pytest.Item, run: Run) -> Topology:
    """The shape of the test's cluster: its marker's, else ``--topology``, else one node. Raises ``BadInput``."""
    marker = item.get_closest_marker("topology")
    if marker is None:
        return run.topology
    unknown = set(marker.kwargs) - {"name", "nodes", "zones", "regions"}
    names = [*marker.args, *([marker.kwargs["name"]] if "name" in marker.kwargs else [])]
    wrong = [name for name in names if not isinstance(name, str)]
    if unknown or wrong or len(names) > 1 or (names and len(marker.kwargs) > ("name" in marker.kwargs)):
        raise BadInput(f"{item.nodeid}: @pytest.mark.topology takes a name, or nodes=, zones= and regions=")
    if names:
        return load_topology(names[0])
    shape = dict(marker.kwargs)
    if isinstance(argument := shape.get("nodes"), str):
        if (nodes := parameters_of(item).get(argument)) is None:
            way_out = "let the test take it, and its claim declare its values"
            raise BadInput(f"{item.nodeid}: @pytest.mark.topology: the test has no argument {argument!r}; {way_out}")
        shape["nodes"] = nodes
    try:
        return topology_of(**shape)
    except TypeError as error:
        raise BadInput(f"{item.nodeid}: @pytest.mark.topology: {error}; give nodes=3 or the like") from error


def parametrize(metafunc: pytest.Metafunc, run: Run) -> None:
    """Give a claim's test one instance a version asked for, and one a value of its parameters in the chosen suite.

    A sabotage has the first value alone, whichever suite; where another is what it takes, it declares that itself.
    """
    id_, sabotage = claim_id(metafunc.definition)
    if id_ is None:
        return
    if not sabotage:
        run.seen.add(id_)
    claim = run.catalogue.claim(id_)
    several = len(run.targets) > 1 and not claim.takes_versions
    if "target" in metafunc.fixturenames and several:
        metafunc.parametrize("target", run.targets, indirect=True, scope="function")
    own = {mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")} if sabotage else set()
    for name, values in run.parameters_for(claim).items():
        if name in metafunc.fixturenames and name not in own:
            metafunc.parametrize(name, values[:1] if sabotage else values)


def select(items: list[pytest.Item], run: Run, config: pytest.Config) -> None:
    """Check every test's markers and keep those the suite asks for. Raises ``BadInput`` naming file and way out."""
    kept, dropped = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        id_, sabotage = claim_id(item)
        if id_ is None:
            if in_claims(item, config):
                from plugin.called import called

                raise BadInput(
                    f"{_where(item)}: a test in tests/claims without a claim; add @pytest.mark.claim('…') with an id "
                    f"of the catalogue ({called('gate', '--claims')} lists them), or move the test"
                )
            (dropped if run.settings.claims else kept).append(item)
            continue
        try:
            claim = run.catalogue.claim(id_)
            topology = topology_for(item, run)
            elsewhere = _elsewhere(item, run)
            engine = sabotaged_engine(item)
        except BadInput as error:
            raise BadInput(f"{_where(item)}: {error}") from error
        if not sabotage:
            _check_sentence(item, claim, config)
        if id_ not in run.chosen or (not sabotage and run.settings.suite not in claim.suites):
            dropped.append(item)
            continue
        kept.append(item)
        if not sabotage and item.get_closest_marker("topology"):
            _check_nodes(item, len(topology.nodes), claim, run)
        if config.pluginmanager.hasplugin("xdist"):
            item.add_marker(pytest.mark.xdist_group(f"{len(topology.nodes)}-nodes"))
        if config.option.collectonly:
            continue  # nothing will run, so what could run is not looked for
        nodes = len(topology.nodes) if sabotage else most_nodes(claim, run, len(topology.nodes))
        reason = elsewhere or reason_not_evaluated(claim, nodes, run, engine)
        if reason:
            item.add_marker(pytest.mark.skip(reason=f"not evaluated: {reason}"))
        else:
            _has_sizes(item, run)
            if not sabotage and claim.costs:
                from plugin.costs import check_room

                check_room(claim, run, where(item, run), SUBSTRATES[run.settings.substrate])
    named = [run.catalogue.claim(id_) for id_ in run.chosen] if run.settings.claims else []
    if named and all(claim.status == "planned" for claim in named) and not run.seen & run.chosen:
        from plugin.claims import UNBUILT

        raise BadInput(f"--claim {', '.join(run.settings.claims)}: is {UNBUILT}")
    alone = run.settings.claims and not run.settings.strict_suite  # of a suite it is undecided
    if alone and not run.seen & run.chosen:
        raise BadInput(
            f"--claim {', '.join(run.settings.claims)}: no test of it was found in "
            f"{', '.join(map(str, config.args))}; give the directory of its test, too"
        )
    if run.plan and kept:
        _take_plan(kept, run)
    if run.settings.keep is Keep.RUNNING and not config.option.collectonly:
        _check_left_running(kept)
    if kept:
        _take_files(kept, run)
        _take_objects(kept, run)
    items[:] = kept
    if dropped:
        config.hook.pytest_deselected(items=dropped)


def _check_nodes(item: pytest.Item, begins: int, claim: "Claim", run: Run) -> None:
    """Raise ``BadInput`` where the test declares more nodes than its claim, by which is said what can be evaluated."""
    if begins > (most := claim.nodes_for(run.settings.suite)):
        raise BadInput(
            f"{_where(item)}: @pytest.mark.topology has {begins} nodes, and claim {claim.id} at most {most} in suite "
            f"{run.settings.suite}; say nodes = {begins} in {claim.file}, so that room is asked for"
        )


def _take_plan(items: Sequence[pytest.Item], run: Run) -> None:
    """Raise ``BadInput`` where the plan that is given is for none of the tests, or is not for one that would run."""
    takes = [(item, held) for item in items for mark in item.iter_markers("plans") if (held := mark.kwargs.get("fits"))]
    if not [item for item, fits in takes if item.get_closest_marker("skip") or fits(item, run)]:
        raise BadInput(
            f"--plan {run.settings.plan}: none of these tests follows a plan like that; leave it out, or choose one "
            "that does: --claim hot-swap, or hot-swap-failed-node where an update fails"
        )


def _check_left_running(items: Sequence[pytest.Item]) -> None:
    """Raise ``BadInput`` unless one test alone will run that has a cluster, and no other claim's beside it."""
    claims = [item for item in items if claim_id(item)[0]]
    skips = [skip for item in claims if (skip := item.get_closest_marker("skip"))]
    running = [item for item in claims if not item.get_closest_marker("skip")]
    clusters = [item for item in running if KEPT in getattr(item, "fixturenames", ())]
    if len(running) == len(clusters) == 1:
        return
    way_out = "choose one by its node id, or with --claim"
    if not claims:
        why = "no test of a claim was found here"
    elif not running:
        reasons = dict.fromkeys(str(skip.kwargs.get("reason", "skipped")) for skip in skips)
        why = f"none will run here ({'; '.join(reasons)})"
        way_out = "make one run that can"
    elif len(running) > 1:
        why = f"{len(running)} will run here"
    else:
        why = f"the one that will run here, {running[0].name}, has no cluster of its own"
        way_out = "choose one that asks for the fixture cluster, by its node id or with --claim"
    raise BadInput(f"--keep running: leaves the cluster of one test up, and {why}; {way_out}")


def _has_sizes(item: pytest.Item, run: Run) -> None:
    """Raise ``BadInput`` where the profile has no size of a workload that the test asks for, or its files won't do."""
    for workload in WORKLOADS.values():
        if _asks_for(item, workload):
            try:
                sizes = run.size(workload)
                if workload.option:
                    workload.option.check(sizes, replace(where(item, run), files=run.files_of(workload)))
            except BadInput as error:
                raise BadInput(f"{_where(item)}: {error}") from error


def _asks_for(item: pytest.Item, workload: Workload[Any]) -> bool:
    return bool(workload.fixtures.keys() & set(getattr(item, "fixturenames", ())))


def _take_objects(items: Sequence[pytest.Item], run: Run) -> None:
    """Raise ``BadInput`` where checks of objects are given and none of the tests looks at objects."""
    given = run.settings.objects
    if given and not any("objects" in getattr(item, "fixturenames", ()) for item in items):
        raise BadInput(
            f"--objects {shown_path(given[0])}: none of these tests looks at objects; leave it out, or choose one that "
            "does: --claim hot-swap"
        )


def _take_files(items: Sequence[pytest.Item], run: Run) -> None:
    """Raise ``BadInput`` where files are given to a workload that none of the tests has."""
    for workload in WORKLOADS.values():
        files = run.files_of(workload)
        if workload.option and files and not any(_asks_for(item, workload) for item in items):
            raise BadInput(
                f"{workload.option.name} {shown_path(files[0])}: none of these tests has {workload.title}; leave it out"
            )


def where(item: pytest.Item, run: Run) -> Where:
    """On what the test runs: of ``auto`` the engine that is found, the subject where none is."""
    kind = ENGINES[named] if (named := sabotaged_engine(item)) else run.kind
    if not named and run.settings.engine == AUTO:
        with suppress(BadInput):
            kind = run.engine().kind
    return Where(engine=kind, nodes=len(topology_for(item, run).nodes), parameters=parameters_of(item))


def needs_engine(item: pytest.Item) -> bool:
    """Whether the test will start the database that was asked for."""
    id_, sabotage = claim_id(item)
    skipped = item.get_closest_marker("skip") is not None
    return id_ is not None and not sabotage and not skipped and "engine" in getattr(item, "fixturenames", ())


def seconds(items: Sequence[pytest.Item], run: Run) -> dict[str, float]:
    """How long each of these tests of claims takes about, by its node id, where it runs and its claim says that."""
    found = dict[str, float]()
    for item in items:
        takes_s = run.seconds_of(run.catalogue.claim(str(claim_id(item)[0])))
        if takes_s is not None and not item.get_closest_marker("skip"):
            found[item.nodeid] = takes_s
    return found


def sabotaged_engine(item: pytest.Item) -> str | None:
    """The engine that a sabotage, or this value of its parameters, is of; ``None``: whichever the run is about.

    Raises ``BadInput``.
    """
    named = (marker.kwargs.get("engine") for marker in item.iter_markers("sabotage"))
    engine: str | None = next(filter(None, named), None)
    if engine not in (None, *ENGINES):
        raise BadInput(f"@pytest.mark.sabotage: engine {engine!r} is unknown; {suggestion(str(engine), ENGINES)}")
    return engine


def _elsewhere(item: pytest.Item, run: Run) -> str | None:
    """Why the test, which asks for other hardware, cannot run here. Raises ``BadInput`` for a malformed marker."""
    names, own = _hardware(item), run.settings.profile
    if not names or own in names:
        return None
    return f"asks for the hardware of profile {' or '.join(names)}; this run has --profile {own}"


def _hardware(item: pytest.Item) -> list[str]:
    """The profiles that the author of a test asks for by markers. Raises ``BadInput`` for a malformed one."""
    names, ours = [], set(map(id, item.stash.get(GIVEN, ())))
    for marker in item.iter_markers("hardware"):
        if id(marker) in ours:
            continue
        given = [*marker.args, *marker.kwargs.values()]
        if len(given) != 1 or set(marker.kwargs) - {"profile"} or not isinstance(given[0], str):
            raise BadInput("@pytest.mark.hardware takes one profile, for instance hardware(profile='medium')")
        names.append(profile_named(given[0]).name)
    return names


def mark_hardware(item: pytest.Item, run: Run) -> None:
    """Give a claim's test the marker of each profile that can evaluate it, before ``-m`` chooses.

    Raises ``BadInput`` for a malformed marker.
    """
    id_, _ = claim_id(item)
    if id_ is None:
        return
    claim = run.catalogue.claim(id_)
    names = _hardware(item) or [name for name in shipped() if _evaluates(name, claim, item, run)]
    markers = [pytest.mark.hardware(profile=name) for name in names]
    item.stash[GIVEN] = [marker.mark for marker in markers]
    for marker in markers:
        item.add_marker(marker)


def _evaluates(profile: str, claim: "Claim", item: pytest.Item, run: Run) -> bool:
    """Whether a profile has the sizes that a test asks for, and a limit for one of its claim's checks at the least."""
    sized = {*shipped()[profile].sizes, *run.catalogue.sizes.get(profile, ())}
    limited = any(check.resolve(profile).limit is not None for check in claim.checks)
    return limited and all(name in sized for name, workload in WORKLOADS.items() if _asks_for(item, workload))


def check_marker_expression(expression: str, profile: str, *, runs: bool) -> None:
    """Raise ``BadInput`` where ``-m`` chooses by hardware that is not known.

    Where tests will run, also where it leaves out whatever a run of this profile is about.
    """
    for keyword, name in re.findall(r"\bhardware\(\s*(\w+)\s*=\s*[\"']([^\"']*)", expression):
        if keyword != "profile":
            raise BadInput(f'-m {expression!r}: hardware takes a profile, for instance hardware(profile="medium")')
        profile_named(name)
    if not runs:
        return
    try:
        compiled = Expression.compile(expression)
    except SyntaxError:
        return  # pytest says it

    def chosen(others: bool) -> bool:
        """Whether a test on this profile is chosen where all of its other markers are so."""
        return compiled.evaluate(
            lambda name, /, **given: given.get("profile", profile) == profile if name == "hardware" else others
        )

    if "hardware" in compiled.idents() and not (chosen(True) or chosen(False)):
        raise BadInput(
            f"-m {expression!r} chooses tests for other hardware than --profile {profile} is; name the same profile "
            "in -m and with --profile"
        )


def _check_sentence(item: pytest.Item, claim: "Claim", config: pytest.Config) -> None:
    """The docstring of a claim's own test is the claim's sentence."""
    said = " ".join((getattr(getattr(item, "obj", None), "__doc__", None) or "").split())
    if said != claim.sentence and in_claims(item, config):
        raise BadInput(
            f"{_where(item)}: its docstring {said!r} is not the sentence of claim {claim.id}, {claim.sentence!r} "
            f"({claim.file}); make them the same"
        )


def check_arguments(item: pytest.Item, run: Run) -> None:
    """Raise ``BadInput`` where an argument of a claim's test is given by nobody: pytest says it once a cluster runs."""
    id_, _ = claim_id(item)
    if id_ is None or not isinstance(item, pytest.Function):
        return
    info, claim = item._fixtureinfo, run.catalogue.claim(id_)
    nobodys = [name for name in info.argnames if name not in info.name2fixturedefs and name != "request"]
    if not nobodys:
        return
    parameters = run.parameters_for(claim)
    if untaken := [name for name in parameters if name not in item.fixturenames]:
        raise BadInput(
            f"{claim.file}: claims.{claim.id}.parameters.{untaken[0]}: the claim's test {item.originalname} "
            f"({_where(item)}) has no argument of this name; did you mean {' or '.join(map(repr, nobodys))}?"
        )
    meant = suggestion(nobodys[0], [*parameters, *info.name2fixturedefs])
    way_out = f"{meant} Or declare" if meant.endswith("?") else "correct it, or declare"
    raise BadInput(
        f"{_where(item)}: {item.originalname}: its argument {nobodys[0]!r} is no fixture, and no parameter of "
        f"claim {claim.id} ({claim.file}); {way_out} its values as parameters.{nobodys[0]}"
    )


def _where(item: pytest.Item) -> str:
    path, line, _ = item.location
    return f"{path}:{(line or 0) + 1}"
