"""The parent of all of a cluster's processes: a program of its own that outlives the harness to clear up after it.

Started by ``link`` with ``python -I -S``. It reads orders as JSON lines from standard input and answers each, by its
``id``, on standard output, where it also tells when something ``started`` or ended (``exit``). The end of the input or
of the harness means: end everything, delete the cluster's directory, exit. So does SIGTERM, which alone ends a cluster
that the harness was told to ``leave``.

It is two processes. The *guard* does nothing but wait for the *supervisor* proper, its child, and clears up in its
place should that be killed; if the guard is killed, the supervisor is told by the kernel and clears up. Both hold the
cluster's locks, so that its addresses and capacity are free exactly when its processes are gone.
"""

import json
import os
import selectors
import signal
import sys
import time
import types
from collections.abc import Generator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if __name__ == "__main__":
    # Modules beside this one are imported under their usual names, but without the packages' own __init__.
    _HERE = Path(__file__).resolve().parent
    for _name, _place in (
        ("clusters", _HERE.parent.parent),
        ("clusters.substrates", _HERE.parent),
        ("clusters.substrates.processes", _HERE),
    ):
        sys.modules[_name] = types.ModuleType(_name)
        sys.modules[_name].__path__ = [str(_place)]

from clusters.substrates.processes import cgroups, cleanup, proctree, spawn
from clusters.substrates.processes.spawn import Failed

if TYPE_CHECKING:
    from clusters.substrates.processes.network import Network

_GONE_S = 15.0
"""How long ending processes may take before it counts as failed; a kill normally takes some 10 ms."""

Reply = dict[str, Any]
Job = Generator[None, None, Reply]


