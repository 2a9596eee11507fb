"""A cluster that shrinks: the places of nodes that were removed, taken away as far as StatefulSets let them."""

import asyncio

from clusters.errors import of_a_node_that_has_run
from clusters.substrates.kubernetes.places import Places

_END_S = 120.0
"""How long a pod may take to be gone in which nothing runs any more."""


class Shrinking(Places):
    """Places that are given back."""

    async def take_away(self, name: str) -> None:
        """Take away the pod and the volume of a node that was removed, which has ended.

        A StatefulSet gives up its last pod alone. Another stays until all after it are gone; the history says so.
        """
        node = self._node(name)
        self._removed.add(name)
        with of_a_node_that_has_run():
            async with self._locks.setdefault(node.group, asyncio.Lock()):
                self._opened()
                while (last := self._last(node.group)) in self._removed:
                    await self._given_up(last)
        if name in self._nodes:
            self._history.write(
                f"pod {node.pod}: {name} was removed; its pod and volume stay, as a StatefulSet gives up its last pod "
                "alone"
            )

    def _last(self, group: str) -> str:
        """The node of a StatefulSet's last pod: they are placed in that order. Empty where it has none left."""
        return next((name for name, node in reversed(self._nodes.items()) if node.group == group), "")

    async def _given_up(self, name: str) -> None:
        node, api, namespace = self._nodes[name], self._api, self._settings.namespace
        pod = self._pods[node.pod]
        if self._keep_logs is not None and pod.ready:
            await self._files.save_logs(node.pod, self._keep_logs / name)
        await asyncio.gather(*(asyncio.to_thread(shell.close) for shell in (node.shell, node.looks)))
        told = self._sets.get(node.group)
        del self._nodes[name]
        if told is None:
            return  # nobody asked for its pod
        await self._declared(node, told[0])
        await self._pods.until(f"pod {node.pod} to be gone", pod, lambda: not pod.uid, timeout=_END_S)
        # The one of that name alone, by the right that takes all at the end: another node may get a pod of that name,
        # and would find the former one's store.
        claims = api.core.delete_collection_namespaced_persistent_volume_claim
        only = {"field_selector": f"metadata.name=home-{node.pod}", "label_selector": self._settings.selector}
        await api.call("delete the volume of a node that was removed", claims, namespace, **only)
        self._pods.forget(node.pod)
        self._machines.forget(node.pod)
        self._history.forget(node.pod)
        self._history.write(f"pod {node.pod}: {name} was removed; its pod and volume are deleted")
