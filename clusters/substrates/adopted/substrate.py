"""A cluster of others: hurt only where that was allowed, its StatefulSet changed and put back."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from pathlib import Path

from clusters.errors import BadInput, HarnessError, of_a_node_that_has_run
from clusters.model import Health, ProcessSpec, ProcessState
from clusters.substrates.adopted.pods import Pod
from clusters.substrates.adopted.states import States
from clusters.substrates.kubernetes.dns import leads_to
from clusters.substrates.kubernetes.manifests import LEAST_GRACE_S
from clusters.substrates.kubernetes.pods import UnfitImage
from clusters.substrates.kubernetes.settings import Given
from clusters.waiting import to_the_end, wait_until

_END_S, _START_S, _TELLS_S = 60.0, 300.0, 60.0
"""How long a container may take to end and to run, and its program to say its version, in seconds."""


class Adopted(States):
    """One cluster that is there already. Made with ``open``; belongs to the event loop that opened it."""

    async def start(self, spec: ProcessSpec) -> None:
        """Wait for the pod that the StatefulSet makes anew by itself; one of another image is made anew once more.

        Of a node that has run ``HarnessError`` alone is raised: bad input would be its program's, and evidence.
        """
        with of_a_node_that_has_run() if self._runs[spec.name] else nullcontext():
            await self._start(spec)
        await self._as_meant(spec)

    async def _start(self, spec: ProcessSpec) -> None:
        name, image = spec.name, self._image(spec.program)
        if self._number(name) < self._changes.replicas:
            return await self._comes(name, image)
        await self._changes.free(self._names[name])
        pod = self._pods[self._names[name]]
        earlier = pod.ended
        try:
            await self._changes.ask(image=image, replicas=self._number(name) + 1)
            await self._comes(name, image)
        except BaseException as error:
            # One that ran, for a moment even, may be of the cluster: it is never scaled away.
            if not pod.container and pod.ended == earlier and self._number(name) == self._changes.replicas - 1:
                try:
                    await to_the_end(self._scaled_away(name))
                except (HarnessError, BadInput) as further:
                    error.add_note(str(further))
            raise

    async def _scaled_away(self, name: str) -> None:
        """Have the StatefulSet make a pod no more that is its last one, and delete that one's volumes."""
        pod = self._pods[self._names[name]]
        await self._changes.ask(replicas=self._number(name))

        async def gone() -> Health:
            return Health(ok=not pod.uid, why="its pod is there")

        await _until(f"{name} to be gone", gone, self._found.grace_s + _END_S)
        self._out.add(name)
        await self._changes.forget(self._names[name])

    async def _comes(self, name: str, image: str) -> None:
        """Wait until the node's pod runs this image, in another container than it did."""
        pod, former = self._pods[self._names[name]], self._runs[name]

        async def there() -> Health:
            return Health(ok=pod.uid not in ("", self._ended.get(name)), why="its pod is not there")

        async def another() -> Health:
            if pod.stuck:
                words = f"; it said last: {pod.last_words}" if pod.last_words else ""
                raise HarnessError(f"{name}: pod {self._names[name]}: {pod.waiting}{words}")
            return Health(ok=pod.container not in ("", former), why=pod.waiting or "its container does not run")

        await _until(f"{name} to be made anew", there, _START_S)
        if self._made_of(pod) != image:
            await self._changes.ask(image=image)
            await self._delete(name, LEAST_GRACE_S)
            await _until(f"{name} to be made anew", there, _START_S)
        await _until(f"{name} to run {image}", another, _START_S)
        self._runs[name] = runs = pod.container
        self._history.begins(self._names[name])
        if former or pod.ended:  # what clients know of its name may be of that one
            address, write = self._placements[name].client_address, self._history.write
            await leads_to(address, lambda: pod.addresses, lives=lambda: pod.container == runs, say=write)

    def _made_of(self, pod: Pod) -> str:
        """The template's image that a pod was made of: its own may be another, which a webhook gave it."""
        told = {self._found.image, *self._images.values(), *self._rewritten}
        if pod.image and pod.image not in told:  # by nobody here: so it is what became of the one that was told last
            self._rewritten[pod.image] = self._changes.image
        return self._rewritten.get(pod.image, pod.image)

    async def _as_meant(self, spec: ProcessSpec) -> None:
        """Ask the program of another image which version it is. Raises ``UnfitImage`` where it is none that was meant.

        Only now: no pod is made of that image but the node's own. One that has ended meanwhile does not answer.
        """
        given, pod = Given.read(), self._names[spec.name]
        program = given.program(spec.program) if spec.program else None
        if not spec.tells or not program or program.image is None or program.image == self._found.image:
            return
        line = (program.inside, *spec.tells.argv[1:])
        printed = b""
        with suppress(HarnessError):
            _, printed, _ = await asyncio.to_thread(
                self._api.execute,
                self._found.namespace,
                pod,
                line,
                container=self._found.container,
                timeout=_TELLS_S,
            )
        if why := given.belied(program, spec.tells, printed.decode(errors="replace")):
            raise UnfitImage(why, program.image)

    def comes_back(self, name: str, program: Path | None) -> None:
        """Say with which program a node comes back that is ended next, or that it does not.

        Raises ``HarnessError`` for a node that was not added last: no other can be scaled away.
        """
        if program is not None:
            self._next[name] = self._image(program)
            return
        if self._number(name) != self._changes.replicas - 1 or self._names[name] in self._found.pods:
            raise HarnessError(
                f"{name} ({self._names[name]}) cannot be taken out: a StatefulSet gives up its last pod alone, and "
                "none that was found is"
            )
        self._next[name] = None

    async def stop(self, name: str, *, timeout: float) -> int:
        """Delete its pod, with its own grace, at most ``timeout`` seconds; returns the exit code of its container."""
        await self._end(name, max(LEAST_GRACE_S, int(min(timeout, self._found.grace_s))))
        code = self.exit_code(name)
        if code is None:
            raise HarnessError(f"nobody saw how {name} ended")
        return code

    async def kill(self, name: str) -> None:
        """Delete its pod, with the least grace; returns when Kubernetes says that its container has ended."""
        await self._end(name, LEAST_GRACE_S)

    async def delete_pod(self, name: str) -> str:
        """The same; returns once its StatefulSet has made another, of which a kubelet runs another container."""
        pod, ran = self._pods[self._names[name]], self._runs[name]
        former = pod.uid
        if self.state(name) is not ProcessState.RUNNING:
            raise HarnessError(f"{name} has no pod that could be deleted: it is {self.state(name)}")
        await self._end(name, LEAST_GRACE_S)

        async def another() -> Health:
            there = pod.uid not in ("", former)
            why = (pod.waiting or "its container does not run") if there else "its pod is not there"
            return Health(ok=there and pod.container not in ("", ran), why=why)

        await _until(f"another pod {self._names[name]}", another, _START_S)
        return (
            f"pod {self._names[name]} deleted: its UID was {former} and is {pod.uid}; its container was {ran} and is "
            f"{pod.container}, which its kubelet runs since {pod.since}"
        )

    async def _end(self, name: str, grace_s: int) -> None:
        pod, runs = self._pods[self._names[name]], self._runs[name]
        runs_now, image = self.state(name) is ProcessState.RUNNING, self._next.pop(name, self._made_of(pod))
        if not runs_now and image is not None:
            return
        if not self._allowed:
            raise BadInput(f"{name} is not Roachproof's; give --allow-disruption if its owner allows that")
        self._ours.add(runs)
        with of_a_node_that_has_run():
            if image is None:
                await asyncio.to_thread(self._save_log, name)
                grace_s = self._found.grace_s
                await self._changes.ask(replicas=self._number(name))
            else:
                # It is made anew at once, from what its StatefulSet says then.
                await self._changes.ask(image=image)
                await self._delete(name, grace_s)

        async def ended() -> Health:
            over = not runs_now or runs in pod.codes or runs in pod.outside
            return Health(ok=over and (image is not None or not pod.uid), why="its container runs")

        await _until(f"{name} to be gone", ended, grace_s + _END_S)
        if image is None:
            self._out.add(name)
            await self._changes.forget(self._names[name])

    async def _delete(self, name: str, grace_s: int) -> None:
        """Delete a node's pod: this one, and none that was made in its place meanwhile."""
        pod = self._pods[self._names[name]]
        self._ended[name] = pod.uid
        where = (self._names[name], self._found.namespace)
        end = self._api.core.delete_namespaced_pod
        await asyncio.to_thread(self._api.delete_now, "delete a pod", end, *where, uid=pod.uid, grace_s=grace_s)


async def _until(what: str, check: Callable[[], Awaitable[Health]], timeout: float) -> None:
    """Wait for what Kubernetes does: no database is late with it."""
    await wait_until(what, check, timeout=timeout, interval=0.05, late=HarnessError)
