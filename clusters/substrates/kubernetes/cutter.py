"""What runs in the container that cuts links, in the network of a node's pod: nothing but Python's library and ``nft``.

``cutter.py`` stays until it is told to end. ``cutter.py answers`` answers questions, as ``node.sh shell`` does: it sets
the rules of the pod's network, and tries links by what pods send each other.
"""

import base64
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

_PAUSE_S = 0.02
_DATAGRAMS = 10
_kept: dict[tuple[str, str], socket.socket | None] = {}
"""By where it leads to, the connection that is to carry something before a cut and nothing after it."""
_ports: dict[str, str] = {}
"""By address of ours the ports that are listened on."""
_heard: set[str] = set()


def rules(text: str) -> str:
    """Have the pod's network keep to these rules, all at once."""
    done = subprocess.run(["nft", text], capture_output=True, text=True, check=False)  # noqa: S607, RUF100
    if done.returncode:
        raise OSError(done.stderr.strip())
    return ""


def listen(address: str) -> str:
    """Keep what comes there by connections and by datagrams; returns both ports, always the same."""
    if address not in _ports:
        server = socket.create_server((address, 0), family=_family(address))
        datagrams = socket.socket(_family(address), socket.SOCK_DGRAM)
        datagrams.bind((address, 0))
        for of, opened in ((_accept, server), (_receive, datagrams)):
            threading.Thread(target=of, args=(opened,), daemon=True).start()
        _ports[address] = f"{server.getsockname()[1]} {datagrams.getsockname()[1]}"
    return _ports[address]


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _accept(server: socket.socket) -> None:
    while True:
        there, _ = server.accept()
        threading.Thread(target=_hear, args=(there,), daemon=True).start()


def _hear(there: socket.socket) -> None:
    with suppress(OSError), there.makefile() as lines:
        for line in lines:
            _heard.add(line.strip())


def _receive(datagrams: socket.socket) -> None:
    while True:
        _heard.add(datagrams.recv(100).decode(errors="replace"))


def keep(address: str, port: str, seconds: str) -> str:
    """Make the connection there that is kept, if one can be made, in the place of an earlier one."""
    if former := _kept.pop((address, port), None):
        former.close()
    _kept[address, port] = None
    with suppress(OSError):
        _kept[address, port] = socket.create_connection((address, int(port)), timeout=float(seconds))
    return ""


def datagram(address: str, port: str, token: str, seconds: str) -> str:
    """Send a word by datagrams, of which one is enough."""
    with socket.socket(_family(address), socket.SOCK_DGRAM) as to:
        for _ in range(_DATAGRAMS):
            with suppress(OSError):
                to.sendto(f"{token} datagram".encode(), (address, int(port)))
            time.sleep(_PAUSE_S)
    return ""


def kept(address: str, port: str, token: str, seconds: str) -> str:
    """Send a word over the connection that is kept."""
    with suppress(OSError):
        if there := _kept[address, port]:
            there.sendall(f"{token} kept\n".encode())
    return ""


def fresh(address: str, port: str, token: str, seconds: str) -> str:
    """Send a word over a fresh connection, which is tried for so many seconds."""
    until = time.monotonic() + float(seconds)
    while (left := until - time.monotonic()) > 0:
        with suppress(OSError), socket.create_connection((address, int(port)), timeout=left) as there:
            there.sendall(f"{token} fresh\n".encode())
            break
        time.sleep(_PAUSE_S)
    return ""


def heard(token: str, seconds: str, *ways: str) -> str:
    """By which of these ways the word came; for all of them is waited so long."""
    until = time.monotonic() + float(seconds)
    while True:
        came = [way for way in ways if f"{token} {way}" in _heard]
        if len(came) == len(ways) or time.monotonic() > until:
            return " ".join(came)
        time.sleep(_PAUSE_S)


_QUESTIONS: dict[str, Callable[..., str]] = {
    one.__name__: one for one in (rules, listen, keep, datagram, kept, fresh, heard)
}


def answers() -> None:
    """Answer ``NUMBER QUESTION`` a line by the number, an exit code and what there is to say, in base64."""
    for line in sys.stdin:
        number, question, *words = shlex.split(line)
        try:
            code, said = 0, _QUESTIONS[question](*words)
        except (OSError, LookupError) as error:
            code, said = 1, f"{type(error).__name__} {error}"
        print(number, code, base64.b64encode(said.encode()).decode(), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["answers"]:
        answers()
    else:
        # Blocked, it stays pending until it is waited for; a handler may run just before a pause that then never ends.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        signal.sigwait({signal.SIGTERM})
