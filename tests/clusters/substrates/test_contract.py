"""What every substrate keeps to: the one of the unit tests, local processes, and one with paths of its own.

A new substrate is added to ``OPENED``. Those without real processes are asked only for what they accept and refuse.
"""

import asyncio
import signal
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import pytest

from clusters import clocks
from clusters.errors import BadInput, CommandTimedOut, HarnessError
from clusters.model import Capability, Health, NodeSpec, Placement, ProcessSpec, ProcessState
from clusters.substrates import SUBSTRATES, Substrate
from clusters.substrates.processes import Processes
from clusters.waiting import wait_until
from tests.clusters.fake import FakeSubstrate
from tests.clusters.substrates.processes.process_nodes import PATIENCE_S, eventually
from tests.clusters.substrates.runner import Runner, why_not
from tests.kubernetes.at_hand import none_at_hand

ENV = {"PATH": "/usr/bin:/bin"}
HANGS = "while :; do sleep 0.05; done"


async def _fake(workdir: Path) -> Substrate:
    return FakeSubstrate()


async def _processes(workdir: Path) -> Substrate:
    return await Processes.open(name="contract", workdir=workdir, slots=2)


async def _runner(workdir: Path) -> Substrate:
    if reason := why_not():
        pytest.skip(reason)
    return Runner(await Processes.open(name="contract", workdir=workdir, slots=2))


async def _linked(workdir: Path) -> Substrate:
    substrate = await Processes.open(name="contract", workdir=workdir, slots=2, namespaces=True)
    if substrate.cannot_cut is not None:
        await substrate.close()
        pytest.skip(f"links cannot be cut here: {substrate.cannot_cut}")
    return substrate


async def _kubernetes(workdir: Path, *needed: Capability) -> Substrate:
    if reason := none_at_hand():
        pytest.skip(reason)
    opened: Substrate = await SUBSTRATES["kubernetes"].open(
        name="contract",
        workdir=workdir,
        needed=frozenset(needed),
        capacity=1,
        nodes=(),
        resources=None,
        say=print,
        keep=False,
        keep_logs=None,
    )
    return opened


async def _linked_kubernetes(workdir: Path) -> Substrate:
    return await _kubernetes(workdir, Capability.CUT_LINKS)


OPENED: dict[str, Callable[[Path], Any]] = {
    "fake": _fake,
    "processes": _processes,
    "runner": _runner,
    "kubernetes": _kubernetes,
}
LINKED = {"linked": _linked, "linked kubernetes": _linked_kubernetes}


async def _opened(name: str, workdir: Path) -> AsyncIterator[Substrate]:
    substrate: Substrate = await (OPENED | LINKED)[name](workdir)
    try:
        yield substrate
    finally:
        await substrate.close()
        await substrate.close()


@pytest.fixture(params=OPENED)
async def substrate(request: pytest.FixtureRequest, tmp_path: Path, state: Path) -> AsyncIterator[Substrate]:
    async for opened in _opened(request.param, tmp_path / "work"):
        yield opened


@pytest.fixture(params=[name for name in OPENED if name != "fake"])
async def real(request: pytest.FixtureRequest, tmp_path: Path, state: Path) -> AsyncIterator[Substrate]:
    async for opened in _opened(request.param, tmp_path / "work"):
        yield opened


async def one(substrate: Substrate, name: str = "n1") -> Placement:
    (placement,) = await substrate.place([NodeSpec(name=name)])
    return placement


def shell(at: Placement, script: str = HANGS) -> ProcessSpec:
    return ProcessSpec(
        name=at.node.name,
        argv=("/bin/sh", "-c", script),
        env=ENV,
        cwd=at.home,
        output=at.logs / "out",
    )


async def said(substrate: Substrate, node: str, script: str) -> str:
    """What a command in the node says."""
    done = await substrate.run(["/bin/sh", "-c", script], env=ENV, timeout=PATIENCE_S, node=node)
    assert done.code == 0, done.err
    return done.out


def refuses(what: str | None = None) -> Any:
    return pytest.raises(HarnessError, match=what)


async def test_names_are_new_and_names_of_files(substrate: Substrate) -> None:
    await one(substrate)
    for name in ("n1", "../n2", "", "a/b"):
        with pytest.raises(BadInput, match="must be new"):
            await one(substrate, name)
    with pytest.raises(BadInput, match=f"'{'n' * 64}': must be new .*at most 63"):
        await one(substrate, "n" * 64)
    await one(substrate, "n" * 63)
    await one(substrate, "n2")
    for name in ("n1", "../n2"):
        with pytest.raises(BadInput, match="must be new"):
            await substrate.beside(name)
    await substrate.beside("service")
    with pytest.raises(BadInput, match="must be new"):
        await one(substrate, "service")


