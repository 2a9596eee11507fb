"""How a cluster of an engine is known that a chart or an operator made in Kubernetes, and where its secrets are."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True, kw_only=True, slots=True)
class Charted:
    """What charts and operators of one engine have in common."""

    user: str
    """The administrator."""
    container: str
    """What they call the container that is the database."""
    is_it: Callable[[str, str], bool]
    """Whether a container is the database, by its image and the words of its command."""
    custom: str
    """The kind by which operators know a cluster."""
    custom_label: str
    """The label of pods that names their cluster, where an operator makes them without a StatefulSet."""
    store: PurePath
    """Where the store is, unless a volume claim says it."""
    against: Callable[[str], str]
    """Why a cluster with this command cannot be taken over, with the way out; empty where it can."""
    secrets: Callable[[str, str], Sequence[str]]
    """By the names of the StatefulSet and of its owner, where the administrator's certificate may be, the likeliest
    first."""
    certificate: Mapping[str, Sequence[str]]
    """By file of the administrator's certificate, what a secret may call it."""
    drain: str
    """What a person would run to drain a node."""
    fast: Mapping[str, str]
    """The environment of servers that were started with a fast pace of repair."""
