"""The substrate ``processes``: a cluster's nodes as processes of this machine, each on a loopback address of its own."""

from clusters.substrates.processes.substrate import CAPABILITIES, Processes

__all__ = ["CAPABILITIES", "Processes"]