async def test_a_placement_is_a_home_with_store_and_logs_in_it(substrate: Substrate) -> None:
    first, second = await substrate.place([NodeSpec(name="n1"), NodeSpec(name="n2")])
    service = await substrate.beside("service")
    for at in (first, second, service):
        assert at.address
        assert at.client_address
        assert at.home.is_absolute()
        assert at.store.parent == at.logs.parent == at.home
    assert await substrate.beside("service") == service
    assert service.node.name == "service"
    for at in (first, second):
        await substrate.start(shell(at))
    assert (substrate.free_bytes("n1") or 0) > 0
    one_, other = substrate.clock("n1"), substrate.clock("n1")
    assert one_.clock == other.clock
    assert one_.seconds <= other.seconds
    assert abs(clocks.compare(lambda: substrate.clock("n2")).offset_s) < 60


async def test_what_a_node_was_never_is_refused(substrate: Substrate) -> None:
    """Of a name that was never placed, and of a node that was never started."""
    with refuses():
        await substrate.beside("service")
    at = await one(substrate)
    nowhere = at.home.parent / "n9" / "file"
    with tempfile.TemporaryFile() as file:
        for refused in (
            lambda: substrate.put("n9", nowhere, b""),
            lambda: substrate.put("n1", PurePath("/etc/passwd"), b""),
            lambda: substrate.put("n1", at.home / ".." / "x", b""),
            lambda: substrate.archive("n9", nowhere, file),
            lambda: substrate.extract("n9", nowhere, file),
            lambda: substrate.run(["/bin/true"], env=ENV, timeout=PATIENCE_S, node="n9"),
            lambda: substrate.wipe("n9"),
            lambda: substrate.start(replace(shell(at), name="n9")),
        ):
            with refuses():
                await refused()
    with refuses():
        substrate.clock("n9")
    for name in ("n1", "n9"):
        for never in (
            lambda: substrate.stop(name, timeout=1),  # noqa: B023 - used within the turn
            lambda: substrate.signal(name, signal.SIGTERM),  # noqa: B023
            lambda: substrate.kill(name),  # noqa: B023
            lambda: substrate.pause(name),  # noqa: B023
            lambda: substrate.resume(name),  # noqa: B023
        ):
            with refuses("never started"):
                await never()
        with refuses():
            substrate.limits(name)
        assert substrate.state(name) is ProcessState.ABSENT
        assert substrate.exit_code(name) is None
        assert substrate.machine_lost(name) == ""
        assert substrate.log_tail(name) == ""
    await substrate.wipe("n1")


async def test_a_node_goes_from_state_to_state(substrate: Substrate) -> None:
    at = await one(substrate)
    await substrate.start(shell(at))
    for _ in range(2):
        assert substrate.state("n1") is ProcessState.RUNNING
        assert substrate.exit_code("n1") is None
        substrate.limits("n1")
        with refuses("runs already"):
            await substrate.start(shell(at))
        with refuses():
            await substrate.wipe("n1")
        for _ in range(2):
            await substrate.pause("n1")
            assert substrate.state("n1") is ProcessState.PAUSED
        with refuses("runs already"):
            await substrate.start(shell(at))
        await substrate.resume("n1")
    await substrate.resume("n1")
    await substrate.pause("n1")
    for _ in range(2):
        await substrate.kill("n1")
        assert substrate.state("n1") is ProcessState.EXITED
        assert substrate.exit_code("n1") == -signal.SIGKILL
    assert await substrate.stop("n1", timeout=1) == -signal.SIGKILL, "of what has ended it only reports"
    await substrate.signal("n1", signal.SIGTERM)
    await substrate.resume("n1")
    assert substrate.state("n1") is ProcessState.EXITED
    with refuses("cannot be paused, it is exited"):
        await substrate.pause("n1")
    with refuses():
        substrate.limits("n1")
    await substrate.wipe("n1")
    await substrate.start(shell(at))
    assert substrate.state("n1") is ProcessState.RUNNING


async def test_a_node_is_down_once_its_pod_was_deleted_and_goes_on_in_another(substrate: Substrate) -> None:
    at = await one(substrate)
    with refuses("never started"):
        await substrate.delete_pod("n1")
    await substrate.start(shell(at))
    if Capability.DELETE_POD not in substrate.capabilities:
        with refuses("runs in no pod"):
            await substrate.delete_pod("n1")
        assert substrate.state("n1") is ProcessState.RUNNING
        return
    await substrate.put("n1", at.store / "kept", b"it")
    for _ in range(2):
        assert await substrate.delete_pod("n1")
        assert substrate.state("n1") is ProcessState.EXITED
    await substrate.start(shell(at))
    assert substrate.state("n1") is ProcessState.RUNNING
    with tempfile.TemporaryFile() as file:
        await substrate.archive("n1", at.store, file)


