"""Which pod of a cluster of others is which node, from the time it is taken over until it is left as it was found."""

import asyncio
import base64
import itertools
import re
import secrets
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Self

from kubernetes.client.exceptions import ApiException

from clusters.errors import BadInput, CommandTimedOut, HarnessError
from clusters.generators import WantedGenerators
from clusters.model import Completed, NodeSpec, Placement
from clusters.substrates import SUBSTRATES, SubstrateKind
from clusters.substrates.adopted.beside import Beside
from clusters.substrates.adopted.capabilities import CAPABILITIES, CHANGES
from clusters.substrates.adopted.changes import Changes
from clusters.substrates.adopted.description import look
from clusters.substrates.adopted.finding import Found
from clusters.substrates.adopted.pods import Pods
from clusters.substrates.adopted.untouched import Untouched
from clusters.substrates.kubernetes.api import AWAY_S, Api
from clusters.substrates.kubernetes.generators import Generators
from clusters.substrates.kubernetes.history import History
from clusters.substrates.kubernetes.machines import Machines
from clusters.substrates.kubernetes.manifests import GENERATORS
from clusters.substrates.kubernetes.rights import ADOPTED_CHANGES, refuse_without
from clusters.substrates.kubernetes.settings import IMAGES, Given
from clusters.substrates.kubernetes.substrate import run_here
from clusters.substrates.kubernetes.volumes import private
from clusters.waiting import to_the_end


