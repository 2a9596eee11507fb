"""How the nodes of a cluster of others are, as Kubernetes and their pods' own containers tell it."""

from collections.abc import Mapping
from contextlib import suppress

from kubernetes.client.exceptions import ApiException
from kubernetes.utils.quantity import parse_quantity

from clusters.clocks import Reading
from clusters.errors import HarnessError
from clusters.model import ProcessState
from clusters.substrates.adopted.places import Places
from clusters.substrates.adopted.pods import MEMORY, OUTSIDE
from clusters.substrates.kubernetes.commands import CLOCK, reading

_CLOCK_S = 10.0
"""How long a container may take to tell its clock: one that stands still never does."""


class States(Places):
    """What is seen of each node; nothing of it is changed."""

    def state(self, name: str) -> ProcessState:
        """Whether the container runs that did when it was placed or started last; another in its place does not count.

        So a node that Kubernetes made anew by itself has ended all the same. Raises ``HarnessError`` where nothing
        is heard of pods any more, and where a process that clears away after a killed harness has ended.
        """
        if self._pods.unheard:
            raise self._pods.unheard
        self._refuse_unguarded()
        if name not in self._names:
            return ProcessState.ABSENT
        pod, runs = self._pods[self._names[name]], self._runs[name]
        if not runs:
            return ProcessState.ABSENT
        return ProcessState.RUNNING if pod.container == runs else ProcessState.EXITED

    def exit_code(self, name: str) -> int | None:
        """That of the container, where Kubernetes tells it."""
        if self.state(name) is not ProcessState.EXITED:
            return None
        return self._pods[self._names[name]].codes.get(self._runs[name])

    def ended_by(self, name: str) -> str:
        """What outside of it ended the container: its memory, or its pod's end."""
        if self.state(name) is not ProcessState.EXITED or (runs := self._runs[name]) in self._ours:
            return ""
        pod = self._pods[self._names[name]]
        if runs in pod.memory:
            return MEMORY
        # Before Kubernetes ends one that fails its owner's probe it says so.
        probed = self._history.probed(self._names[name]) if runs in pod.codes else ""
        return f"by Kubernetes ({probed})" if probed else OUTSIDE if runs in pod.outside else ""

    def machine_lost(self, name: str) -> str:
        """That the machine of its pod was not ready since that was taken over, and since when; it may be back."""
        return self._machines.lost(self._names[name]) if name in self._names else ""

    def machine(self, name: str) -> str:
        """The machine that a node's pod is on, by its name; empty where it is on none."""
        return self._machines.of(self._names[name]) if name in self._names else ""

    def limits(self, name: str) -> Mapping[str, float]:
        """What the pod's container may use, as it says. Raises ``HarnessError`` for a node that was never placed."""
        limits = self._pods[self._pod(name)].limits
        found = {"cpus": float(parse_quantity(limits["cpu"]))} if "cpu" in limits else {}
        return found | ({"memory_mib": float(parse_quantity(limits["memory"])) / 2**20} if "memory" in limits else {})

    def _pod(self, name: str) -> str:
        if name not in self._names:
            raise HarnessError(f"{name} was never placed")
        return self._names[name]

    def clock(self, name: str) -> Reading:
        """The clock of the machine that the node's pod runs on. Raises ``HarnessError`` where it cannot be read."""
        pod, line = self._pod(name), ("/bin/sh", "-c", CLOCK)
        where, container = self._found.namespace, self._found.container
        _, out, err = self._api.execute(where, pod, line, container=container, timeout=_CLOCK_S)
        return reading((out or err).decode(errors="replace"), name)

    def log_tail(self, name: str, lines: int = 20) -> str:
        """The last lines of the container's log."""
        with suppress(ApiException, OSError, KeyError):
            return self._log(self._names[name], tail_lines=lines).rstrip("\n")
        return ""
