"""Whether a pod's name leads to the pod that has it now: what a cluster's DNS said of another one is kept for a while.

Clients that connect by the name reach nobody until then, which would look like an outage of the node.
"""

import asyncio
import socket
import time
from collections.abc import Callable, Sequence

from clusters.errors import HarnessError

_NAMED_S = 90.0
"""How long answers may be kept; CoreDNS does it for 30 s as it comes, and a cache on each machine for as long again."""
_AGAIN_S = 0.5


async def leads_to(
    name: str, addresses: Callable[[], Sequence[str]], *, lives: Callable[[], bool], say: Callable[[str], None]
) -> bool:
    """Wait until the name of a pod leads, on this machine, to one of its addresses; not where it lives no more.

    Whether it does. ``say`` hears once that it is waited for. Raises ``HarnessError`` where that takes too long.
    """
    until = time.monotonic() + _NAMED_S
    said = False
    while lives():
        told = await _told(name)
        if not told.isdisjoint(addresses()):
            return True
        there = f"the name {name} leads to {', '.join(sorted(told)) or 'nothing'}"
        now = f"the pod that has it now is at {', '.join(addresses()) or 'no address'}"
        if time.monotonic() > until:
            raise HarnessError(
                f"{there}, and {now}, {_NAMED_S:g} s after that ran: whoever connects by the name reaches no node; "
                "have the cluster's DNS, and that of this machine, keep answers for a few seconds (CoreDNS: `cache 5`)"
            )
        if not said:
            say(f"{there}, and {now}: waiting until it leads there")
            said = True
        await asyncio.sleep(_AGAIN_S)
    return False


async def _told(name: str) -> set[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        return set()
    return {str(address[0]) for *_, address in found}
