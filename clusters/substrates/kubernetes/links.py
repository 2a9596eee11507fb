"""Links between pods, cut in the pods' own networks: by rules of a container that is put into a pod when it is needed.

The rules drop what comes from a sender's addresses, so that it vanishes without a word. They are of the receiver's pod
alone, and end with it, whatever becomes of us. Policies of the network are no way: whether they are kept to depends on
the cluster, and many clusters let connections that are open go on.
"""

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clusters.errors import BadInput, HarnessError
from clusters.substrates.kubernetes.api import Api
from clusters.substrates.kubernetes.manifests import CUT, CUTTER, cutter
from clusters.substrates.kubernetes.pods import CANNOT_PULL, RUNS, Pod, Pods, unpulled
from clusters.substrates.kubernetes.settings import CUTS
from clusters.substrates.kubernetes.shell import Shell

_START_S = 300.0
"""How long the container may take to run: its image is pulled."""
_ARRIVES_S = 10.0
"""What passes at all passes within that."""
_ANSWERS_S = 30.0
_LOST_S = 0.5
"""A new connection is tried for so long, and as long again nothing must arrive: an open one sends three times meanwhile
what was not acknowledged."""
_DATAGRAM, _KEPT, _FRESH = "datagram", "kept", "fresh"
_WAYS = {_DATAGRAM: "datagrams", _KEPT: "an open connection", _FRESH: "a new connection"}
"""The ways in which links are tried, as ``cutter.py`` has them, in words."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """Which pods they were, by their identities, and the sender's addresses."""

    sender: str
    receiver: str
    addresses: Sequence[str]


def rules(senders: Iterable[str]) -> str:
    """What drops all that comes from these addresses, in the place of what dropped something before."""
    table = "table inet roachproof"
    said = [f"add {table}", f"delete {table}"]
    if dropped := [f"{'ip6' if ':' in sender else 'ip'} saddr {sender} drop" for sender in senders]:
        # Before connections are looked at: those that are open are no exception.
        said += [f"add {table}", "add chain inet roachproof cut { type filter hook prerouting priority -300; }"]
        said += [f"add rule inet roachproof cut {one}" for one in dropped]
    return "; ".join(said)


def _said(ways: Iterable[str]) -> str:
    return ", ".join(_WAYS[way] for way in ways)


