"""Where one cluster's nodes are: pods of StatefulSets, in a namespace of their own."""

import asyncio
import re
import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Self

from clusters.errors import BadInput, HarnessError
from clusters.generators import WantedGenerators
from clusters.model import Capability, NodeResources, NodeSpec, Placement
from clusters.substrates import SUBSTRATES, SubstrateKind
from clusters.substrates.kubernetes import cleanup, manifests
from clusters.substrates.kubernetes.api import AWAY_S, Api, Refused
from clusters.substrates.kubernetes.capacity import refuse_old, refuse_shortage, zones
from clusters.substrates.kubernetes.commands import written
from clusters.substrates.kubernetes.forwarding import Forwards, forwarded
from clusters.substrates.kubernetes.generators import Generators
from clusters.substrates.kubernetes.history import History
from clusters.substrates.kubernetes.links import Links
from clusters.substrates.kubernetes.machines import Machines
from clusters.substrates.kubernetes.manifests import (
    CONTAINER,
    HOME,
    LOGS,
    MANAGED,
    OWNER,
    POD,
    STORE,
    Settings,
    Template,
)
from clusters.substrates.kubernetes.pods import Pod, Pods, UnfitImage
from clusters.substrates.kubernetes.resizing import resize
from clusters.substrates.kubernetes.rights import (
    CUTTING,
    FORWARDS,
    GENERATORS,
    IN_A_NAMESPACE,
    NAMESPACES,
    granted,
    lacking,
    refuse_without,
)
from clusters.substrates.kubernetes.settings import CAPABILITIES, NAMESPACE, Given, Program
from clusters.substrates.kubernetes.shell import Shell
from clusters.substrates.kubernetes.volumes import Files, link, private
from clusters.waiting import to_the_end

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_AGAIN_S = 0.5


@dataclass(slots=True)
class Node:
    """What was placed. ``group``: its StatefulSet."""

    placement: Placement
    group: str
    pod: str
    shell: Shell
    looks: Shell
    """Another, for what is asked between other work: it never waits for an order to be carried out."""
    waiting: dict[PurePath, bytes] = field(default_factory=dict)
    """Files that were put before there was a pod."""
    furnished: set[tuple[str, PurePath]] = field(default_factory=set)
    """Which programs the pod has, each with the pod's identity."""
    output: PurePath | None = None


