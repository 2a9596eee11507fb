"""What engines and substrates there are, by name, and the options that choose an engine's versions.

A command line is read at every start of pytest, in most directories for nothing: this imports none of them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from clusters.registry import Registry


class Choice(NamedTuple):
    """How one of an engine's versions is chosen: options for a path and for versions, and a variable for a path.

    ``setting``: the option for settings that each cluster is given. Each is empty where an engine has none.
    """

    path: str = ""
    version: str = ""
    variable: str = ""
    setting: str = ""


NO_CHOICE = Choice()

ENGINES: Registry[Any] = Registry(
    "engine", {"cockroach": "clusters.engines.cockroach", "postgres": "clusters.engines.postgres"}
)

CHOICES: Mapping[str, Choice] = {
    "cockroach": Choice(
        path="--cockroach",
        version="--cockroach-version",
        variable="COCKROACH_BINARY",
        setting="--cluster-setting",
    ),
    "postgres": Choice(version="--postgres-version"),
}
"""Of the suite's own engines. One that is not named here is imported at every start, for its ``KIND.choice``."""

SUBJECT = "cockroach"
"""The engine that the gate is about; any other one is a control."""

LOCAL = "processes"
"""The substrate that is there on every machine."""

SUBSTRATES: Registry[Any] = Registry(
    "substrate",
    {
        LOCAL: "clusters.substrates.processes",
        "kubernetes": "clusters.substrates.kubernetes",
        "adopted": "clusters.substrates.adopted",
    },
)