class Supervisor:
    """Carries out orders. One thread; what takes time is a generator that is stepped until it ends."""

    def __init__(self, config: dict[str, Any], rest: bytes) -> None:
        self.config = config
        self.cluster: str = config["id"]
        self.leaders: dict[str, proctree.Leader] = {}
        self.running: dict[int, str] = {}
        self.jobs: list[tuple[int, Job]] = []
        self.input = rest
        self.ending = False
        self.left = False
        self.identity: str | None = config["identity"]
        self.network: Network | None = None

    def say(self, **fields: object) -> None:
        """One line to the harness; that it is gone is noticed elsewhere."""
        try:
            line = json.dumps(fields).encode() + b"\n"
            while line:
                line = line[os.write(1, line) :]
        except OSError:
            self.ending = True

    def serve(self) -> None:
        """Carry out orders until told to end, or until the harness or the guard is gone."""
        selector = selectors.DefaultSelector()
        wake, woken = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        selector.register(wake, selectors.EVENT_READ, "signal")
        selector.register(0, selectors.EVENT_READ, "order")
        if self.config["harness"] >= 0:
            selector.register(self.config["harness"], selectors.EVENT_READ, "harness")
        self.say(id=0, ok={"supervisor": os.getpid()})
        while not self.ending:
            self.take()
            if self.left:
                self.let_go(selector)
            self.reap()
            self.step()
            if self.ending:
                break
            for key, _ in selector.select(0.003 if self.jobs else None):
                if key.data == "signal":
                    with suppress(BlockingIOError):
                        os.read(wake, 4096)
                elif key.data == "harness":
                    self.ending = True
                elif block := os.read(0, 65536):
                    self.input += block
                else:
                    self.ending = True

    def let_go(self, selector: selectors.BaseSelector) -> None:
        """Neither hear the harness nor tell it anything any more, so that all goes on without it."""
        for key in [*selector.get_map().values()]:
            if key.data != "signal":
                selector.unregister(key.fileobj)
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        os.dup2(nowhere, 1)
        self.left = False

    def take(self) -> None:
        """Take the orders that have arrived whole."""
        while b"\n" in self.input:
            line, _, self.input = self.input.partition(b"\n")
            order = json.loads(line)
            try:
                result = getattr(self, f"do_{order['op']}")(order)
            except Failed as failure:
                self.say(id=order["id"], error=str(failure))
            except spawn.Refused as refused:
                self.say(id=order["id"], refused=[refused.step, refused.errno, refused.path])
            except OSError as error:
                self.say(id=order["id"], error=f"{error.strerror}: {error.filename}")
            else:
                if isinstance(result, dict):
                    self.say(id=order["id"], ok=result)
                elif result is not None:
                    self.jobs.append((order["id"], result))

    def step(self) -> None:
        """Take each job one step further."""
        for job in list(self.jobs):
            number, work = job
            try:
                next(work)
            except StopIteration as stop:
                self.say(id=number, ok=stop.value)
            except Failed as failure:
                self.say(id=number, error=str(failure))
            else:
                continue
            self.jobs.remove(job)

    def reap(self) -> None:
        """Bury dead children. The exit code is on disk before the process leaves the table, for who asks at once."""
        with suppress(ChildProcessError):
            while dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                code = dead.si_status if dead.si_code == os.CLD_EXITED else -dead.si_status
                name = self.running.pop(dead.si_pid, None)
                if name is not None:
                    with suppress(OSError):
                        Path(self.config["directory"], "run", f"{name}.exit").write_text(f"{dead.si_pid} {code}")
                os.waitpid(dead.si_pid, 0)
                if name is not None:
                    self.say(event="exit", name=name, pid=dead.si_pid, code=code)

    def members(self, name: str) -> list[proctree.Process]:
        """Everything that a name is, now; dead children of ours are not part of it."""
        self.reap()
        table = proctree.snapshot()
        return proctree.members(table, cluster=self.cluster, supervisor=os.getpid(), leaders=self.leaders, name=name)

    def do_start(self, order: dict[str, Any]) -> Reply:
        """Start a process under a name."""
        name = order["name"]
        if name in self.running.values():
            raise Failed(f"{name} is running already")
        identity = None
        if order["unprivileged"]:
            if self.identity is None:
                self.identity = "namespace" if spawn.namespaces_work() else "setuid"
            # An ordinary user needs the namespace only for what a killed program leaves in shared memory.
            identity = self.identity if self.identity == "namespace" or os.geteuid() == 0 else None
            if identity == "setuid":
                for tree in order["own"]:
                    spawn.own_by_nobody(tree)
        groups: list[str] = []
        if order["limits"]:
            groups = cgroups.limit(self.config["cgroups"], self.cluster, name, **order["limits"])
        pid = spawn.spawn(
            order["argv"],
            env={**order["env"], proctree.MARK: f"{self.cluster}/{name}"},
            cwd=order["cwd"],
            output=order["output"],
            error=order["error"],
            identity=identity,
            groups=groups,
            network=self.linked().namespace(order["network"]) if order["network"] else None,
        )
        seen = proctree.read(pid)
        self.leaders[name] = proctree.Leader(pid, seen.start if seen else 0, order["home"])
        self.running[pid] = name
        self.say(event="started", name=name, pid=pid, start=seen.start if seen else 0, home=order["home"])
        return {}

    def do_network(self, order: dict[str, Any]) -> Reply:
        """Make the cluster's own network; ``packages`` is where the library that speaks netlink is imported from."""
        sys.path.append(order["packages"])
        from clusters.substrates.processes import network

        self.network = network.Network(prefixes=order["prefixes"], device=self.config["device"])
        return {"prefix": self.network.prefix}

    def do_attach(self, order: dict[str, Any]) -> Reply:
        """Give a node its namespace."""
        return {"address": self.linked().attach(order["name"], order["number"])}

    def do_cut(self, order: dict[str, Any]) -> Job:
        """Cut a link in one direction."""
        return self.linked().cut(order["sender"], order["receiver"])

    def do_heal(self, order: dict[str, Any]) -> Job:
        """Heal a link in one direction."""
        return self.linked().heal(order["sender"], order["receiver"])

    def linked(self) -> "Network":
        """The cluster's own network. Raises ``Failed`` where it has none."""
        if self.network is None:
            raise Failed("the cluster has no network of its own")
        return self.network

    def do_signal(self, order: dict[str, Any]) -> Reply:
        """Send a signal to the process that was started, not to what it started."""
        leader = self.leaders.get(order["name"])
        seen = proctree.read(leader.pid) if leader else None
        if leader and seen and seen.start == leader.start:
            proctree.send(seen, order["signal"])
        return {}

    def do_kill(self, order: dict[str, Any]) -> Job:
        """End everything a name is."""
        left = yield from proctree.end(partial(self.members, order["name"]), seconds=_GONE_S)
        if left:
            raise Failed(f"{_names(left)} of {order['name']} still there {_GONE_S:.0f} s after SIGKILL")
        return {}

    def do_pause(self, order: dict[str, Any]) -> Job:
        """Stop everything a name is, or nothing."""
        find = partial(self.members, order["name"])
        left = yield from proctree.freeze(find, seconds=_GONE_S)
        if left:
            for process in find():
                proctree.send(process, signal.SIGCONT)
            raise Failed(f"{_names(left)} of {order['name']} not stopped {_GONE_S:.0f} s after SIGSTOP")
        return {}

    def do_resume(self, order: dict[str, Any]) -> Job:
        """Continue everything a name is."""
        until = time.monotonic() + _GONE_S
        for process in self.members(order["name"]):
            proctree.send(process, signal.SIGCONT)  # also what was to stop and could not yet
        while held := [p for p in self.members(order["name"]) if p.state == "T"]:
            if time.monotonic() > until:
                raise Failed(f"{_names(held)} of {order['name']} still stopped {_GONE_S:.0f} s after SIGCONT")
            for process in held:
                proctree.send(process, signal.SIGCONT)
            yield
        return {}

    def do_forget(self, order: dict[str, Any]) -> Reply:
        """Forget a helper command that has ended."""
        self.leaders.pop(order["name"], None)
        return {}

    def do_leave(self, order: dict[str, Any]) -> Reply:
        """Go on when the harness ends. SIGTERM is the end then, and nothing is kept; who waits for room is told so."""
        self.config |= order["record"]
        write(self.config["record"], order["record"])
        for slot in self.config["slots"]:
            write(slot, {"pid": os.getpid(), "name": f"{self.cluster}, which --keep running left"})
        self.left = True
        return {}

    def do_close(self, order: dict[str, Any]) -> None:
        """End the cluster; the answer comes with the end of the output."""
        self.config["keep"] = order["keep"]
        self.ending = True


