"""What a change of version asks of a cluster's licence, and whether what its servers say of theirs is enough.

Terms of public documentation (cockroachlabs.com/docs: licensing-faqs, enterprise-license-keys); *documented, not
run* but for clusters without a key. A cluster without one works for seven days; a change within a series needs none;
one to another series does, from v24.3 on. Whoever has a key gives it to the clusters of a run in ``KEY``; nothing is
done about a cluster that has none but to say so.
"""

from collections.abc import Mapping

from clusters.engines.cockroach.version import Series, Version
from clusters.model import Health

SINCE: Series = (24, 3)
"""From this series on a change to it or between later ones needs a valid key."""
KEY, ORGANISATION = "ROACHPROOF_COCKROACH_LICENSE", "ROACHPROOF_COCKROACH_ORGANIZATION"
"""Variables of the environment: the key that clusters are given when they are made, and whom it was made out to."""
SETTINGS = {ORGANISATION: "cluster.organization", KEY: "enterprise.license"}
DAY_S = 86400


def settings(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The statements by which a new cluster is given the licence of the environment; none where there is none.

    They hold the key: they are for servers, and neither for messages nor for evidence.
    """
    if not environ.get(KEY):
        return ()
    quoted = {name: environ[name].strip().replace("'", "''") for name in SETTINGS if environ.get(name)}
    return tuple(f"SET CLUSTER SETTING {SETTINGS[name]} = '{value}'" for name, value in quoted.items())


def enough(old: Version, new: Version, *, given: bool, left_s: float | None) -> Health:
    """Whether a cluster of the old version may be given the new one by its licence; ``why`` says its state either way.

    ``given``: whether it has a key; ``left_s``: for how many seconds that is valid, where servers say so.
    """
    if not given:
        has = "it has none"
    elif left_s is None:
        has = "it has one, and servers of this version do not say until when"
    elif left_s > 0:
        has = f"it has one for {left_s / DAY_S:.0f} more days"
    else:
        has = f"the one that it has ran out {-left_s / DAY_S:.0f} days ago"
    if old.series == new.series:
        return Health(ok=True, why=f"{has}; none is needed within v{new.major}.{new.minor}")
    if max(old.series, new.series) < SINCE:
        return Health(ok=True, why=f"{has}; none is needed before v{SINCE[0]}.{SINCE[1]}")
    if given and (left_s is None or left_s > 0):
        return Health(ok=True, why=f"{has}, which a change from {old} to {new} needs")
    why = (
        f"a change from {old} to {new} needs a valid licence key, and {has}: set {KEY} (and {ORGANISATION}) to one, or "
        "choose two versions of one series"
    )
    return Health(ok=False, why=why)
