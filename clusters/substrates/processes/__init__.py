"""The substrate ``processes``: a cluster's nodes as processes of this machine, each on a loopback address of its own."""

from clusters.substrates.processes.namespaces import why_not as cannot_cut
from clusters.substrates.processes.substrate import CAPABILITIES, Processes

__all__ = ["CAPABILITIES", "Processes", "cannot_cut"]
