"""What is known of a change from one build of CockroachDB to another before any cluster runs."""

from collections.abc import Iterator, Mapping

from clusters.engines import Change
from clusters.engines.cockroach.builds import CHANGED, Build, changed_before
from clusters.engines.cockroach.licences import lacking
from clusters.engines.cockroach.upgrades import goes_back, why_not_from
from clusters.engines.cockroach.version import Version
from clusters.model import Fingerprint


def change(old: Fingerprint, new: Fingerprint, environ: Mapping[str, str]) -> Change:
    """What forbids it (the order, a jump, a licence that the environment has not), and what is to be said of it.

    Raises ``BadInput`` for what is no version.
    """
    before, after = _build(old), _build(new)
    against = why_not_from(before, after)
    unlicensed = "" if against else lacking(Version.parse(before.tag), Version.parse(after.tag), environ)
    return Change(against=against or unlicensed, for_licence=bool(unlicensed), notes=tuple(_notes(before, after)))


def _build(told: Fingerprint) -> Build:
    return Build(tag=str(told["version"]), date=str(told.get("date", "")), commit=str(told.get("commit", "")))


def _notes(old: Build, new: Build) -> Iterator[str]:
    if goes_back(old, new):
        yield (
            f"{new.tag} is an older patch than {old.tag}: a downgrade within one series, which the documentation "
            "allows as it does an upgrade"
        )
    if old.tag != new.tag and not changed_before(old, new):
        ran = ", ".join(f"{before.tag} to {after.tag}" for before, after in CHANGED if before != after)
        yield f"documented, not run; changed were clusters from {ran}, and from one tag to another of one build"
