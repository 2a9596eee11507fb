"""A cluster's own network: a namespace a node, all on one bridge, and the cutting of links between them.

Made and kept by the supervisor, a single thread. The bridge stands in a namespace of its own, the hub, out of reach of
the host's firewall; one pair of virtual interfaces leads from the host to it, one from it to each node. None has a name
on disk, and the kernel removes all of it when the last file and process of it is gone, the host's interface included.

A link is cut where packets leave: the sender's namespace is told, by a permanent neighbour entry, a hardware address
for the receiver that nobody has. The bridge takes what is sent there and drops it. So packets vanish without a word, on
old connections and new ones and in one direction at a time, with nothing needed but the kernel's virtual pairs and
bridge.
"""

import errno
import ipaddress
import os
import socket
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from clusters.substrates.processes import namespaces
from clusters.substrates.processes.spawn import Failed

BESIDE = "/beside"
"""The name of the one namespace for processes beside the nodes; no node can have it."""
BESIDE_NUMBER, HOST_NUMBER = 253, 254
"""Last bytes of the addresses of that namespace and of the host's end; nodes have the numbers below."""
_NOWHERE = "02:52:50:ff:ff:ff"
"""A locally administered hardware address (IEEE 802) that no interface here has."""
_PERMANENT = 0x80
"""NUD_PERMANENT of linux/neighbour.h."""
_DEFAULT_ROUTE_BITS = 8
"""A route to a larger network than this is a default route of a kind (as VPNs set), which ours goes before."""
_ARRIVES_S = 5.0
"""How long a packet may take where the link is whole; measured: below 3 ms, the first one's ARP included."""
_LOST_S = 0.05
"""After which a packet counts as lost; a packet crosses the bridge while it is being sent."""
_ATTEMPTS = 3

Answer = dict[str, Any]
Job = Generator[None, None, Answer]


def candidates(second: int, third: int) -> list[str]:
    """Prefixes of private networks for the cluster that leased ``127.second.third``, the ones nobody else tries first.

    RFC 1918, and at last RFC 2544's for benchmarks.
    """
    tens = [f"10.{(second + shift) % 256}.{third}" for shift in (0, 64, 128, 192)]
    return [*tens, f"172.{16 + second % 16}.{third}", f"192.168.{third}", f"198.{18 + second % 2}.{third}"]


class _Place(NamedTuple):
    """One namespace on the bridge: its file, its netlink socket, its interface, and a socket for trials in it."""

    namespace: int
    netlink: Any
    interface: int
    address: str
    trial: socket.socket


