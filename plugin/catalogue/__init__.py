"""The catalogue: claims and their checks, read from TOML files and validated before anything starts.

The suite's own are the files beside this one, one a family of claims; a user's (``--catalogue FILE``) has the same
form, which ``catalogue.schema.json`` tells editors. ``plugin.claims`` has the types and, beside each field, what it
means.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from clusters.declared import (
    Place,
    Rule,
    anything,
    flag,
    form,
    integer,
    keyed,
    member,
    name_of,
    number,
    read,
    record,
    ruled,
    several,
    shown,
    suggestion,
    text,
)
from clusters.errors import BadInput
from clusters.model import Capability, NodeResources
from clusters.registry import Known
from clusters.topology import MOST_NODES
from plugin import profiles
from plugin.claims import OTHERS, CheckSpec, Claim, Estimate, Labels, Mark, Severity, Source, Status, Work
from plugin.judge.model import Comparison, Kind
from plugin.suites import Suite
from plugin.workloads import KNOWN_COSTS, NAMES, OWN_NAMES, WORKLOADS, declare, declared, users

HOME = Path(__file__).parent
FAMILIES = (
    *("survivability", "growth", "throughput", "versions", "tenancy", "adversity", "comparisons"),
    *("shared", "workloads", "sources"),
)
SHIPPED = tuple(HOME / f"{family}.toml" for family in FAMILIES)
"""The suite's own files, in the order in which their claims are listed."""
SCHEMA = HOME / "catalogue.schema.json"
T = TypeVar("T")

