"""The shape of a cluster: counted nodes, zones and regions made into named nodes with their places.

Nodes are dealt round-robin: node *i* goes to the next region, and within its region to the next zone. So the first
*k* nodes of a larger shape are the *k*-node shape, neighbours never share a zone where that can be avoided, and adding
nodes keeps the zones even. Zones are numbered through the whole cluster: a zone's name alone says which one it is.
"""

from dataclasses import dataclass
from pathlib import Path

from clusters.declared import Place, integer, read, record, suggestion, text
from clusters.errors import BadInput
from clusters.model import NodeSpec, Topology

DIRECTORY = Path(__file__).with_name("topologies")
MOST_NODES = 100
"""More than any source ran; a guard against a slip of the pen (our own choice)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """What a topology file declares: ``zones`` is the number of zones in each region."""

    sentence: str
    nodes: int
    zones: int = 1
    regions: int = 1


_COUNT = integer(minimum=1, maximum=MOST_NODES)
_SHAPE = record(Shape, sentence=text(), nodes=_COUNT, zones=_COUNT, regions=_COUNT)


def of(*, nodes: int, zones: int = 1, regions: int = 1) -> Topology:
    """The topology of ``nodes`` nodes over ``regions`` regions with ``zones`` zones each.

    Raises ``BadInput`` when a count is no whole number from 1 to 100 or there are more zones than nodes.
    """
    place = Place("topology")
    given = {"sentence": "of a marker", "nodes": nodes, "zones": zones, "regions": regions}
    return _dealt(_SHAPE(given, place), place, name="")


def names() -> tuple[str, ...]:
    """The names of the shipped topologies."""
    return tuple(sorted(path.stem for path in DIRECTORY.glob("*.toml")))


def load(name: str) -> Topology:
    """The shipped topology of that name, or the one in a file of one's own if ``name`` ends in ``.toml``.

    Raises ``BadInput`` for an unknown name, a file that cannot be read and a shape that cannot be.
    """
    if name.endswith(".toml"):
        path = Path(name)
    elif name in names():
        path = DIRECTORY / f"{name}.toml"
    else:
        hint = suggestion(name, names(), then="A file of your own is named with its .toml ending.")
        raise BadInput(f"topology {name!r} is unknown; {hint}")
    document, top = read(path)
    return _dealt(_SHAPE(document, top), top, name=path.stem)


def _dealt(shape: Shape, place: Place, *, name: str) -> Topology:
    nodes, zones, regions = shape.nodes, shape.zones, shape.regions
    if zones * regions > nodes:
        way_out = f"give at least {zones * regions} nodes or fewer zones"
        each = f" of {zones} in each of {regions} regions" if regions > 1 else ""
        raise (place / "zones").wrong(f"{zones * regions} zones{each} for {nodes} nodes leave some empty; {way_out}")
    specs = []
    for index in range(nodes):
        turn, region = divmod(index, regions)
        zone = region * zones + turn % zones
        specs.append(NodeSpec(name=f"n{index + 1}", zone=f"zone-{zone + 1}", region=f"region-{region + 1}"))
    where = f"-{zones * regions}z" * (zones * regions > 1) + f"-{regions}r" * (regions > 1)
    return Topology(name=name or f"{nodes}{where}", nodes=tuple(specs))
