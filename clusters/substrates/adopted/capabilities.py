"""What can be done to clusters that are there already."""

from clusters.model import Capability

CAPABILITIES = frozenset(
    {
        Capability.REPLICATE,
        Capability.KILL,
        Capability.DELETE_POD,
        Capability.RESTART,
        Capability.DRAIN,
        Capability.REPORT_RANGES,
    }
)
"""What is done to all clusters of others: what Kubernetes itself undoes, and a load in a database, which is dropped."""

CHANGES = frozenset({Capability.ADD_NODE, Capability.REMOVE_NODE, Capability.REBALANCE, Capability.SWAP_VERSION})
"""What takes a change of a StatefulSet's replicas or its image, put back at the end; not where an operator has it."""