_NAMES = json.loads(SCHEMA.read_text("utf-8"))["$defs"]
# By name alone: what measures and asks them is the judge's, which is imported only once there is evidence.
KNOWN_METRICS = Known(dict.fromkeys(_NAMES["metric"]["enum"]), lambda: (dict.fromkeys(one.metrics) for one in users()))
KNOWN_CONDITIONS = Known(
    dict.fromkeys(_NAMES["condition"]["enum"]), lambda: (dict.fromkeys(one.conditions) for one in users())
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Catalogue:
    """All claims by id, in the order of the files."""

    claims: Mapping[str, Claim]
    every_claim: tuple[CheckSpec, ...] = ()
    """The set of checks ``every-claim``: judged of any claim once a node ended by itself."""
    sizes: Mapping[str, Mapping[str, profiles.Sized]] = field(default_factory=dict)
    """By profile the sizes of workloads that the files declare beside the profile's own."""

    def __iter__(self) -> Iterator[Claim]:
        """The claims in order."""
        return iter(self.claims.values())

    def claim(self, claim_id: str) -> Claim:
        """The claim of that id. Raises ``BadInput`` with what may have been meant."""
        if claim_id not in self.claims:
            own = "Claims of your own are declared in a file given with --catalogue."
            raise BadInput(f"claim {claim_id!r} is in no catalogue; {suggestion(claim_id, self.claims, then=own)}")
        return self.claims[claim_id]


def load(paths: Sequence[Path] = SHIPPED) -> Catalogue:
    """The claims of all files together. Raises ``BadInput``, naming file and key, for whatever is wrong with them."""
    return _shipped() if tuple(paths) == SHIPPED else _load(paths)


@cache
def _shipped() -> Catalogue:
    return _load(SHIPPED)


_read_once = cache(read)
"""For the suite's own files, which stay as they are while a process runs."""


def _load(paths: Sequence[Path]) -> Catalogue:
    documents = [(path, *(_read_once(path) if path in SHIPPED else read(path))) for path in paths]
    for path, document, top in documents:  # their metrics may be checked by any of the files
        modules = declared(document, top)
        declare(modules, top, path.parent)
        for what, known in (("metric", KNOWN_METRICS), ("condition", KNOWN_CONDITIONS), ("cost", KNOWN_COSTS)):
            for name, times in Counter(iter(known)).items():
                if modules and times > 1:
                    raise (top / "workloads").wrong(f"{name!r} is a {what} of something else already; rename it")
    for _, document, top in documents:
        _check_keys(document, top)
    sizes: dict[str, dict[str, profiles.Sized]] = {}
    for _, document, top in documents:
        _add_sizes(document.get("profiles", {}), top / "profiles", sizes)
    sets: dict[str, tuple[Place, tuple[CheckSpec, ...]]] = {}
    for _, document, top in documents:
        for name, place, rows in _items(document, "checks", top):
            _once(name, place, {known: where for known, (where, _) in sets.items()}, "set of checks")
            sets[name] = (place, several(_check, at_least=1)(rows, place))
    works: dict[str, Work] = {}
    for _, document, top in documents:
        for name, work in _WORKS(document.get("sources", {}), top / "sources").items():
            if name in works:
                raise (top / "sources" / name).wrong("another file declares this work already; rename one of them")
            works[name] = work
    claims: dict[str, Claim] = {}
    places: dict[str, Place] = {}
    for _, document, top in documents:
        for name, place, value in _items(document, "claims", top):
            _once(name, place, places, "claim")
            places[name] = place
            claims[name] = _claim(name, value, place, sets, works)
    every = sets.get("every-claim")
    return Catalogue(claims=claims, every_claim=every[1] if every else (), sizes=sizes)


def _add_sizes(tables: Any, place: Place, found: dict[str, dict[str, profiles.Sized]]) -> None:
    """The sizes of workloads that a file declares. Raises ``BadInput`` for those that a profile has already."""
    of_profile = keyed(name_of(profiles.shipped(), "a profile"), keyed(name_of(WORKLOADS, "a workload"), anything))
    for profile, given in of_profile(tables, place).items():
        known = {**profiles.shipped()[profile].sizes, **found.get(profile, {})}
        for name in given.keys() & known.keys():
            raise (place / profile / name).wrong("the profile has this size already; remove one of them")
        found.setdefault(profile, {}).update(profiles.sizes_of(given, place / profile))


KEYS = ("claims", "checks", "workloads", "profiles", "sources")  # what a catalogue file may hold


def _check_keys(document: Mapping[str, Any], top: Place) -> None:
    for key in document:
        if key not in KEYS:
            hint = suggestion(key, KEYS, then="A claim stands in a [claims.<id>] table")
            raise (top / key).wrong(f"unknown key; {hint}")
    if not any(document.get(key) for key in KEYS):
        raise (top / "claims").wrong("is missing; declare at least one [claims.<id>] table with a sentence and a check")


_WORKS = keyed(
    text(),
    record(
        Work, authors=several(text(), at_least=1), title=text(), publisher=text(), year=integer(minimum=1),
        link=text(pattern=r"https?://\S+", what="an address that begins with https:// or http://"),
    ),
)  # fmt: skip


_ID = text(pattern=r"[a-z][a-z0-9]*(-[a-z0-9]+)*", what="kebab-case: small letters, digits and single hyphens")


def _items(document: Mapping[str, Any], key: str, top: Place) -> Iterator[tuple[str, Place, Any]]:
    table = keyed(_ID, anything)(document.get(key, {}), top / key)
    yield from ((name, top / key / name, value) for name, value in table.items())


def _once(name: str, place: Place, known: Mapping[str, Place], what: str) -> None:
    if name in known:
        raise BadInput(f"{place.file} and {known[name].file}: both declare the {what} {name!r}; rename one of them")


def _by_suite(rule: Rule[T]) -> Rule[Mapping[Suite, T]]:
    """One value for all suites, or a table with a value for each suite."""
    suites = {suite.value for suite in Suite}
    by_suite = keyed(name_of(suites, "a suite"), rule)

    @ruled({"anyOf": [rule.schema, by_suite.schema]})
    def outer(value: Any, place: Place) -> Mapping[Suite, T]:
        if isinstance(value, dict) and suites & value.keys():
            table = by_suite(value, place)
            return {Suite(name): item for name, item in table.items()}
        every = rule(value, place)
        return dict.fromkeys(Suite, every)

    return outer


@ruled({"type": ["string", "number", "boolean"]})
def _parameter_value(value: Any, place: Place) -> object:
    if not isinstance(value, str | int | float | bool) or value != value:
        raise place.must(value, "a text, a number, true or false", "trials are told apart by plain values")
    return value


REPLICAS = 3
"""Of each range, by CockroachDB's default."""

_VALUES = keyed(
    text(pattern=r"[A-Za-z_]\w*", what="the name of an argument of the test function"),
    _by_suite(several(_parameter_value, at_least=1)),
)


@ruled(_VALUES.schema)
def _parameters(value: Any, place: Place) -> Mapping[str, Mapping[Suite, tuple[object, ...]]]:
    """The parameters' values; those that a workload knows are as it asks, so that no cluster is started in vain."""
    found = _VALUES(value, place)
    for workload in WORKLOADS.values():
        for name in workload.parameters.keys() & found.keys():
            _by_suite(several(workload.parameters[name]))(value[name], place / name)
    return found


_BY_PROFILE = keyed(name_of([*profiles.shipped(), OTHERS], "a profile"), number())


@ruled({"anyOf": [number().schema, _BY_PROFILE.schema]})
def _limit(value: Any, place: Place) -> float | Mapping[str, float]:
    if isinstance(value, dict):
        table = _BY_PROFILE(value, place)
        if not table:
            raise place.wrong("names no profile; give { <profile> = <limit> }")
        return table
    return number()(value, place)


_METRIC = text(pattern=r"[a-z][a-z0-9]*(_[a-z0-9]+)*", what="snake_case: small letters, digits and single underscores")
# An editor proposes the suite's own, and cannot know those of a user's workload.
_CONDITION = Rule(
    name_of(KNOWN_CONDITIONS, "an evidence condition"), {"anyOf": [{"$ref": "#/$defs/condition"}, _METRIC.schema]}
)

_KNOWN_COST = name_of(KNOWN_COSTS, "a cost")
_COST = Rule(_KNOWN_COST, {"anyOf": [_KNOWN_COST.schema, _METRIC.schema]})

_CHECK = form(
    CheckSpec,
    metric=_METRIC,
    comparison=member(Comparison, "a comparison"),
    limit=_limit,
    kind=member(Kind, "a kind of limit"),
    mark=member(Mark, "a mark"),
    source=text(),
    unit=text(),
    needs=several(_CONDITION),
    recorded=flag,
    note=text(),
)


@ruled(_CHECK.schema)
def _check(value: Any, place: Place) -> CheckSpec:
    given = _CHECK(value, place)
    check = CheckSpec(**given)
    if check.kind is Kind.REPORT:
        for key in ("limit", "comparison"):
            if key in given:
                way_out = "leave it out, or give the check another kind"
                raise (place / key).wrong(f"a report is shown and never judged, it has no {key}; {way_out}")
        return check
    for key in ("comparison", "limit"):
        if key not in given:
            way_out = 'add it, or say kind = "report" if nothing is to be judged'
            raise (place / key).wrong(f"is missing from the check of {check.metric!r}; {way_out}")
    if check.kind is Kind.PROFILE and not isinstance(check.limit, Mapping):
        problem = "a profile limit holds only on hardware that matches the source's"
        raise (place / "limit").wrong(
            f'{shown(check.limit)}: {problem}; give a table {{ <profile> = <limit> }}, or kind = "absolute"'
        )
    if check.kind is Kind.PROFILE and isinstance(check.limit, Mapping) and OTHERS in check.limit:
        problem = "a profile limit holds only on hardware that matches the source's"
        raise (place / "limit").wrong(f'{OTHERS!r}: {problem}; name the profiles, or say kind = "relative"')
    if check.kind is Kind.ABSOLUTE and isinstance(check.limit, Mapping):
        way_out = 'give one number, or kind = "profile"'
        raise (place / "limit").wrong(f"an absolute limit holds on any hardware, this is a table by profile; {way_out}")
    return check


_SEVERAL = several(member(Capability, "a capability"))
_CAPABILITIES = Rule(lambda value, place: frozenset(_SEVERAL(value, place)), _SEVERAL.schema)


_CLAIM = form(
    Claim,
    sentence=text(),
    source=record(Source, work=text(), section=text(), where=text()),
    refuted_by=text(),
    labels=record(
        Labels, epic=text(), feature=text(), story=text(), severity=member(Severity, "a severity"), owner=text()
    ),
    capabilities=_CAPABILITIES,
    suites=several(member(Suite, "a suite")),
    status=member(Status, "a status"),
    nodes=_by_suite(integer(minimum=1, maximum=MOST_NODES)),
    disturbs=text(),
    steps=several(text(), distinct=False),
    estimate=_by_suite(record(Estimate, seconds=number(above=0), disk_mib=number())),
    costs=several(_COST),
    needs=several(_CONDITION),
    parameters=_parameters,
    include=several(_ID),
    compares_versions=flag,
    changes_versions=flag,
    least_versions=integer(minimum=1, maximum=2),
    checks=several(_check),
    paper=keyed(text(), anything),
    measured=keyed(text(), text()),
    note=text(),
)


def schema() -> dict[str, Any]:
    """The form of a catalogue file as JSON schema, which ``catalogue.schema.json`` holds for editors.

    Its ``$defs`` are the names of what the suite itself measures and asks of evidence, for editors and for ``load``.
    """
    from plugin.judge import conditions, metrics

    own = [WORKLOADS[name] for name in OWN_NAMES]
    names = {
        "metric": {*metrics.KNOWN_METRICS.own, *(name for one in own for name in one.metrics)},
        "condition": {*conditions.KNOWN_CONDITIONS.own, *(name for one in own for name in one.conditions)},
    }
    tables = {
        "claims": {**keyed(_ID, anything).schema, "additionalProperties": _CLAIM.schema},
        "checks": keyed(_ID, several(_check, at_least=1)).schema,
        "workloads": NAMES.schema,
        "profiles": keyed(_ID, keyed(text(), anything)).schema,
        "sources": _WORKS.schema,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A catalogue of claims",
        "type": "object",
        "properties": tables,
        "additionalProperties": False,
        "$defs": {what: {"enum": sorted(known)} for what, known in names.items()},
    }


def write_schema() -> None:
    """Write ``catalogue.schema.json`` anew."""
    text = json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
    SCHEMA.write_text(text, encoding="utf-8")


def _claim(
    name: str,
    value: Any,
    place: Place,
    sets: Mapping[str, tuple[Place, tuple[CheckSpec, ...]]],
    works: Mapping[str, Work],
) -> Claim:
    claim = Claim(id=name, file=place.file, **_CLAIM(value, place))
    if claim.source:
        claim = replace(claim, source=replace(claim.source, about=works.get(claim.source.work)))
    placed: list[tuple[CheckSpec, Place]] = []
    for index, include in enumerate(claim.include):
        where, checks = sets[name_of(sets, "a set of checks")(include, place / "include" / index)]
        placed += [(check, where / row) for row, check in enumerate(checks)]
    placed += [(check, place / "checks" / index) for index, check in enumerate(claim.checks)]
    if not placed:
        raise (place / "checks").wrong("is missing; a claim without a check can never be refuted, add one")
    seen = set()
    for check, where in placed:
        if (check.metric, check.comparison, check.kind) in seen:
            raise where.wrong(f"claim {name!r} checks {check.metric!r} in this way already; remove one of the two")
        seen.add((check.metric, check.comparison, check.kind))
        if check.mark is not Mark.OWN and not (check.source or claim.source):
            way_out = 'name it in the claim or the check, or say mark = "R" (our own choice)'
            raise (where / "source").wrong(f"is missing, though mark {check.mark} says there is one; {way_out}")
        if claim.status is Status.READY and check.metric not in KNOWN_METRICS and not check.recorded:
            way_out = "If the test records it itself, say recorded = true"
            hint = suggestion(check.metric, KNOWN_METRICS, then=way_out)
            raise (where / "metric").wrong(f"{check.metric!r} is nothing the judge measures; {hint}")
    parameters = tuple(claim.parameters.values())
    for key, tables in (("nodes", (claim.nodes,)), ("estimate", (claim.estimate,)), ("parameters", parameters)):
        missing = [suite for table in tables for suite in claim.suites if table and suite not in table]
        if missing:
            raise (place / key).wrong(f"has nothing for suite {missing[0].value!r}, in which the claim is; add it")
    if Capability.REBALANCE in claim.capabilities:
        _check_sizes(claim, place / "parameters" / "sizes")
    if Capability.NODE_RESOURCES in claim.capabilities:
        _check_node_sizes(claim, place / "parameters" / "sizes")
    source = str(claim.source) if claim.source else "our own choice"
    return replace(claim, checks=tuple(replace(check, source=check.source or source) for check, _ in placed))


def _check_node_sizes(claim: Claim, place: Place) -> None:
    """The sizes that a claim's nodes have: at least two, each as ``node_of_size`` takes it."""
    for values in claim.parameters.get("sizes", {}).values():
        for value in values:
            words = str(value).split()
            if len(words) < 2:
                raise place.must(value, "at least two sizes of a node", "give such as '0.5/1024 1/2048'")
            for word in words:
                try:
                    profiles.node_of_size(word, NodeResources(cache_mib=1, sql_memory_mib=1))
                except BadInput as error:
                    raise place.wrong(f"is {value!r}, but {error}") from error


def _check_sizes(claim: Claim, place: Place) -> None:
    """The sizes that a cluster goes through: ``3 6 9``, or ``6 3`` where nodes are taken out."""
    shrinks = Capability.REMOVE_NODE in claim.capabilities
    order, example = ("smaller", "6 3") if shrinks else ("larger", "3 6 9")
    for suite, values in claim.parameters.get("sizes", {}).items():
        for value in values:
            words = str(value).split()
            if len(words) < 2 or not all(word.isdecimal() for word in words):
                raise place.must(value, "at least two numbers of nodes", "give such as '3 6 9', or '6 3' to shrink")
            sizes = [int(word) for word in words]
            if sorted(set(sizes), reverse=shrinks) != sizes:
                must = f"sizes of which each is {order} than the one before"
                raise place.must(value, must, f"give such as '{example}'")
            if shrinks and sizes[-1] != REPLICAS:
                must = f"sizes down to {REPLICAS}, since a claim that shrinks asks for one node less at last"
                raise place.must(value, must, f"end with {REPLICAS}")
            if min(sizes) < REPLICAS:
                must = f"sizes of {REPLICAS} nodes at the least, one for each replica"
                raise place.must(value, must, "leave the smaller ones out")
            if suite in claim.suites and max(sizes) > claim.nodes[suite]:
                must = f"sizes up to nodes ({claim.nodes[suite]} in suite {suite.value})"
                raise place.must(value, must, f"say nodes = {max(sizes)}, so that room is asked for")
