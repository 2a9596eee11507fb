"""What is changed of somebody's StatefulSet, its replicas and its image, and how it is put back as it was found."""

import asyncio
import json
from collections.abc import Sequence

from clusters.errors import BadInput, HarnessError
from clusters.model import Health
from clusters.substrates.adopted.finding import FOUND, Found, put_back
from clusters.substrates.kubernetes.api import Api
from clusters.waiting import to_the_end, wait_until

_SEEN_S = 60.0
"""How long the StatefulSet's controller may take to see what was changed."""
_LOOK_S = 0.5
"""How often it is asked whether it has: fewer than five requests a second."""


class Changes:
    """The StatefulSet of one cluster. Until something is changed nothing of it is touched.

    Its pods are made anew only where somebody deletes one (``OnDelete``): in which order that is the plan's to say.
    """

    def __init__(self, api: Api, found: Found) -> None:
        self._api, self._found = api, found
        self._lock = asyncio.Lock()
        self._generation = found.generation
        """Of the StatefulSet, since it was found, or changed from here last."""
        self.begun = False
        """Whether something was changed, and not put back."""
        self.image, self.replicas = found.image, len(found.pods)
        """What it was told last: new pods get that image."""

    async def ask(self, *, image: str | None = None, replicas: int | None = None) -> None:
        """Have it make pods of this image, or so many, from now on; returns once its controller knows."""
        async with self._lock:
            image, replicas = image or self.image, self.replicas if replicas is None else replicas
            if (image, replicas) == (self.image, self.replicas):
                return
            await to_the_end(self._ask(image, replicas))

    async def _ask(self, image: str, replicas: int) -> None:
        before = self.begun, self.image, self.replicas
        # Also where no answer comes it may have been done.
        self.begun, self.image, self.replicas = True, image, replicas
        spec = {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}, **self._spec(image, replicas)}
        # So that whoever finds it after a killed run knows how it was.
        try:
            await self._patch({"metadata": {"annotations": {FOUND: json.dumps(self._found.was)}}, "spec": spec})
        except BadInput:
            self.begun, self.image, self.replicas = before
            raise

    async def put_back(self, changed: Sequence[str] = ()) -> None:
        """Have it as it was found.

        Not where pods still have another image (``changed``): its controller would make them anew one after the other,
        undrained, on a cluster that may not be whole. Nodes that nobody took out of the cluster are never scaled away.
        Then ``HarnessError`` is raised, with what a person does.
        """
        if not self.begun:
            return
        if changed:
            raise HarnessError(
                f"StatefulSet {self._found.name} is not put back, as {', '.join(changed)} did not go back to "
                f"{self._found.image}: drain and delete these pods one by one first; {put_back(self._found)}"
            )
        spec = {"updateStrategy": self._found.strategy, **self._spec(self._found.image, self.replicas)}
        whole = self.replicas == len(self._found.pods)
        await self._patch({"metadata": {"annotations": {FOUND: None}} if whole else {}, "spec": spec})
        self.begun = False
        if not whole:
            raise HarnessError(
                f"StatefulSet {self._found.name} has {self.replicas} replicas, and was found with "
                f"{len(self._found.pods)}: added nodes were not taken out, and hold replicas of data; "
                f"{put_back(self._found)}"
            )

    async def free(self, pod: str) -> None:
        """See that no volume is there for a pod that is to be added. Raises ``BadInput`` where one is."""
        if left := await self._volumes(pod):
            raise BadInput(
                f"{self._api.where}: {', '.join(left)} is there already, of an earlier pod {pod} of StatefulSet "
                f"{self._found.name}, and may have a node's store that the cluster knows no more; delete it if nobody "
                "needs it"
            )

    async def forget(self, pod: str) -> None:
        """Delete the volumes of a pod that was added here and is gone."""
        delete = self._api.core.delete_namespaced_persistent_volume_claim
        for name in await self._volumes(pod):
            where = (name, self._found.namespace)
            await asyncio.to_thread(self._api.delete_now, "delete an added node's volume", delete, *where)

    async def _volumes(self, pod: str) -> Sequence[str]:
        listed = self._api.core.list_namespaced_persistent_volume_claim
        there = (await self._api.call("look at volumes", listed, self._found.namespace)).items
        named = {f"{claim}-{pod}" for claim in self._found.claims}
        return [one.metadata.name for one in there if one.metadata.name in named]

    def _spec(self, image: str, replicas: int) -> dict[str, object]:
        containers = [{"name": self._found.container, "image": image}]
        return {"replicas": replicas, "template": {"spec": {"containers": containers}}}

    async def _patch(self, body: dict[str, object]) -> None:
        api, where = self._api, (self._found.name, self._found.namespace)
        now = await api.call("look at the StatefulSet", api.apps.read_namespaced_stateful_set, *where)
        if now.metadata.generation != self._generation:
            raise HarnessError(
                f"StatefulSet {self._found.name} was changed by somebody else meanwhile, and is left as it is: its "
                f"generation is {now.metadata.generation}, and was {self._generation}; {put_back(self._found)}"
            )
        patched = await api.call("change the StatefulSet", api.apps.patch_namespaced_stateful_set, *where, body)
        self._generation = patched.metadata.generation

        async def seen() -> Health:
            now = await api.call("look at the StatefulSet", api.apps.read_namespaced_stateful_set, *where)
            ok = (now.status.observed_generation or 0) >= patched.metadata.generation
            return Health(ok=ok, why="its controller has not seen it")

        await wait_until(
            f"the change of StatefulSet {where[0]}", seen, timeout=_SEEN_S, interval=_LOOK_S, late=HarnessError
        )
