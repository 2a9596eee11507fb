"""How exactly times from different clocks can be told apart."""

from collections.abc import Iterable

from plugin.evidence.records import Event


def uncertainty_s(events: Iterable[Event]) -> float:
    """No difference between times of an arm is known better than this, in seconds.

    Each event ``clocks`` has, for each source that is not the harness itself, by how much its clock was ahead and how well
    that was known. A clock that drifted between two comparisons may have stood anywhere between them. Nothing where all have the
    harness's own clock, or a run was stored before clocks were compared: those were all one.
    """
    seen: dict[str, list[tuple[float, float]]] = {}
    for event in events:
        sources = event.data.get("sources") if event.name == "clocks" else None
        for source, known in (sources if isinstance(sources, dict) else {}).items():
            seen.setdefault(source, []).append((float(known["offset_s"]), float(known["uncertainty_s"])))
    return max(
        (
            max(width for _, width in readings)
            + max(offset for offset, _ in readings)
            - min(offset for offset, _ in readings)
            for readings in seen.values()
        ),
        default=0.0,
    )