def write(opened: int, record: dict[str, Any]) -> None:
    """Write anew what stands in an open lock file."""
    os.ftruncate(opened, 0)
    os.pwrite(opened, json.dumps(record).encode(), 0)


def _names(processes: list[proctree.Process]) -> str:
    return ", ".join(f"process {p.pid} (state {p.state})" for p in processes)


def clear(config: dict[str, Any], network: "Network | None" = None) -> int:
    """End every descendant and remove what the cluster left; 0 if all of that worked."""

    def find() -> list[proctree.Process]:
        table = proctree.snapshot()
        return [table[pid] for pid in proctree.descendants(table, [os.getpid()])]

    trouble = ""
    if left := cleanup.end_all(find, seconds=_GONE_S):
        trouble = f"{_names(left)} still there {_GONE_S:.0f} s after SIGKILL"
    else:
        try:
            if network is not None:
                network.close()
            cleanup.remove(config, keep=config["keep"])
        except OSError as error:
            trouble = f"{error.strerror}: {error.filename}"
    if trouble:
        # The record stays in the lock file, so that a later run tries again.
        with suppress(OSError):
            os.write(1, json.dumps({"event": "trouble", "error": trouble}).encode() + b"\n")
        return 3
    os.ftruncate(config["record"], 0)
    return 0


def main() -> NoReturn:
    """Be the guard, with the supervisor proper as the only child."""
    text = b""
    while b"\n" not in text:
        block = os.read(0, 65536)
        if not block:
            os._exit(2)
        text += block
    line, _, rest = text.partition(b"\n")
    config = json.loads(line)
    for handed in config["handed"]:
        os.set_inheritable(handed, False)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    spawn.adopt_orphans()
    guard = os.getpid()
    pid = os.fork()
    if pid != 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code not in (0, 3):  # 3 said already that something resists; what was killed or broke said nothing
            code = clear({**config, **json.loads(os.pread(config["record"], 65536, 0))})
        os._exit(code)
    supervisor = Supervisor(config, rest)

    def end(_signum: int, _frame: object) -> None:
        supervisor.ending = True

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGCHLD, lambda _signum, _frame: None)
    spawn.adopt_orphans()
    spawn.die_with_parent(signal.SIGTERM)
    code = 4
    try:
        if os.getppid() == guard:
            supervisor.serve()
        code = clear(supervisor.config, supervisor.network)
    except BaseException as error:  # Whatever it is, the guard clears up; here it is only said.
        supervisor.say(event="trouble", error=f"the supervisor broke: {error!r}")
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
