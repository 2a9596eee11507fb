"""Whether the control is whole: a pure decision over what the nodes and Patroni say."""

from collections.abc import Mapping
from typing import Any

from clusters.engines.postgres.configuration import Replication
from clusters.engines.postgres.sql import Seen
from clusters.model import Health


def only_primary(seen: Mapping[str, Seen]) -> tuple[str | None, str]:
    """The primary if there is exactly one, else ``None`` and why: a former primary may not know yet that it is one."""
    found = [name for name, one in seen.items() if one.primary]
    if len(found) == 1:
        return found[0], ""
    silent = "; ".join(one.error for one in seen.values() if one.error)
    why = f"several primaries: {', '.join(found)}" if found else "no primary"
    return None, f"{why} ({silent})" if silent else why


def whole(seen: Mapping[str, Seen], members: Mapping[str, Any], replication: Replication) -> Health:
    """Every node answers, one of them is the primary, and all others stream from it in the mode that was asked for.

    ``members`` is Patroni's ``GET /cluster``.
    """
    silent = [one.error for one in seen.values() if one.error]
    if silent:
        return Health(ok=False, why="; ".join(silent))
    primary, why = only_primary(seen)
    if primary is None:
        return Health(ok=False, why=why)
    wanted = "quorum" if replication is Replication.QUORUM else "async"
    for name in seen:
        state, mode = seen[primary].replicas.get(name, ("not connected", ""))
        if name != primary and (state, mode) != ("streaming", wanted):
            return Health(ok=False, why=f"{name} replicates from {primary}: {f'{state} {mode}'.strip()}")
    if members.get("pause"):
        return Health(ok=False, why="Patroni is in maintenance mode (pause): no failover would happen")
    roles = {member.get("name"): member.get("role") for member in members.get("members", ())}
    # "Quorum standby": Patroni would let it take over, since the lease's record names it, too.
    others = "quorum_standby" if replication is Replication.QUORUM else "replica"
    for name in seen:
        expected = "leader" if name == primary else others
        if roles.get(name) != expected:
            return Health(ok=False, why=f"Patroni takes {name} for {roles.get(name)}, not yet for {expected}")
    return Health(ok=True)