async def test_files_are_put_and_taken_along(substrate: Substrate) -> None:
    at, other = await one(substrate), await one(substrate, "n2")
    await substrate.put("n1", at.home / "kept" / "a", b"one")
    await substrate.put("n1", at.home / "kept" / "a", b"two")
    with tempfile.TemporaryFile() as file:
        with refuses():
            await substrate.archive("n1", at.home / "missing", file)
        await substrate.archive("n1", at.home / "kept", file)
        with refuses():
            await substrate.extract("n1", at.home / "kept", file)
        for _ in range(2):
            await substrate.extract("n2", other.store / "from n1", file)
            with refuses():
                await substrate.extract("n2", other.store / "from n1", file)
            await substrate.wipe("n2")


@pytest.mark.parametrize("substrate", [*OPENED, *LINKED], indirect=True)
async def test_links_are_of_what_is_there(substrate: Substrate) -> None:
    if Capability.CUT_LINKS not in substrate.capabilities:
        await one(substrate)
        with refuses("cannot be cut"):
            await substrate.cut("n1", "n2")
        return
    await one(substrate)
    await one(substrate, "n2")
    await substrate.heal("n1", "n2")
    assert await substrate.cut("n1", "n2")
    assert await substrate.cut("n1", "n2"), "what is cut already stays so"
    await substrate.heal("n1", "n2")
    for sender, receiver in (("n1", "n9"), ("n9", "n1"), ("n1", "n1")):
        with refuses():
            await substrate.cut(sender, receiver)


async def test_nothing_is_done_after_the_end(substrate: Substrate) -> None:
    at = await one(substrate)
    await substrate.start(shell(at))
    await substrate.close()
    for refused in (
        lambda: one(substrate, "n2"),
        lambda: substrate.start(shell(at)),
        lambda: substrate.run(["/bin/true"], env=ENV, timeout=PATIENCE_S),
        lambda: substrate.kill("n1"),
    ):
        with refuses("closed"):
            await refused()


async def test_a_process_runs_until_it_ends_and_its_code_comes_back(real: Substrate) -> None:
    at = await one(real)
    await said(real, "n1", "mkfifo go")
    await real.start(shell(at, "echo begun; read x < go; echo ended >&2; exit 7"))
    assert real.state("n1") is ProcessState.RUNNING
    await said(real, "n1", "echo go > go")
    # Not awaited, so that no event can have arrived: the code must be there as soon as the process is dead.
    for _ in range(1_000_000):
        if real.state("n1") is ProcessState.EXITED:
            break
    assert real.exit_code("n1") == 7
    await asyncio.sleep(0.1)
    assert real.exit_code("n1") == 7
    assert real.log_tail("n1", 2) == "begun\nended"
    assert real.log_tail("n1", 1) == "ended"
    await real.start(shell(at))
    await real.signal("n1", signal.SIGSEGV)
    await eventually(lambda: real.state("n1") is ProcessState.EXITED)
    assert real.exit_code("n1") == -signal.SIGSEGV


async def test_stop_asks_first_and_kills_who_does_not_listen(real: Substrate) -> None:
    at = await one(real)
    await real.start(shell(at, f"trap 'exit 5' TERM; echo ready; {HANGS}"))
    await eventually(lambda: "ready" in real.log_tail("n1"))
    assert await real.stop("n1", timeout=PATIENCE_S) == 5
    await real.start(shell(at, f"trap '' TERM; echo deaf; {HANGS}"))
    await eventually(lambda: "deaf" in real.log_tail("n1"))
    assert await real.stop("n1", timeout=0.5) == -signal.SIGKILL


async def test_what_cannot_be_executed_is_bad_input(real: Substrate) -> None:
    at = await one(real)
    spec = shell(at)
    for argv in (["/no/such/program"], [str(at.home)]):
        with pytest.raises(BadInput, match=argv[0]):
            await real.start(ProcessSpec(name="n1", argv=tuple(argv), env={}, cwd=spec.cwd, output=spec.output))
        with pytest.raises(BadInput, match=argv[0]):
            await real.run(argv, env={}, timeout=PATIENCE_S, node="n1")
    assert real.state("n1") is ProcessState.ABSENT


async def test_wipe_empties_the_store_and_nothing_else(real: Substrate) -> None:
    at = await one(real)
    script = "mkdir -p store/closed; echo 1 > store/closed/x; chmod 0 store/closed; echo done"
    await real.start(shell(at, f"{script}; {HANGS}"))
    await eventually(lambda: "done" in real.log_tail("n1"))
    await real.kill("n1")
    await real.wipe("n1")
    assert await said(real, "n1", f"ls -A {at.store}; cat {at.logs}/out") == "done\n"