class Network:
    """The namespaces of one cluster. Made in the thread that is to use it."""

    def __init__(self, *, prefixes: Sequence[str], device: str) -> None:
        """Make the hub and its link to the host, whose end is called ``device``, on the first free of ``prefixes``.

        Raises ``Failed`` if that cannot be done; then nothing is left.
        """
        self._device = device
        self._places: dict[str, _Place] = {}
        self._cut: set[tuple[str, str]] = set()
        self._home = namespaces.own()
        self._hub = -1
        self._links: list[Any] = []
        self._claim: socket.socket | None = None
        self.prefix = ""
        try:
            with _named("make the hub of the cluster's network"):
                self._build(prefixes)
        except BaseException:
            self.close()
            raise

    def _build(self, prefixes: Sequence[str]) -> None:
        host = self._netlink()
        self.prefix = self._choose(host, prefixes)
        self._hub, hub = self._fresh()
        hub.link("add", ifname="hub", kind="bridge")
        self._bridge = _index(hub, "hub")
        hub.link("set", index=self._bridge, state="up")
        # What is sent nowhere ends here; otherwise the bridge would pass it on to every node.
        hub.fdb("add", ifindex=self._bridge, lladdr=_NOWHERE, state=_PERMANENT)
        # A given hardware address is left alone by those who give interfaces of a host new ones (udev).
        host.link(
            "add",
            ifname=self._device,
            kind="veth",
            address=self._hardware(HOST_NUMBER),
            peer={"ifname": "host", "net_ns_fd": self._hub},
        )
        outer = _index(host, self._device)
        _without_ipv6(self._device)
        host.addr("add", index=outer, address=f"{self.prefix}.{HOST_NUMBER}", prefixlen=24)
        host.link("set", index=outer, state="up")
        hub.link("set", index=_index(hub, "host"), master=self._bridge, state="up")
        self._host, self._hub_link = host, hub
        self.attach(BESIDE, BESIDE_NUMBER)

    def attach(self, name: str, number: int) -> str:
        """Make a namespace with the address of that number; returns the address. Raises ``Failed``."""
        if name in self._places or not 1 <= number < HOST_NUMBER:
            raise Failed(f"{name} cannot have number {number}: it has a namespace, or the number is none of a node")
        address = f"{self.prefix}.{number}"
        with _named(f"make the network namespace of {name}"):
            namespace, inner = self._fresh()
            try:
                port = f"port{number}"
                self._hub_link.link(
                    "add",
                    ifname=port,
                    kind="veth",
                    peer={"ifname": "eth0", "net_ns_fd": namespace, "address": self._hardware(number)},
                )
                self._hub_link.link("set", index=_index(self._hub_link, port), master=self._bridge, state="up")
                interface = _index(inner, "eth0")
                inner.addr("add", index=interface, address=address, prefixlen=24)
                inner.link("set", index=interface, state="up")
                with namespaces.inside(namespace, home=self._home):
                    trial = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                    trial.bind((address, 0))
                    trial.setblocking(False)
            except BaseException:
                os.close(namespace)
                raise
        self._places[name] = _Place(namespace, inner, interface, address, trial)
        return address

    def namespace(self, name: str) -> int:
        """The open file of a node's namespace. Raises ``Failed`` if it has none."""
        return self._place(name).namespace

    def cut(self, sender: str, receiver: str) -> Job:
        """Let nothing pass from one to the other any more, and prove it; yields while it waits.

        Raises ``Failed`` when packets did not pass before, or still do.
        """
        link = (sender, receiver)
        frm, to = self._place(sender), self._place(receiver)
        whole = link not in self._cut
        if whole and not (yield from self._arrives(frm, to, _ARRIVES_S)):
            raise Failed(f"nothing that {sender} sends reaches {receiver} even before the link is cut")
        self._cut.add(link)
        with _named(f"cut the link from {sender} to {receiver}"):
            frm.netlink.neigh("replace", dst=to.address, lladdr=_NOWHERE, ifindex=frm.interface, state=_PERMANENT)
        for _ in range(_ATTEMPTS):
            if (yield from self._arrives(frm, to, _LOST_S)):
                raise Failed(f"what {sender} sends still reaches {receiver}")
        return {"sent": _ATTEMPTS, "arrived_before": int(whole)}

    def heal(self, sender: str, receiver: str) -> Job:
        """Let packets pass again, and prove it; nothing where the link is whole. Yields while it waits.

        Raises ``Failed`` when nothing passes.
        """
        link = (sender, receiver)
        frm, to = self._place(sender), self._place(receiver)
        if link not in self._cut:
            return {}
        with _named(f"heal the link from {sender} to {receiver}", unless=errno.ENOENT):
            frm.netlink.neigh("del", dst=to.address, ifindex=frm.interface)
        if not (yield from self._arrives(frm, to, _ARRIVES_S)):
            raise Failed(f"nothing that {sender} sends reaches {receiver}, {_ARRIVES_S:g} s after the link was healed")
        self._cut.discard(link)
        return {}

    def close(self) -> None:
        """Remove the network; what still runs in it has no links any more. Safe to call twice and half-made."""
        if self._links and (index := self._links[0].link_lookup(ifname=self._device)):
            # The kernel would do so too, a moment after the last file is closed.
            with suppress(Exception):
                self._links[0].link("del", index=index[0])
        for place in self._places.values():
            place.trial.close()
            os.close(place.namespace)
        self._places.clear()
        while self._links:
            self._links.pop().close()
        for opened in (self._hub, self._home):
            if opened >= 0:
                os.close(opened)
        self._hub = self._home = -1
        if self._claim is not None:
            self._claim.close()

    def _arrives(self, frm: _Place, to: _Place, seconds: float) -> Generator[None, None, bool]:
        """Whether a datagram from one reaches the other within that time."""
        token = os.urandom(16)
        until = time.monotonic() + seconds
        with suppress(OSError):
            frm.trial.sendto(token, to.trial.getsockname())
        while True:
            with suppress(BlockingIOError):
                while True:
                    if to.trial.recv(64) == token:
                        return True
            if time.monotonic() > until:
                return False
            yield

    def _place(self, name: str) -> _Place:
        if name not in self._places:
            raise Failed(f"{name} has no network namespace of its own")
        return self._places[name]

    def _netlink(self) -> Any:
        """A netlink socket of the namespace we are in."""
        from pyroute2 import IPRoute

        made = IPRoute()
        self._links.append(made)
        return made

    def _fresh(self) -> tuple[int, Any]:
        """A new namespace whose loopback interface is up: its file and a netlink socket in it."""
        with namespaces.inside(None, home=self._home):
            _without_ipv6("default")
            made = namespaces.own()
            try:
                netlink = self._netlink()
                netlink.link("set", index=_index(netlink, "lo"), state="up")
            except BaseException:
                os.close(made)
                raise
        return made, netlink

    def _choose(self, host: Any, prefixes: Sequence[str]) -> str:
        """The first network that no route of the host overlaps and no other cluster of the host has claimed."""
        taken = [
            ipaddress.ip_network((address, route["dst_len"]), strict=False)
            for route in host.get_routes(family=socket.AF_INET)
            if route["dst_len"] >= _DEFAULT_ROUTE_BITS and (address := route.get_attr("RTA_DST")) is not None
        ]
        for prefix in prefixes:
            network = ipaddress.ip_network(f"{prefix}.0/24")
            if any(network.overlaps(other) for other in taken):
                continue
            self._claim = namespaces.claim(prefix)
            if self._claim is not None:
                return prefix
        raise Failed(f"the host has routes to all of {', '.join(f'{prefix}.0/24' for prefix in prefixes)}")

    def _hardware(self, number: int) -> str:
        """A locally administered hardware address that belongs to the address of that number."""
        _, second, third = map(int, self.prefix.split("."))
        return f"02:52:50:{second:02x}:{third:02x}:{number:02x}"