class Places:
    """Nodes and their pods: made, furnished, cleared away."""

    def __init__(
        self, given: Given, api: Api, settings: Settings, scratch: Path, *, own: bool, keep_logs: Path | None
    ) -> None:
        self._given, self._api, self._settings, self._own = given, api, settings, own
        self.scratch = scratch
        """A directory (0700) for what clients and the harness need."""
        self._links: Links | None = None
        self.generators: Generators | None = None
        """Its load generators, if it has some."""
        self._cluster = settings.cluster
        self._nodes: dict[str, Node] = {}
        """Those of one StatefulSet in the order of their pods."""
        self._removed: set[str] = set()
        """Nodes that were taken out of the cluster, whether or not their pods are gone."""
        self._services: set[str] = set()
        self._programs: dict[PurePath, Program] = {}
        self._as_said: set[tuple[str, PurePath]] = set()
        """Those of images that are of the version that was meant."""
        self._sets: dict[str, tuple[Template, int]] = {}
        """What each StatefulSet was told last."""
        self._locks: dict[str, asyncio.Lock] = {}
        self._led: dict[str, str] = {}
        """By pod's name the UID of the one that clients found by it last."""
        self._where: Mapping[str, Mapping[str, str]] = {}
        """The labels of the machines that each StatefulSet's pods must be on, where there are several zones."""
        self._files = Files(api, settings.namespace)
        logs = None if keep_logs is None else keep_logs / "kubernetes" / "pods.log"
        self._groups: set[str] = set()
        """Its StatefulSets: in a namespace that is not ours there may be others."""
        self._history = History(api, settings.namespace, logs, of=self._is_ours)
        self._machines = Machines(api, self._history)
        self._pods = Pods(api, settings, self._history, self._machines.on)
        if settings.cuts and given.cutter:
            self._links = Links(api, settings.namespace, self._pods, given.cutter)
        self._forwards: Forwards | None = None
        self._addresses: dict[str, str] = {}
        """By address of this machine to which a pod's ports are brought that of the pod."""
        self._guard: cleanup.Guard | None = None
        self._keep_logs = keep_logs
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        *,
        name: str,
        workdir: Path,
        nodes: Sequence[NodeSpec],
        resources: NodeResources | None,
        say: Callable[[str], None] = lambda _: None,
        keep: bool = False,
        keep_logs: Path | None = None,
        generators: WantedGenerators | None = None,
        ports: Sequence[int] = (),
        cuts: bool = False,
    ) -> Self:
        """A namespace of its own, or the one that was named, ready for nodes. Raises ``BadInput``, ``HarnessError``.

        ``ports``: those of nodes that others may reach, where they are known. ``cuts``: whether links are to be cut,
        where that can be.
        ``say`` hears what is cleared away of lost runs, and what of the cluster it may not look at. If the harness
        dies, everything is deleted unless ``keep``.
        """
        given = Given.read()
        api = await asyncio.to_thread(Api, given.context)
        cluster = manifests.cluster(name, secrets.token_hex(4))
        settings = Settings(
            namespace=given.namespace or cluster,
            cluster=cluster,
            generators=generators is not None,
            ports=ports,
            cuts=cuts and given.cutter is not None,
            owner=given.owner,
            storage_class=given.storage_class,
            volume_mib=given.volume_of(resources),
            pods=given.pods,
        )
        await refuse_old(api)
        await refuse_without(api, IN_A_NAMESPACE, given.namespace)
        if own := given.namespace is None:
            await refuse_without(api, NAMESPACES, None)
        if generators:
            await refuse_without(api, GENERATORS, given.namespace)
        if settings.cuts:
            await refuse_without(api, CUTTING, given.namespace)
        if brought := await forwarded(api, given.reach, ports, generators=bool(generators)):
            await refuse_without(api, FORWARDS, given.namespace)
        where = await zones(api, nodes, pods=given.pods)
        await refuse_shortage(
            api,
            settings,
            own=own,
            nodes=nodes,
            resources=resources,
            generators=generators,
            where=where,
            say=say,
            autoscaled=given.autoscaled,
        )
        scratch = await asyncio.to_thread(private, workdir / cluster)
        self = cls(given, api, settings, scratch, own=own, keep_logs=keep_logs)
        self._where = where
        try:
            if brought:
                say("nodes are reached by port-forwarding, as the names of pods are not known here")
                self._forwards = await asyncio.to_thread(
                    Forwards, given.context, settings.namespace, ports, self.scratch / "not-forwarded"
                )
                self._pods.through_it = True
            await self._begin(say, keep=keep)
            if generators:
                # Before any node is: an image that is not to be had, or not this suite's, is found at once.
                say(f"starting {generators.number} load generators")
                self.generators = await Generators.begin(api, settings, self._pods, generators, given.start_s)
                self.generators.addresses = self._addresses
        except BaseException as error:
            try:
                await self.close()
            except (HarnessError, BadInput) as further:
                error.add_note(str(further))
            raise
        return self

    async def _begin(self, say: Callable[[str], None], *, keep: bool) -> None:
        api, settings = self._api, self._settings
        await self._history.begin()
        await self._machines.begin(say)
        if not keep:
            self._guard = cleanup.Guard(
                settings, self._given.context, own=self._own, keep_logs=self._keep_logs, scratch=self.scratch
            )
        # One that is kept has no owner who says that it lives, and no later run is to clear it away.
        renewed = None if keep else await asyncio.to_thread(cleanup.now, api, self._given.namespace)
        if self._own:
            for swept in await asyncio.to_thread(cleanup.sweep, api):
                say(f"left by a lost run: namespace {swept}: deleted")
            await api.make("make a namespace", api.core.create_namespace, manifests.namespace(settings, renewed))
        here = Path(__file__)
        node, cutter = (here.with_name(name).read_text(encoding="utf-8") for name in ("node.sh", "cutter.py"))
        first = manifests.scripts(settings, node, cutter, renewed=renewed)
        # In a namespace that is not ours nothing else of it tells that there is none, or who is in it.
        await self._make_first("keep the nodes' script", first, say)
        service = api.core.create_namespaced_service
        public = [("make a service", service, manifests.public(settings))] if settings.ports else []
        for what, create, body in (
            ("make a service", service, manifests.service(settings)),
            *public,
            ("limit disruptions", api.policy.create_namespaced_pod_disruption_budget, manifests.budget(settings)),
        ):
            await api.make(what, create, settings.namespace, body)

    async def _make_first(self, what: str, body: manifests.Object, say: Callable[[str], None]) -> None:
        """Make the object that says whose the namespace is; what a lost run left there is cleared away before."""
        namespace = self._settings.namespace

        async def make() -> None:
            """Not ``Api.make``: runs that are in the namespace at once call it the same."""
            try:
                await self._api.call(what, self._api.core.create_namespaced_config_map, namespace, body)
            except Refused as error:
                # It is ours where the first answer alone was lost.
                if not (error.is_there and await asyncio.to_thread(cleanup.is_in, self._api, self._settings)):
                    raise

        try:
            await make()
        except Refused as error:
            if not error.is_there:
                raise self._taken(error) from error
            jobs = not await lacking(self._api, granted(GENERATORS), namespace)
            lost = replace(self._settings, generators=jobs)
            try:
                if swept := await asyncio.to_thread(cleanup.sweep_named, self._api, lost):
                    say(f"left by a lost run: {swept} in namespace {namespace}: deleted")
                await make()
            except Refused as another:  # who was quicker may have cleared it away, too
                raise self._taken(another) from another

    def _taken(self, error: Refused) -> Exception:
        """What to raise where the first objects cannot be made."""
        there = f"{self._api.where}: namespace {self._settings.namespace}"
        if error.is_there:
            left = f"kubectl -n {self._settings.namespace} delete sts,job,pdb,cm,svc,pvc,pod -l {MANAGED}={OWNER}"
            return BadInput(
                f"{there} has another run in it ({error}); wait for its end, name another namespace, or remove what a "
                f"lost run left (`{left}`)"
            )
        if error.is_not_there:
            return BadInput(f"{there} is not there; make it, or name another one in {NAMESPACE} ({error})")
        return error

    @property
    def kind(self) -> SubstrateKind:
        """``kubernetes``."""
        return SUBSTRATES["kubernetes"]

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What can be done to nodes here."""
        return CAPABILITIES | ({Capability.CUT_LINKS} if self._links else frozenset())

    # ---- placing --------------------------------------------------------------------------------------------------

    def _opened(self) -> None:
        if self._closing is not None:
            raise HarnessError(f"{self._cluster}: the cluster is closed")

    def _is_ours(self, name: str) -> bool:
        """Whether a StatefulSet, pod, volume or Job that is called so is of this cluster."""
        of = name.removeprefix("home-")
        return of in self._groups or of.rpartition("-")[0] in self._groups or name.startswith(manifests.GENERATORS)

    def _node(self, name: str) -> Node:
        if name not in self._nodes:
            raise HarnessError(f"{self._cluster}: {name} was never placed")
        return self._nodes[name]

    def _pod(self, name: str) -> Pod:
        return self._pods[self._node(name).pod]

    async def place(self, nodes: Sequence[NodeSpec]) -> tuple[Placement, ...]:
        """Give each node a pod's name; see ``Substrate.place``. Pods are made when something is to be in them."""
        self._opened()
        if any(manifests.group(node) not in self._where for node in nodes):
            there = [node.placement.node for name, node in self._nodes.items() if name not in self._services]
            self._where = await zones(self._api, [*there, *nodes], known=self._where, pods=self._settings.pods)
        return tuple([await self._placed(node, manifests.group(node)) for node in nodes])

    async def beside(self, name: str) -> Placement:
        """A pod of its own."""
        self._opened()
        if name in self._services:
            return self._nodes[name].placement
        if not self._nodes:
            raise HarnessError(f"{self._cluster}: no node was placed beside which {name} could be")
        placed = await self._placed(NodeSpec(name=name), manifests.beside(name))
        self._services.add(name)
        return placed

    async def _placed(self, spec: NodeSpec, group: str) -> Placement:
        name = spec.name
        if name in (*self._nodes, *self._removed) or not _NAME.fullmatch(name):
            raise BadInput(
                f"node name {name!r}: must be new to the cluster and at most 63 letters, digits, '.', '_' and '-'; "
                "rename it in the topology"
            )
        self._groups.add(group)
        pod = f"{group}-{sum(node.group == group for node in self._nodes.values())}"
        address = here = manifests.host(pod, self._settings.namespace)
        if self._forwards is not None:
            here = await asyncio.to_thread(self._forwards.address, pod)
            self._addresses[here] = address
        placement = Placement(
            node=spec,
            address=address,
            client_address=here,
            home=HOME,
            store=STORE,
            logs=LOGS,
            binds_to="0.0.0.0",  # noqa: S104 - of its own network, which has nothing else
        )
        shell, looks = (Shell(self._api, self._settings.namespace, pod, container=CONTAINER) for _ in range(2))
        self._nodes[name] = Node(placement=placement, group=group, pod=pod, shell=shell, looks=looks)
        return placement

    # ---- pods -----------------------------------------------------------------------------------------------------

    async def _up(self, name: str, template: Template | None = None) -> Node:
        """The node with a pod of this template (any, where none is given), furnished with files and programs.

        Raises ``BadInput`` for an image that the user named and that will not do. Of a node that has run it raises
        ``HarnessError`` alone: bad input would be the program's that it is to go on with, and evidence.
        """
        pod = self._pod(name)
        try:
            return await self._made(name, template)
        except BadInput as error:
            if pod.starts:
                raise HarnessError(str(error)) from error
            raise
        except UnfitImage as error:
            if not pod.starts and (named := self._given.names(error.image)):
                raise BadInput(f"{named}: {error}") from error
            raise

    async def _made(self, name: str, template: Template | None) -> Node:
        self._opened()
        node = self._node(name)
        pod = self._pods[node.pod]
        async with self._locks.setdefault(node.group, asyncio.Lock()):
            self._opened()  # what is asked for while all is cleared away would be left
            told, _ = self._sets.get(node.group, (None, 0))
            wanted = template or pod.template or told or Template(image=self._image())
            await self._declared(node, wanted)
            # Before another node of the group asks for something else: pods are made from what was asked for last.
            there, timeout = f"pod {node.pod}", self._given.start_s
            await self._pods.until(there, pod, lambda: bool(pod.uid), timeout=timeout, of=node.group)
            why = ""
            if template is not None and pod.template != template:
                shells = (node.shell, node.looks)
                why = await resize(
                    self._api, self._settings.namespace, self._pods, self._history, pod, shells, template
                )
                if why:
                    await self._replaced(node, pod)
        what = f"pod {node.pod} to run {wanted.image}" + (f", made anew as {why}," if why else "")
        await self._pods.until(what, pod, lambda: pod.ready, timeout=timeout)
        await self._furnish(node, pod)
        return node

    def _image(self) -> str:
        known = (program.image for program in self._programs.values() if program.image)
        return next(known, None) or self._given.default_image()

    async def _declared(self, node: Node, template: Template) -> None:
        """Have the StatefulSet ask for the node's pod, with this template for pods that are made from now on."""
        api, settings = self._api, self._settings
        replicas = sum(other.group == node.group for other in self._nodes.values())
        body = manifests.stateful_set(
            settings, node.group, template, replicas=replicas, place=self._where.get(node.group)
        )
        self._pods.expect(node.group, template.image)
        if node.group not in self._sets:
            await api.make("make a StatefulSet", api.apps.create_namespaced_stateful_set, settings.namespace, body)
        elif self._sets[node.group] != (template, replicas):
            patch, changed = api.apps.patch_namespaced_stateful_set, manifests.changed(body)
            await api.call("change a StatefulSet", patch, node.group, settings.namespace, changed)
        self._sets[node.group] = (template, replicas)

    async def _replaced(self, node: Node, pod: Pod, *, grace_s: int | None = None) -> None:
        """Have the pod made anew, from what its StatefulSet says now; by default it has its own grace."""
        former, end = pod.uid, self._api.core.delete_namespaced_pod
        await asyncio.gather(*(asyncio.to_thread(shell.close) for shell in (node.shell, node.looks)))
        where = (node.pod, self._settings.namespace)
        await asyncio.to_thread(self._api.delete_now, "end a pod", end, *where, uid=former, grace_s=grace_s)
        another = f"another pod {node.pod}"
        await self._pods.until(another, pod, lambda: pod.uid not in ("", former), timeout=self._given.start_s)

    async def _has_volume(self, node: Node, pod: Pod) -> str:
        """The UID of the pod that has the node's volume, by the word of its container, once that runs."""
        await self._pods.until(f"pod {node.pod} to run", pod, lambda: pod.ready, timeout=self._given.start_s)
        return (await self._asked(node, "cat", str(POD))).strip()

    async def _furnish(self, node: Node, pod: Pod) -> None:
        """Put into the pod what was put before it was there, and programs."""
        for path, content in list(node.waiting.items()):
            await self._write(node, path, content)
            del node.waiting[path]
        if (template := pod.template) is None:
            raise HarnessError(f"pod {pod.name} was ended from outside while it was furnished")
        for program in self._programs.values():
            key = (pod.uid, program.path)
            if key in node.furnished or program.image not in (None, template.image):
                continue
            if program.image is not None:
                await self._asked(node, "eval", link(program))
            elif (await self._answered(node, "test", "-e", str(program.path)))[0]:
                await self._files.copy(node.pod, program)
            node.furnished.add(key)

    async def _write(self, node: Node, path: PurePath, content: bytes) -> None:
        await self._asked(node, "eval", written(path, content))

    async def _asked(self, node: Node, *question: str, timeout: float = 30.0) -> str:
        """What the node's container answers. Raises ``HarnessError`` where it is no; see ``_answered``."""
        code, said = await self._answered(node, *question, timeout=timeout)
        if code:
            raise HarnessError(f"{node.placement.node.name}: {question[0]} ended with {code}: {said.strip()}")
        return said

    async def _answered(self, node: Node, *question: str, timeout: float = 30.0) -> tuple[int, str]:
        """What the node's container answers, and with which exit code, in a thread.

        Where no answer comes it is asked again for a minute, as the API server may be away: all that is asked may be
        done twice. Raises ``HarnessError`` then.
        """
        until = time.monotonic() + AWAY_S
        while True:
            self._opened()
            try:
                return await asyncio.to_thread(node.shell.ask, *question, timeout=timeout)
            except HarnessError:
                if time.monotonic() > until:
                    raise
            await asyncio.sleep(_AGAIN_S)

    # ---- the end --------------------------------------------------------------------------------------------------

    async def close(self, *, keep: bool = False) -> None:
        """See ``Substrate.close``; finishes when it is cancelled, too. Raises ``HarnessError`` if something resists."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(keep=keep))
        await to_the_end(self._closing)

    async def _close(self, *, keep: bool) -> None:
        try:
            if self._keep_logs is not None:
                into = self._keep_logs
                ready = {name: node.pod for name, node in self._nodes.items() if self._pods[node.pod].ready}
                await asyncio.gather(*(self._files.save_logs(pod, into / name) for name, pod in ready.items()))
        finally:
            shells = [shell for node in self._nodes.values() for shell in (node.shell, node.looks)]
            ends = [shell.close for shell in shells] + ([self._links.close] if self._links is not None else [])
            await asyncio.gather(*map(asyncio.to_thread, ends))  # each waits for the other side's word
            self._pods.close()
            self._machines.close()
            self._history.close()
            if self._forwards is not None:
                await asyncio.to_thread(self._forwards.close)
            if not keep:
                try:
                    await asyncio.to_thread(cleanup.remove, self._api, self._settings, own=self._own)
                finally:
                    await asyncio.to_thread(shutil.rmtree, self.scratch, ignore_errors=True)
            # Only now: were the harness killed while it deletes, the guard would go on.
            if self._guard is not None:
                await asyncio.to_thread(self._guard.dismiss)
            self._api.close()