async def test_a_command_runs_to_its_end_in_the_node(real: Substrate) -> None:
    at = await one(real)
    script = "echo $WORD; pwd; echo oops >&2; (sleep 1; touch late) & exit 3"
    done = await real.run(["/bin/sh", "-c", script], env={"WORD": "hello", **ENV}, timeout=PATIENCE_S, node="n1")
    assert (done.code, done.out, done.err) == (3, f"hello\n{at.home}\n", "oops\n")
    await real.put("n1", at.home / "conf" / "secret", b"word")
    listed = await said(real, "n1", "cat conf/secret; stat -c %a conf/secret; ls -A store logs")
    assert listed == "word600\nlogs:\n\nstore:\n"
    with tempfile.TemporaryFile() as file:
        await real.archive("n1", at.home / "conf", file)
        await real.extract("n1", at.store / "copy", file)
    assert await said(real, "n1", "cat store/copy/secret") == "word"
    here = await real.run(["/bin/pwd"], env=ENV, timeout=PATIENCE_S)
    assert here.out == f"{real.scratch}\n"
    assert real.scratch.stat().st_mode & 0o777 == 0o700
    await asyncio.sleep(1.2)
    assert "late" not in await said(real, "n1", "ls"), "what it left in the background is killed"


async def test_a_program_of_this_machine_is_present(real: Substrate, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "greet").write_text("#!/bin/sh\necho hello from $(basename $0)\n")
    (tools / "greet").chmod(0o755)
    await one(real)
    whole, single = await real.present(tools), await real.present(tools / "greet")
    await one(real, "n2")
    for node in ("n1", "n2"):
        assert "hello from" in await said(real, node, str(single))
        assert "hello from greet" in await said(real, node, str(whole / "greet"))


async def test_a_command_that_takes_too_long_is_killed(real: Substrate) -> None:
    at = await one(real)
    ticking = "while :; do echo x >> ticks; sleep 0.02; done"
    for seconds in (0.5, 5.0, 50.0):  # by then it must have begun
        with pytest.raises(CommandTimedOut, match=rf"did not end within {seconds:g} s"):
            await real.run(["/bin/sh", "-c", ticking], env=ENV, timeout=seconds, node="n1")
        if "ticks" in await said(real, "n1", "ls"):
            break
    before = await said(real, "n1", f"wc -c < {at.home}/ticks")
    await asyncio.sleep(0.2)
    assert await said(real, "n1", f"wc -c < {at.home}/ticks") == before


async def test_paused_stands_still_and_resumed_goes_on(real: Substrate) -> None:
    at = await one(real)
    count = "while :; do echo x >> {}; sleep 0.01; done"
    await real.start(shell(at, f"({count.format('a')}) & setsid sh -c '{count.format('b')}' & {count.format('c')}"))

    async def sizes() -> list[int]:
        return [int(word) for word in (await said(real, "n1", "wc -c a b c 2>/dev/null || true")).split()[:6:2]]

    async def grown(before: list[int]) -> None:
        async def all_of_them() -> Health:
            now = await sizes()
            return Health(ok=len(now) == 3 and all(a > b for a, b in zip(now, before, strict=True)))

        await wait_until("the files to grow", all_of_them, timeout=PATIENCE_S)

    await grown([0, 0, 0])
    await real.pause("n1")
    before = await sizes()
    await asyncio.sleep(0.3)
    assert await sizes() == before
    await real.resume("n1")
    await grown(before)
    await real.pause("n1")
    await real.kill("n1")
    assert real.state("n1") is ProcessState.EXITED


async def test_kill_reaches_what_left_the_tree_and_no_other_node(real: Substrate) -> None:
    for at in (await one(real), await one(real, "n2")):
        await real.start(shell(at, f"(setsid sh -c 'while :; do echo x >> ticks; sleep 0.02; done' &) ; {HANGS}"))

    async def ticks(node: str) -> int:
        return int(await said(real, node, "wc -c < ticks 2>/dev/null || echo 0"))

    async def more(node: str, than: int) -> None:
        async def there() -> Health:
            return Health(ok=await ticks(node) > than)

        await wait_until(f"{node} to go on", there, timeout=PATIENCE_S)

    await more("n1", 0)
    await more("n2", 0)
    await real.kill("n1")
    mine = await ticks("n1")
    await more("n2", await ticks("n2") + 2)
    assert await ticks("n1") == mine
    assert real.state("n2") is ProcessState.RUNNING
