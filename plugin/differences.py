"""What changed between a stored verdict and today's on the same evidence."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from plugin.counts import number_of
from plugin.judge.model import Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Differences:
    """``changed``: what is not as it was stored, in words. ``added``: checks that the stored verdict does not have.

    ``outcome``: whether the verdict itself is another.
    """

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    outcome: bool = False


def differences(stored: Mapping[str, Any] | None, verdict: Verdict) -> Differences:
    """Between the two; of a stored verdict that cannot be read only that."""
    if stored is None:
        return Differences(changed=("no verdict was stored: the run ended before it was judged",), outcome=True)
    try:
        return _differences(stored, verdict)
    except (KeyError, TypeError) as error:
        why = f"the stored verdict is not as it was written ({type(error).__name__}: {error})"
        return Differences(changed=(why,), outcome=True)


def _differences(stored: Mapping[str, Any], verdict: Verdict) -> Differences:
    found = []
    if other := stored["outcome"] != verdict.outcome:
        found.append(f"verdict: was {stored['outcome']}, is {verdict.outcome}")
    # A claim's checks are told apart by these three.
    before = {(r["check"]["metric"], r["check"]["kind"], r["check"]["comparison"]): r for r in stored["results"]}
    now = {(r.check.metric, r.check.kind, r.check.comparison): r for r in verdict.results}
    found += [f"check {_called(name, before)} is gone" for name in before if name not in now]
    for name, new in now.items():
        if (old := before.get(name)) is None:
            continue
        metric, limit, value = name[0], old["check"]["limit"], old["measurement"]["value"]
        if limit != new.check.limit:
            found.append(f"limit of {metric}: was {name[2]} {limit}, is {name[2]} {new.check.limit}")
        if str(value) != str(new.measurement.value):
            found.append(f"{metric}: was measured as {value}, is {new.measurement.value}")
        if old["outcome"] != new.outcome:
            found.append(f"check {metric}: was {old['outcome']}, is {new.outcome}")
    added = (_called(name, now) for name in now if name not in before)
    return Differences(changed=tuple(found), added=tuple(added), outcome=other)


def _called(name: tuple[str, str, str | None], checks: Iterable[tuple[str, str, str | None]]) -> str:
    """A check by its metric; where several have that, by its kind and comparison, too."""
    return " ".join(filter(None, name)) if sum(other[0] == name[0] for other in checks) > 1 else name[0]


def changed(judged: Collection[Differences]) -> str:
    """How many of these trials differ from what was stored, in words; nothing where none does."""
    found = [each.outcome for each in judged if each.changed]
    differ = "differs" if len(found) == 1 else "differ"
    told = f"{len(found)} of {number_of(len(judged), 'trials')} {differ} from what was stored"
    return f"{told}, {sum(found)} in the verdict itself" if found else ""
