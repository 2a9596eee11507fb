"""An engine of four files, as ``docs/extending/engine.md`` lists them: a database in memory whose driver is sqlite3."""

from clusters.engines import Choice, Engine, EngineKind, Wanted
from clusters.model import Capability, SqlTraits


def _find(wanted: Wanted) -> Engine:
    from tests.clusters.engines.toy.engine import find

    return find(wanted)


KIND = EngineKind(
    name="toy",
    title="Toy",
    capabilities=frozenset({Capability.KILL, Capability.RESTART}),
    find=_find,
    sql=SqlTraits(),
    choice=Choice(path="--toy", version="--toy-version", variable="TOY_BINARY"),
)