class Places(Untouched):
    """Its nodes, each a pod; made with ``open``, and forgotten with ``close``."""

    def __init__(self, api: Api, found: Found, scratch: Path, *, allowed: bool, keep_logs: Path | None) -> None:
        self._api, self._found, self._allowed, self._keep_logs = api, found, allowed, keep_logs
        self.scratch = scratch
        """A directory (0700) for what clients and the harness need, the administrator's certificate among it."""
        self.capabilities = CAPABILITIES if found.custom else CAPABILITIES | CHANGES
        """What can be done to nodes here."""
        self._placements: dict[str, Placement] = {}
        self._names: dict[str, str] = {}
        """By node its pod."""
        self._runs: dict[str, str] = {}
        """By node the container that was seen to run when it was placed, or started last."""
        self._ours: set[str] = set()
        """The containers that were ended from here."""
        self._ended: dict[str, str] = {}
        """By node the pod of it that was deleted last."""
        self._changes = Changes(api, found)
        self._images: dict[Path, str] = {}
        """By program of this machine the image that has it."""
        self._next: dict[str, str | None] = {}
        """The image with which a node that is ended next comes back; ``None``: it does not."""
        self._out: set[str] = set()
        """The nodes that were taken out."""
        logs = None if keep_logs is None else keep_logs / "kubernetes" / "pods.log"
        of = re.compile(rf"([a-z0-9.-]+-)?{re.escape(found.name)}(-\d+)?$|{GENERATORS}")
        self._history = History(api, found.namespace, logs, of=of.match)
        self._machines = Machines(api, self._history)
        self._pods = Pods(api, found, self._machines.on, self._history.was_away)
        self._had: set[str] = set()
        """What its pods' containers were made of when they were found."""
        self._rewritten: dict[str, str] = {}
        """By image that pods have, as somebody's webhook gave them another, that of the template."""
        self._beside: Beside | None = None
        # Reads until we close it, or are killed: nobody else is to find a key of root there.
        clears = ["/bin/sh", "-c", 'read -r _; rm -rf "$0"', str(scratch)]
        self._guard = subprocess.Popen(clears, stdin=subprocess.PIPE, start_new_session=True)

    @classmethod
    async def open(
        cls,
        *,
        name: str,
        workdir: Path,
        nodes: Sequence[NodeSpec],
        say: Callable[[str], None] = lambda _: None,
        keep_logs: Path | None = None,
        generators: WantedGenerators | None = None,
        allow_disruption: bool = False,
        changes: bool = False,
    ) -> Self:
        """The cluster that the environment names, as it is. Raises ``BadInput``, ``HarnessError``.

        ``changes``: whether its StatefulSet is to be changed, which takes further rights.
        """
        if not allow_disruption:
            raise BadInput(
                "substrate adopted: the cluster is not Roachproof's, and would be loaded and disturbed; give "
                "--allow-disruption if its owner allows that"
            )
        api, found, secret, files = await look()
        try:
            if changes:
                await refuse_without(api, ADOPTED_CHANGES, found.namespace)
            if nodes and len(nodes) != len(found.pods):
                raise BadInput(
                    f"{api.where}: StatefulSet {found.name} has {len(found.pods)} pods, and the test is about "
                    f"{len(nodes)} nodes; choose a claim or a --topology of so many, or another cluster"
                )
            called = f"{re.sub('[^a-z0-9-]+', '-', name.lower()).strip('-')[:40]}-{secrets.token_hex(4)}"
            scratch = private(workdir / f"adopted-{called}")
            certs = private(scratch / "certs")
        except BaseException:
            api.close()
            raise
        self = cls(api, found, scratch, allowed=allow_disruption, keep_logs=keep_logs)
        try:
            for file, content in files.items():
                (certs / file).touch(mode=0o600)
                (certs / file).write_bytes(base64.b64decode(content))
            if not await asyncio.to_thread(self._pods.listed.wait, AWAY_S):
                raise HarnessError(f"{api.where}: the pods of {found.name} were not told of within {AWAY_S:g} s")
            if self._pods.unheard:
                raise self._pods.unheard
            self._had = {self._pods[pod].image for pod in found.pods}
            # All of them are of the template as it stands.
            self._rewritten = dict.fromkeys(self._had - {found.image}, found.image)
            await self._history.begin()
            await self._machines.begin(say)
            if generators:
                self._beside = await Beside.begin(
                    api,
                    found,
                    generators,
                    cluster=f"roachproof-{called}",
                    given=Given.read(),
                    history=self._history,
                    say=say,
                )
        except BaseException:
            await self.close()
            raise
        user = found.charted.user
        say(f"adopted: StatefulSet {found.name} of namespace {found.namespace}, {user} by secret {secret}")
        return self

    @property
    def kind(self) -> SubstrateKind:
        """``adopted``."""
        return SUBSTRATES["adopted"]

    @property
    def generators(self) -> Generators | None:
        """Its load generators, if it has some."""
        return None if self._beside is None else self._beside.generators

    # ---- placing --------------------------------------------------------------------------------------------------

    async def place(self, nodes: Sequence[NodeSpec]) -> tuple[Placement, ...]:
        """Give each node the name of a pod, in their order: of those that are there, then of those that come next.

        Raises ``BadInput`` where there is none left.
        """
        placed = []
        for node in nodes:
            taken = {pod for name, pod in self._names.items() if name not in self._out}
            number = next(number for number in itertools.count() if self._found.pod(number) not in taken)
            pod = self._found.pod(number)
            if number >= len(self._found.pods) and self._found.custom:
                raise BadInput(
                    f"{node.name}: all {len(self._found.pods)} pods of {self._found.name} are taken already; choose a "
                    "smaller topology, or add pods by its operator"
                )
            address, store = self._found.address(pod), self._found.store
            placement = Placement(
                node=node,
                address=address,
                client_address=address,
                home=store.parent,
                store=store,
                logs=store / "logs",
                command=self._found.command,
            )
            self._placements[node.name], self._names[node.name] = placement, pod
            self._runs[node.name] = self._pods[pod].container
            placed.append(placement)
        return tuple(placed)

    def _number(self, name: str) -> int:
        """How many pods come before a node's."""
        return int(self._names[name].rpartition("-")[2]) - self._found.first

    async def present(self, program: Path, *, runs: Path | None = None) -> PurePath:
        """See which image has a program: the first is what runs there. Raises ``BadInput`` where none is known."""
        self._image(program)
        return PurePath(program)

    def _image(self, program: Path | None) -> str:
        if program is None:
            return self._found.image
        known = program.resolve()
        if known not in self._images:
            image = Given.read().program(program).image if self._images else self._found.image
            if image is None:
                raise BadInput(
                    f"{program}: no image is known that has it, and the nodes of StatefulSet {self._found.name} get "
                    f"another version by another image; say in a file that {IMAGES} names which one has it "
                    "(docs/kubernetes.md)"
                )
            self._images[known] = image
        return self._images[known]

    async def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        timeout: float,
        node: str | None = None,
        cwd: PurePath | None = None,
        unprivileged: bool = False,
    ) -> Completed:
        """Run a command to its end on the machine of the harness; in a pod that is not done."""
        if node is not None:
            self._not_done(f"to run {argv[0]}")
        try:
            async with asyncio.timeout(timeout):
                return await run_here(argv, env, Path(cwd or self.scratch))
        except TimeoutError:
            raise CommandTimedOut(f"{' '.join(argv)} did not end within {timeout:g} s") from None

    def _refuse_unguarded(self) -> None:
        if self._guard.poll() is not None:
            code = self._guard.returncode
            raise HarnessError(f"the process that guards the administrator's certificate ended with {code}")
        if self._beside is not None:
            self._beside.refuse_dead()

    # ---- the end --------------------------------------------------------------------------------------------------

    async def close(self, *, keep: bool = False) -> None:
        """Keep the nodes' logs, and forget the cluster, which stays and is put back; safe to call twice."""
        await to_the_end(self._close())

    async def _close(self) -> None:
        there = [name for name in self._names if name not in self._out]
        pods = [self._names[name] for name in there]
        changed = [pod for pod in pods if self._pods[pod].image not in {"", *self._had}]
        try:
            await asyncio.gather(*(asyncio.to_thread(self._save_log, name) for name in there))
            self._keep_logs = None
            self._pods.close()
            self._machines.close()
            self._history.close()
            beside, self._beside = self._beside, None
            try:
                if beside is not None:
                    await beside.close()
            finally:
                await self._changes.put_back(changed)
        finally:
            if self._guard.stdin is not None:
                self._guard.stdin.close()
            await asyncio.to_thread(self._guard.wait, 30)
            self._api.close()

    def _save_log(self, name: str) -> None:
        if self._keep_logs is not None:
            with suppress(ApiException, OSError):
                said = self._log(self._names[name])
                (self._keep_logs / name).mkdir(parents=True, exist_ok=True)
                (self._keep_logs / name / "output.txt").write_text(said, encoding="utf-8")

    def _log(self, pod: str, **options: int) -> str:
        return self._api.log(self._found.namespace, pod, self._found.container, **options)