class Links:
    """What is cut between the pods of one cluster. ``image`` is that of the container that does it."""

    def __init__(self, api: Api, namespace: str, pods: Pods, image: str) -> None:
        self._api, self._namespace, self._pods, self._image = api, namespace, pods, image
        self._cut: dict[tuple[str, str], _Cut] = {}
        self._shells: dict[str, Shell] = {}
        """By the pod's identity."""
        self._lock = asyncio.Lock()

    def has(self, sender: Pod, receiver: Pod) -> bool:
        """Whether a link was cut, and not healed."""
        return (sender.name, receiver.name) in self._cut

    async def cut(self, sender: Pod, receiver: Pod) -> str:
        """Let nothing pass from one to the other any more; returns the proof, in words.

        Raises ``HarnessError`` where nothing passed before, or something still does.
        """
        async with self._lock:
            link = (sender.name, receiver.name)
            now = _Cut(sender.uid, receiver.uid, sender.addresses)
            ways = self._ways(sender, receiver)
            if whole := self._cut.get(link) != now:
                await self._passes(sender, receiver, "even before the link is cut")
            else:
                ways = [way for way in ways if way != _KEPT]
            self._cut[link] = now
            await self._enforce(receiver)
            if arrived := await self._arrived(sender, receiver, ways, within=_LOST_S):
                raise HarnessError(
                    f"what {sender.name} sends still reaches {receiver.name} by {_said(arrived)}: the network "
                    "between them hides who sends it"
                )
        return f"nothing arrives by {_said(ways)}, " + ("as it did before" if whole else "it was cut already")

    async def heal(self, sender: Pod, receiver: Pod) -> None:
        """Let everything pass again; nothing where nothing is cut.

        Raises ``HarnessError`` when nothing passes then, and where it passed meanwhile, as a pod was made anew.
        """
        async with self._lock:
            link = (sender.name, receiver.name)
            if (was := self._cut.pop(link, None)) is None:
                return
            try:
                await self._enforce(receiver)
                await self._passes(sender, receiver, "after the link was healed")
            except BaseException:
                self._cut[link] = was
                raise
        if (was.sender, was.receiver) != (sender.uid, receiver.uid):
            raise HarnessError(
                f"the link from {sender.name} to {receiver.name} was not cut all the time: a pod was made anew "
                "meanwhile"
            )

    def close(self) -> None:
        """Ask nothing more. What is cut stays so until its pod ends."""
        for shell in self._shells.values():
            shell.close()

    async def _enforce(self, receiver: Pod) -> None:
        """Have the receiver's network drop what of it is cut now."""
        cut = [cut for (_, to), cut in self._cut.items() if to == receiver.name and cut.receiver == receiver.uid]
        await self._asked(receiver, "rules", rules(dict.fromkeys(one for each in cut for one in each.addresses)))

    def _ways(self, sender: Pod, receiver: Pod) -> Sequence[str]:
        """By which ways the link can be tried: connections need the link back, too."""
        return (_DATAGRAM,) if self.has(receiver, sender) else (_DATAGRAM, _KEPT, _FRESH)

    async def _passes(self, sender: Pod, receiver: Pod, when: str) -> None:
        """Raise ``HarnessError`` unless all arrives that is sent; a connection is kept from then on."""
        ways = self._ways(sender, receiver)
        arrived = await self._arrived(sender, receiver, ways, within=_ARRIVES_S, whole=True)
        if missing := [way for way in ways if way not in arrived]:
            raise HarnessError(
                f"what {sender.name} sends does not reach {receiver.name} {when} by {_said(missing)}; policies of the "
                "network must let pods of one cluster reach each other"
            )

    async def _arrived(
        self, sender: Pod, receiver: Pod, ways: Sequence[str], *, within: float, whole: bool = False
    ) -> Sequence[str]:
        """By which ways something arrives. On a link that is ``whole`` the connection that is kept is made before."""
        await asyncio.gather(*map(self._shell, (sender, receiver)))
        address, token = receiver.addresses[0], secrets.token_hex(8)
        connections, datagrams = (await self._asked(receiver, "listen", address)).split()
        if whole and _KEPT in ways:
            await self._asked(sender, "keep", address, connections, str(within))
        for way in ways:
            port = datagrams if way == _DATAGRAM else connections
            await self._asked(sender, way, address, port, token, str(within))
        return (await self._asked(receiver, "heard", token, str(within), *ways)).split()

    async def _asked(self, pod: Pod, *question: str) -> str:
        """What the pod's container answers. Raises ``HarnessError`` where it cannot."""
        shell = await self._shell(pod)
        code, said = await asyncio.to_thread(shell.ask, *question, timeout=_ANSWERS_S)
        if code:
            raise HarnessError(f"pod {pod.name}: container {CUTTER} cannot carry out `{question[0]}`: {said}")
        return said

    async def _shell(self, pod: Pod) -> Shell:
        """What asks the pod's container, which is put into it before."""
        if (uid := pod.uid) not in self._shells:
            patch, body = self._api.core.patch_namespaced_pod_ephemeralcontainers, cutter(self._image)
            await self._api.call(f"put container {CUTTER} into a pod", patch, pod.name, self._namespace, body)

            def unfit(way_out: str) -> BadInput:
                return BadInput(f"{CUTS}={self._image}: pod {pod.name}: container {CUTTER}: {pod.cutter}; {way_out}")

            def runs() -> bool:
                if pod.cutter_stuck:
                    raise unfit(pod.cutter_stuck)
                return pod.cutter == RUNS

            try:
                await self._pods.until(f"container {CUTTER} of {pod.name} to run", pod, runs, timeout=_START_S)
            except HarnessError as late:
                if unpulled(pod.cutter):
                    raise unfit(f"so for {_START_S:g} s; {CANNOT_PULL}") from late
                raise
            asked = ("python", str(CUT), "answers")
            self._shells[uid] = Shell(self._api, self._namespace, pod.name, asked, container=CUTTER)
        return self._shells[uid]