def trial() -> int:
    """Make a network, cut and heal a link in it, remove it; the exit code, with the reason on standard error."""
    try:
        with closing(
            Network(prefixes=candidates(os.getpid() % 64 + 64, os.getpid() % 251), device=f"rp-{os.getpid()}")
        ) as made:
            made.attach("a", 1)
            for work in (made.cut("a", BESIDE), made.heal("a", BESIDE)):
                for _ in work:
                    time.sleep(0.002)
    except (Failed, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


@contextmanager
def _named(what: str, *, unless: int = 0) -> Iterator[None]:
    """Errors of the kernel as ``Failed``, in words, save the one that is expected."""
    try:
        yield
    except Failed:
        raise
    except Exception as error:
        number = getattr(error, "code", None) or getattr(error, "errno", None)
        if unless and number == unless:
            return
        reason = os.strerror(number) if isinstance(number, int) else repr(error)
        raise Failed(f"cannot {what}: {reason}") from error


def _index(netlink: Any, name: str) -> int:
    found: list[int] = netlink.link_lookup(ifname=name)
    if not found:
        raise Failed(f"the interface {name} vanished while the network was being made")
    return found[0]


def _without_ipv6(interface: str) -> None:
    """Nothing here speaks it; where it cannot be turned off it does no harm."""
    with suppress(OSError):
        Path(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6").write_text("1")
