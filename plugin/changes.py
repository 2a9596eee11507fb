"""What is known of the changes of version that a run asks for, before any cluster runs."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise

import pytest

from clusters.engines import Change, Engine, EngineKind
from clusters.errors import BadInput
from clusters.model import Fingerprint
from clusters.substrates import SUBSTRATES
from plugin import selection
from plugin.run import Run

Known = tuple[str, Change]
"""A change in words, ``v24.1.3 → v24.2.0``, and what is known of it."""


def of_engines(engines: Sequence[Engine]) -> list[Known]:
    """The changes from each version to the next one. Raises ``BadInput`` for what is no version."""
    told = [_told(engine) for engine in engines]
    return [_known(engines[0].kind, old, new) for old, new in pairwise(told)]


def of_run(run: Run) -> Iterator[Known]:
    """The changes that the versions of a run ask for, each from one to the next.

    Of a version that is not at hand its name alone counts; nothing is known yet of one that is named by something else
    (``latest``).
    """
    found = [_found(target, run) for target in run.targets]
    for old, new in pairwise(found):
        with suppress(BadInput):
            yield _known(run.kind, old, new)


def refuse_unavailable(run: Run) -> None:
    """Raise ``BadInput`` where what is named to be tested cannot be used, or is neither here nor to be had."""
    for target in run.targets if run.settings.versions or run.settings.path else ():
        version = target.partition("#")[0]
        if version:
            run.kind.named(version)
        try:
            run.engine(target)
        except BadInput:
            if not version or not run.kind.offered(version):
                raise


def against(change: Change, run: Run) -> str:
    """What forbids a change in this run. A cluster that was there already is asked for its licence once it is found."""
    theirs = SUBSTRATES[run.settings.substrate].there_already
    return "" if theirs and change.for_licence else change.against


def notes_of(known: Sequence[Known]) -> list[str]:
    """What people are to be told of these changes."""
    return [f"{words}: {note}" for words, change in known for note in change.notes]


def refuse_forbidden(items: Sequence[pytest.Item], run: Run) -> None:
    """Raise ``BadInput`` where one of these tests would make a change that is known to be impossible."""
    if names := sorted({_name(item) for item in items if _changes(item, run)}):
        for words, change in of_run(run):
            if why := against(change, run):
                others = " and ".join(f"not {name}" for name in names)
                raise BadInput(
                    f"{words}: {why}. To test other claims on these versions leave out what changes the "
                    f"version, which then is not decided: -k '{others}'"
                )


def _changes(item: pytest.Item, run: Run) -> bool:
    """Whether it would give a cluster the versions of the run: a sabotage chooses its own."""
    id_, sabotage = selection.claim_id(item)
    if id_ is None or sabotage or item.get_closest_marker("skip"):
        return False
    return run.catalogue.claim(id_).changes_versions


def _name(item: pytest.Item) -> str:
    return str(getattr(item, "originalname", item.name))


def _found(target: str, run: Run) -> Fingerprint:
    try:
        return _told(run.engine(target))
    except BadInput:
        return {"version": target.partition("#")[0]}


def _told(engine: Engine) -> Fingerprint:
    return {"version": engine.version, **engine.fingerprint}


def _known(kind: EngineKind, old: Fingerprint, new: Fingerprint) -> Known:
    return f"{old['version']} → {new['version']}", kind.change(old, new)
