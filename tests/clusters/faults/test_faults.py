"""Faults on a cluster in memory: whatever goes wrong, each is undone, and the cluster knows which nodes are up."""

import asyncio
import errno
import os
from typing import Any, NamedTuple
from unittest.mock import AsyncMock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusters.cluster import Cluster, KeptOut
from clusters.errors import BadInput, CommandTimedOut, HarnessError, NodeDied, NotDrained, TimedOut
from clusters.faults.disturbance import Fault, disturb
from clusters.faults.node import DELETE_POD, DRAIN, KILL, LOSE_DISK, PAUSE, resize
from clusters.faults.swap import Meant, swap
from clusters.model import Capability, Health, NodeResources, NodeSpec, ProcessSpec, ProcessState, RunningVersion
from clusters.sql import Failure, SqlError
from clusters.waiting import wait_until
from tests.clusters.fake import Fake, FakeEngine

FAULTS = (KILL, DELETE_POD, PAUSE, DRAIN, LOSE_DISK)
ORDERS = ("kill", "delete", "pause", "stop", "start", "resume")
by_name = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)


def told_of(fake: Fake) -> list[tuple[str, dict[str, Any]]]:
    """What was recorded since the cluster came up, but for the end of a drain and of what was drained."""
    return [(name, data) for name, data in fake.events[1:] if name not in ("node.drained", "node.stopped")]


def names_of(fake: Fake) -> list[str]:
    """The names of these."""
    return [name for name, _ in told_of(fake)]


class Oops(Exception):  # noqa: N818 - what a test may raise
    """A test's own error."""


def whole(fake: Fake) -> bool:
    """Whether the cluster says that all nodes are up, and they are."""
    fake.cluster.watch()
    return not fake.cluster.down and set(fake.substrate.states.values()) == {ProcessState.RUNNING}


@by_name
async def test_a_fault_bites_is_proven_and_undone(fault: Fault) -> None:
    fake = await Fake().up()
    async with disturb(fake.cluster, fault, ["n2"], leases={"n2": 3}):
        assert fake.cluster.down == {"n2"}
        assert fake.substrate.state("n2") is not ProcessState.RUNNING
        assert ("wipe n2" in fake.substrate.orders) == (fault is LOSE_DISK)
    assert whole(fake)
    assert names_of(fake) == ["fault.begin", "fault.bit", "fault.undo", "fault.undone"]
    facts = {"leases": {"n2": 3}, "connections": {}, "blocks": False}
    assert told_of(fake)[0][1] == {"fault": fault.name, "nodes": ["n2"], **facts}
    assert told_of(fake)[1][1]["proof"]
    assert fake.deployment.forgotten == (["n2"] if fault is LOSE_DISK else [])


async def test_a_node_is_given_another_size_while_it_is_down_and_shows_it() -> None:
    fake = await Fake().up()
    larger = NodeResources(cache_mib=7, sql_memory_mib=7)
    async with disturb(fake.cluster, resize(larger, size="large"), ["n2"]):
        assert fake.cluster.down == {"n2"}
        assert not fake.deployment.given, "a cancelled test would start it with the new size all the same"
    assert whole(fake)
    assert fake.deployment.given == {"n2": larger}
    assert names_of(fake) == [
        "fault.begin",
        "fault.bit",
        "fault.undo",
        "node.resized",
        "fault.undone",
    ]
    assert told_of(fake)[3][1] == {"node": "n2", "size": "large", "shown": {"cache_mib": 7, "cpus": 1.0}}


async def test_a_node_that_says_nothing_shows_what_the_system_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusters.faults.node.SHOW_S", 0.6)
    fake = await Fake().up()
    dumb = AsyncMock(side_effect=HarnessError("n2 does not answer"))
    monkeypatch.setattr(fake.deployment, "shown", dumb)
    async with disturb(fake.cluster, resize(NodeResources(cache_mib=7, sql_memory_mib=7)), ["n2"]):
        pass
    assert dumb.await_count > 1
    assert told_of(fake)[3][1] == {"node": "n2", "shown": {"cpus": 1.0}}


@pytest.mark.parametrize("fault", [KILL, PAUSE, LOSE_DISK], ids=lambda fault: fault.name)
async def test_a_bite_that_cannot_be_proven_is_an_error_and_is_undone(fault: Fault) -> None:
    fake = await Fake().up()
    fake.deployment.ghost = True
    with pytest.raises(HarnessError, match=r"n2 was .* and still takes clients"):
        async with disturb(fake.cluster, fault, ["n2"]):
            pytest.fail("the block must not begin")
    assert whole(fake)
    assert names_of(fake) == ["fault.begin", "fault.undo", "fault.undone"]


@by_name
@pytest.mark.parametrize("half", [False, True], ids=["not at all", "half-way"])
async def test_a_bite_that_fails_is_undone(fault: Fault, half: bool) -> None:
    fake = await Fake().up()
    order = {"delete_pod": "delete", "pause": "pause", "drain": "stop"}.get(fault.name, "kill")
    fake.substrate.fails, fake.substrate.half = {f"{order} n2": 1}, half
    with pytest.raises(HarnessError, match=f"{order} n2 was refused"):
        async with disturb(fake.cluster, fault, ["n1", "n2"]):
            pytest.fail("the block must not begin")
    assert whole(fake)


async def test_what_engine_and_substrate_cannot_do_is_said_before_anything_is_hurt() -> None:
    fake = await Fake().up()
    fake.substrate.capabilities -= {Capability.PAUSE}
    with pytest.raises(HarnessError, match="fault pause: fake on fake cannot pause"):
        async with disturb(fake.cluster, PAUSE, ["n1"]):
            pytest.fail("the block must not begin")
    with pytest.raises(HarnessError, match=r"n7 is not a node of this cluster \(n1, n2, n3\)"):
        async with disturb(fake.cluster, KILL, ["n7"]):
            pytest.fail("the block must not begin")
    assert whole(fake)


@by_name
async def test_a_cancelled_test_leaves_a_whole_cluster_at_whatever_moment(fault: Fault) -> None:
    inside = 0
    for moment in range(30):
        fake = await Fake().up()

        async def test(fake: Fake = fake) -> None:
            nonlocal inside
            async with disturb(fake.cluster, fault, ["n1", "n2"]):
                inside += 1
                await asyncio.Event().wait()

        task = asyncio.create_task(test())
        for _ in range(moment):
            await asyncio.sleep(0)
        task.cancel()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel("once more, while it is being undone")
        with pytest.raises(asyncio.CancelledError):
            await task
        assert whole(fake), moment
    assert 0 < inside < 30, "some were cancelled within the block, some before"


async def test_an_undo_that_fails_is_said_and_the_others_are_undone_all_the_same() -> None:
    fake = await Fake().up()
    fake.substrate.fails = {"start n1": 1}
    with pytest.raises(HarnessError, match=r"^fault kill could not be undone: start n1 was refused$"):
        async with disturb(fake.cluster, KILL, ["n1", "n2"]):
            pass
    assert fake.cluster.down == {"n1"}
    assert fake.substrate.state("n2") is ProcessState.RUNNING
    assert "fault.undone" not in fake.names


async def test_what_the_test_raised_goes_before_what_the_undo_raised() -> None:
    fake = await Fake().up()
    fake.substrate.fails = {"start n1": 1}
    with pytest.raises(Oops) as caught:
        async with disturb(fake.cluster, KILL, ["n1"]):
            raise Oops
    assert caught.value.__notes__ == ["fault kill could not be undone: start n1 was refused"]


async def test_an_undo_without_end_is_given_up() -> None:
    fake = await Fake().up()

    async def never(*_: object) -> None:
        await asyncio.sleep(1000)

    stuck = Fault(name="stuck", capabilities=frozenset(), bite=KILL.bite, undo=never, undo_s=0.1)
    with pytest.raises(CommandTimedOut, match="fault stuck could not be undone: not after 0 s"):
        async with disturb(fake.cluster, stuck, ["n1"]):
            pass


async def test_an_undo_that_is_late_on_one_node_and_fails_on_another_is_not_only_late() -> None:
    fake = await Fake().up()

    async def undo(_: Cluster, node: str) -> None:
        raise CommandTimedOut("too late") if node == "n1" else HarnessError("refused")

    failing = Fault(name="failing", capabilities=frozenset(), bite=KILL.bite, undo=undo)
    with pytest.raises(HarnessError, match="too late; refused") as caught:
        async with disturb(fake.cluster, failing, ["n1", "n2"]):
            pass
    assert not isinstance(caught.value, CommandTimedOut)


async def test_a_node_that_comes_back_slowly_is_for_the_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = await Fake().up()

    async def accepting(node: str, **_: float) -> None:
        raise TimedOut(f"waiting for {node} to take clients: not after 90 s")

    monkeypatch.setattr(fake.cluster, "accepting", accepting)
    async with disturb(fake.cluster, KILL, ["n1"]):
        pass
    assert whole(fake)
    assert fake.names[-2:] == ["undo.slow", "fault.undone"]


async def test_a_node_that_does_not_come_back_refutes() -> None:
    fake = await Fake().up()
    start = fake.substrate.start

    async def dies(spec: Any) -> None:
        await start(spec)
        if spec.name == "n1":
            fake.substrate.states["n1"], fake.substrate.codes["n1"] = ProcessState.EXITED, 7

    with pytest.raises(NodeDied, match="n1 ended with exit code 7, by itself"):
        async with disturb(fake.cluster, KILL, ["n1", "n2"]):
            fake.substrate.start = dies  # type: ignore[method-assign]


async def test_evidence_that_cannot_be_written_keeps_no_fault_from_being_undone() -> None:
    for name in ("fault.bit", "fault.undo", "fault.undone"):
        fake = await Fake().up()
        fake.record_fails = name.__eq__
        with pytest.raises(HarnessError, match=f"{name} could not be recorded"):
            async with disturb(fake.cluster, KILL, ["n1"]):
                pass
        assert whole(fake)


async def test_a_frozen_node_that_ends_is_noticed_when_it_is_to_be_thawed() -> None:
    fake = await Fake().up()
    with pytest.raises(HarnessError, match="n1 ended with exit code -9, by a SIGKILL that was not sent from here"):
        async with disturb(fake.cluster, PAUSE, ["n1"]):
            fake.substrate.states["n1"], fake.substrate.codes["n1"] = ProcessState.EXITED, -9


class Ending(NamedTuple):
    code: int | None
    words: str
    error: type[Exception]
    says: str


@pytest.mark.parametrize(
    "ending",
    [
        Ending(7, "fatal: something", NodeDied, "n2 ended with exit code 7, by itself; it wrote last:\nfatal"),
        Ending(0, "", NodeDied, r"exit code 0, by itself; it wrote last:\n\(nothing\)"),
        Ending(-6, "", NodeDied, "exit code -6, by itself"),
        Ending(-11, "", NodeDied, "exit code -11, by itself"),
        Ending(-9, "", HarnessError, "by a SIGKILL that was not sent from here"),
        Ending(-15, "", HarnessError, "by a SIGTERM that was not sent from here"),
        Ending(None, "", HarnessError, "ended unseen, .* whoever watched over it is gone"),
        Ending(7, f"x: {os.strerror(errno.ENOSPC)}", HarnessError, r"\(no space left on device\)"),
        Ending(7, "F1 disk stall detected: unable to write to file", HarnessError, r"\(disk stall detected\)"),
        Ending(1, f"x: {os.strerror(errno.EADDRINUSE).lower()}", HarnessError, "(address already in use)"),
    ],
)
async def test_whose_fault_the_end_of_a_node_is(ending: Ending) -> None:
    fake = await Fake().up()
    fake.cluster.watch()
    fake.substrate.states["n2"] = ProcessState.EXITED
    fake.substrate.codes["n2"], fake.substrate.last_words["n2"] = ending.code, ending.words
    with pytest.raises(ending.error, match=ending.says):
        fake.cluster.watch()
    assert ("node.died" in fake.names) == (ending.error is NodeDied)
    with pytest.raises(ending.error):
        await fake.cluster.healthy()
    starting = Cluster(
        engine=fake.cluster.engine,
        deployment=fake.cluster.deployment,
        substrate=fake.substrate,
        topology=fake.cluster.topology,
        record=lambda _: None,
    )
    with pytest.raises(HarnessError):
        starting.watch()


@pytest.mark.parametrize("code", [0, 7, -9, None])
async def test_a_node_that_the_substrate_saw_ended_from_outside_refutes_nothing(code: int | None) -> None:
    """As by the end of its pod, which asks the database to stop, and it does in good order."""
    fake = await Fake().up()
    fake.substrate.states["n2"], fake.substrate.codes["n2"] = ProcessState.EXITED, code
    fake.substrate.outside["n2"] = "its pod was ended"
    with pytest.raises(HarnessError, match=r"n2 ended .*, its pod was ended; it wrote last"):
        fake.cluster.watch()
    assert "node.died" not in fake.names


@pytest.mark.parametrize("down", [False, True])
async def test_a_node_whose_machine_is_lost_refutes_nothing(down: bool) -> None:
    """Its process runs, as far as anybody knows; a node that is down on purpose cannot come back either."""
    fake = await Fake().up()
    if down:
        await fake.cluster.kill("n2")
    fake.substrate.lost["n2"] = "its machine m was not ready"
    lost = r"^n2: its machine m was not ready; what the node did then says nothing of the database$"
    for look in (fake.cluster.watch, fake.cluster.compare_clocks):
        with pytest.raises(HarnessError, match=lost):
            look()
    fake.deployment.deaf.add("n2")
    with pytest.raises(HarnessError, match=lost) as late:
        await fake.cluster.accepting("n2", timeout=0)
    assert not isinstance(late.value, TimedOut)
    assert "node.died" not in fake.names


async def test_a_node_that_ends_on_a_full_disk_refutes_nothing() -> None:
    fake = await Fake().up()
    fake.substrate.states["n2"], fake.substrate.codes["n2"] = ProcessState.EXITED, 7
    with pytest.raises(NodeDied):
        fake.cluster.watch()
    fake.substrate.free["n2"] = 5
    with pytest.raises(HarnessError, match="less than 32 MiB are free on its disk"):
        fake.cluster.watch()


async def test_a_look_that_hangs_hides_no_death() -> None:
    async def hangs() -> Health:
        await asyncio.sleep(1000)
        raise AssertionError

    def watch() -> None:
        raise NodeDied("n1")

    async with asyncio.timeout(60):
        with pytest.raises(NodeDied):
            await wait_until("it", hangs, timeout=100, watch=watch)
        with pytest.raises(TimedOut, match=r"not after \d+\.\d s and 1 attempts; last seen: nothing \(and the last"):
            await wait_until("it", hangs, timeout=0.2)


steps = st.tuples(
    st.sampled_from(FAULTS),
    st.lists(st.sampled_from(["n1", "n2", "n3"]), min_size=1, max_size=3, unique=True),
    st.booleans(),
    st.dictionaries(st.builds("{} n{}".format, st.sampled_from(ORDERS), st.integers(1, 3)), st.just(1), max_size=2),
    st.booleans(),
    st.one_of(st.none(), st.integers(0, 30)),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(steps, max_size=6))
def test_after_any_sequence_of_faults_the_cluster_knows_which_nodes_are_up(schedule: list[Any]) -> None:
    """Orders fail half-way, tests raise and are cancelled: a node that is not up was said not to be."""
    asyncio.run(_carry_out(schedule))


async def _carry_out(schedule: list[Any]) -> None:
    fake = await Fake().up()
    for fault, nodes, raises, fails, half, cancel_after in schedule:
        fake.substrate.fails, fake.substrate.half = dict(fails), half
        said = await _one(fake, fault, nodes, raises=raises, cancel_after=cancel_after)
        down = {n for n, state in fake.substrate.states.items() if state is not ProcessState.RUNNING}
        assert down <= fake.cluster.down, "watch would take the death of these for the database's own"
        if fake.cluster.down:
            assert "could not be undone" in said
        # What an operator would do: nothing more than what the undo does.
        fake.substrate.fails = {}
        for node in list(fake.cluster.down):
            await KILL.undo(fake.cluster, node)
        assert whole(fake)


async def _one(fake: Fake, fault: Fault, nodes: list[str], *, raises: bool, cancel_after: int | None) -> str:
    """Disturb once; everything that was said of what went wrong."""

    async def test() -> None:
        async with disturb(fake.cluster, fault, nodes):
            await asyncio.sleep(0)
            if raises:
                raise Oops

    task = asyncio.create_task(test())
    if cancel_after is not None:
        for _ in range(cancel_after):
            await asyncio.sleep(0)
        task.cancel()
    await asyncio.wait([task])
    if task.cancelled():
        try:
            task.result()
        except asyncio.CancelledError as error:
            return _said(error)
    raised = task.exception()
    assert raised is None or isinstance(raised, Oops | HarnessError)
    return _said(raised) if raised else ""


def _said(error: BaseException) -> str:
    context = [_said(error.__context__)] if error.__context__ else []
    return " ".join([str(error), *getattr(error, "__notes__", []), *context])


async def test_a_node_is_given_another_version_while_it_is_down_and_says_what_it_runs() -> None:
    fake = await Fake().up()
    old, new = FakeEngine(fake.substrate, "v0"), FakeEngine(fake.substrate, "v1")
    async with disturb(fake.cluster, swap(new, old), ["n2"]):
        assert fake.cluster.down == {"n2"}
        assert not fake.deployment.installed, "a cancelled test would start it with the new version all the same"
    assert whole(fake)
    assert fake.deployment.installed == {"n2": "v1"}
    assert names_of(fake) == [
        "fault.begin",
        "fault.bit",
        "fault.undo",
        "node.swapped",
        "fault.undone",
    ]
    told = told_of(fake)[3][1]
    assert (told["wanted"], told["build"], told["node"]) == ("v1", "v1", "n2")


async def test_a_node_that_ends_once_it_takes_clients_died_by_itself() -> None:
    """Its connection is lost a moment before its process is seen to be gone: no fault of the harness."""
    fake = await Fake().up()
    running = fake.deployment.running

    async def ends(node: str) -> RunningVersion:
        if fake.deployment.installed:
            asyncio.get_running_loop().call_later(0.01, lambda: gone(fake, node))
            raise SqlError(f"{node}: the connection was lost", failure=Failure.LOST, code="refused")
        return await running(node)

    fake.deployment.running = ends  # type: ignore[method-assign]
    with pytest.raises(NodeDied, match="n2 ended with exit code 2, by itself"):
        async with disturb(fake.cluster, changing(fake), ["n2"]):
            pass
    assert [data["node"] for data in recorded_of(fake, "node.died")] == ["n2"]


def gone(fake: Fake, node: str) -> None:
    fake.substrate.states[node], fake.substrate.codes[node] = ProcessState.EXITED, 2


def changing(fake: Fake, **options: Any) -> Fault:
    """From v0 to v1."""
    return swap(FakeEngine(fake.substrate, "v1"), FakeEngine(fake.substrate, "v0"), **options)


def recorded_of(fake: Fake, name: str) -> list[dict[str, Any]]:
    """The facts of all events of a name."""
    return [data for event, data in fake.events if event == name]


async def test_there_is_time_to_come_up_and_to_go_back() -> None:
    assert changing(await Fake().up(), up_s=240.0).undo_s > 2 * 240.0


@pytest.mark.parametrize("error", [NotDrained("lease transfer refused"), TimedOut("not within 120 s")], ids=str)
async def test_a_node_that_is_not_drained_is_stopped_and_keeps_its_version(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = await Fake().up()
    fake.deployment.installed = {"n2": "v0"}
    monkeypatch.setattr(fake.deployment, "drain", AsyncMock(side_effect=error))
    changed = set[str]()
    async with disturb(fake.cluster, changing(fake, changed=changed), ["n2"]):
        assert fake.substrate.state("n2") is ProcessState.EXITED
    assert whole(fake)
    assert (changed, fake.deployment.installed) == (set(), {"n2": "v0"})
    late = {"late": True} if isinstance(error, TimedOut) else {}
    assert recorded_of(fake, "drain.failed") == [{"node": "n2", "why": str(error), **late}]
    assert recorded_of(fake, "node.stopped") == [{"node": "n2", "code": 0}]
    assert [told["build"] for told in recorded_of(fake, "node.swapped")] == ["v0"]
    assert not {"node.drained", "swap.failed"} & {*fake.names}
    with pytest.raises(NotDrained, match=f"n2 was not drained, and stopped with exit code 0: {error}"):
        async with disturb(fake.cluster, DRAIN, ["n2"]):
            pytest.fail("it is another claim's, which has no check of that")
    assert whole(fake)


async def test_a_drain_that_the_machine_keeps_from_ending_is_not_the_databases_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for error, words in ((HarnessError("cannot start it"), ""), (NotDrained("refused"), "No space left on device")):
        fake = await Fake().up()
        fake.substrate.last_words["n2"] = words
        monkeypatch.setattr(fake.deployment, "drain", AsyncMock(side_effect=error))
        with pytest.raises(HarnessError, match=f"no space left on device.*{error}" if words else str(error)):
            async with disturb(fake.cluster, changing(fake), ["n2"]):
                pytest.fail("the block must not begin")
        assert "drain.failed" not in fake.names


@pytest.mark.parametrize(
    ("code", "drain_s", "told"),
    [
        (0, 9.0, {"code": 0}),
        (-15, 9.0, {"code": -15}),
        (-11, 9.0, {"code": -11}),
        (2, 9.0, {"code": 2}),
        (-9, 0.0, {"code": -9, "late": True}),
        (-9, 9.0, None),
    ],
)
async def test_how_a_node_stopped_is_recorded(
    code: int, drain_s: float, told: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = await Fake().up()

    async def stopped(name: str, *, timeout: float) -> int:
        assert timeout == drain_s
        fake.substrate.states[name], fake.substrate.codes[name] = ProcessState.EXITED, code
        return code

    monkeypatch.setattr(fake.substrate, "stop", stopped)
    if told is None:
        with pytest.raises(HarnessError, match="by a SIGKILL that was not sent from here"):
            async with disturb(fake.cluster, changing(fake, drain_s=drain_s), ["n2"]):
                pytest.fail("the block must not begin")
        assert "node.stopped" not in fake.names
        return
    async with disturb(fake.cluster, changing(fake, drain_s=drain_s), ["n2"]):
        pass
    assert recorded_of(fake, "node.stopped") == [{"node": "n2", **told}]
    assert fake.deployment.installed == {"n2": "v1"}
    assert whole(fake)


@pytest.mark.parametrize("whose", ["its own", "another's, which is away", "another's, which is back"])
async def test_what_somebody_else_ends_meanwhile_is_no_node_that_was_not_drained(
    whose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor one that was late: an eviction in the middle of a drain refuted the claim of a changed version."""
    fake = await Fake().up()
    substrate, by = fake.substrate, "its pod was ended from outside"

    async def drain(node: str, *, timeout: float) -> None:
        if whose == "its own":
            substrate.states["n2"], substrate.codes["n2"], substrate.outside["n2"] = ProcessState.EXITED, 0, by
            raise NotDrained("the connection was lost")
        if whose == "another's, which is away":
            substrate.states["n3"], substrate.codes["n3"], substrate.outside["n3"] = ProcessState.EXITED, 0, by
        else:
            substrate.lost["n3"] = by
        raise TimedOut("not within 120 s")

    monkeypatch.setattr(fake.deployment, "drain", drain)
    with pytest.raises(HarnessError, match=by):
        async with disturb(fake.cluster, changing(fake), ["n2"]):
            pytest.fail("the block must not begin")
    assert not {"drain.failed", "node.stopped", "node.died"} & {*fake.names}


@pytest.mark.parametrize("how", ["it cannot be started", "it dies", "it never takes clients"])
async def test_a_node_that_does_not_come_up_is_back_on_its_former_version(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = await Fake().up()
    fake.substrate.last_words["n2"] = "libpq.so.5: no such file"
    old, new = FakeEngine(fake.substrate, "v0"), FakeEngine(fake.substrate, "v1")
    start = fake.substrate.start

    async def started(spec: ProcessSpec) -> None:
        fake.deployment.deaf.discard("n2")
        if fake.deployment.installed.get("n2") == "v1":
            if how == "it cannot be started":
                raise BadInput("it is no program")
            await start(spec)
            if how == "it dies":
                fake.substrate.states["n2"], fake.substrate.codes["n2"] = ProcessState.EXITED, 7
            else:
                fake.deployment.deaf.add("n2")
            return
        await start(spec)

    monkeypatch.setattr(fake.substrate, "start", started)
    async with disturb(fake.cluster, swap(new, old, up_s=0.3), ["n2"]):
        pass
    assert whole(fake)
    assert fake.deployment.installed == {"n2": "v0"}
    assert names_of(fake) == [
        "fault.begin",
        "fault.bit",
        "fault.undo",
        "swap.failed",
        "node.swapped",
        "fault.undone",
    ]
    said = "it is no program" if how == "it cannot be started" else "it wrote last:\nlibpq.so.5: no such file"
    assert said in told_of(fake)[3][1]["why"]
    assert told_of(fake)[3][1].get("late", False) == (how == "it never takes clients")
    assert told_of(fake)[4][1]["build"] == "v0"


@pytest.mark.parametrize(
    ("code", "words", "victim", "says"),
    [
        (-9, "", "n2", "by a SIGKILL that was not sent from here"),
        (1, "store: No space left on device", "n2", r"\(no space left on device\)"),
        (1, "listen: address already in use", "n2", r"\(address already in use\)"),
        (None, "listen: address already in use", "n2", r"\(address already in use\)"),
        (-9, "", "n3", "n3 ended with exit code -9"),
    ],
)
async def test_what_lies_outside_of_the_database_is_no_failure_of_its_new_version(
    code: int | None, words: str, victim: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = await Fake().up()
    start = fake.substrate.start

    async def started(spec: ProcessSpec) -> None:
        await start(spec)
        if code is not None:
            fake.substrate.states[victim], fake.substrate.codes[victim] = ProcessState.EXITED, code
        fake.substrate.last_words[victim] = words
        fake.deployment.deaf.add("n2")

    monkeypatch.setattr(fake.substrate, "start", started)
    with pytest.raises(HarnessError, match=says):
        async with disturb(fake.cluster, changing(fake, up_s=0.3), ["n2"]):
            pass
    assert "swap.failed" not in fake.names


async def test_a_version_whose_programs_say_nothing_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = await Fake().up()
    monkeypatch.setattr(fake.deployment, "install", AsyncMock(side_effect=[TimedOut("it says nothing"), None]))
    async with disturb(fake.cluster, changing(fake), ["n2"]):
        pass
    assert recorded_of(fake, "swap.failed") == [
        {"node": "n2", "wanted": "v1", "former": "v0", "why": "it says nothing", "late": True},
    ]
    assert whole(fake)


async def test_a_version_that_cannot_be_copied_is_not_the_databases_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = await Fake().up()
    monkeypatch.setattr(fake.deployment, "install", AsyncMock(side_effect=HarnessError("cannot copy v1")))
    with pytest.raises(HarnessError, match="cannot copy v1"):
        async with disturb(fake.cluster, changing(fake), ["n2"]):
            pass
    assert "swap.failed" not in fake.names


@pytest.mark.parametrize("how", ["as expected", "for another reason", "by its name"])
async def test_a_version_that_is_there_to_fail_says_whether_it_failed_as_it_was_meant_to(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = await Fake().up()
    fake.substrate.last_words["n2"] = "it cannot go on" if how == "as expected" else "no certificate"
    old, new = FakeEngine(fake.substrate, "v0"), FakeEngine(fake.substrate, "v1")
    start, install = fake.substrate.start, fake.deployment.install

    async def started(spec: ProcessSpec) -> None:
        await start(spec)
        if fake.deployment.installed.get("n2") == "v1":
            fake.substrate.states["n2"], fake.substrate.codes["n2"] = ProcessState.EXITED, 3

    async def installed(node: str, engine: Any) -> None:
        if how == "by its name" and engine is new:
            raise BadInput("v1 is not a version")
        await install(node, engine)

    monkeypatch.setattr(fake.substrate, "start", started)
    monkeypatch.setattr(fake.deployment, "install", installed)
    meant = Meant(failure="dies", shows=("exit code 3", "it cannot go on"))
    async with disturb(fake.cluster, swap(new, old, meant=meant), ["n2"]):
        pass
    assert whole(fake)
    ((failed,),) = [[data for name, data in fake.events if name == "swap.failed"]]
    assert (failed["meant"], failed["as_meant"]) == ("dies", how == "as expected")


NEW = NodeSpec(name="n4")


@pytest.mark.parametrize("asked", ["refuses", "joins"])
async def test_a_new_node_that_cannot_be_given_its_version_leaves_nothing(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = await Fake().up()

    async def installed(node: str, engine: Any) -> None:
        raise BadInput(f"{node}: v1 cannot start with this data")

    monkeypatch.setattr(fake.deployment, "install", installed)
    if asked == "refuses":
        kept_out = await fake.cluster.refuses(NEW, FakeEngine(fake.substrate, "v1"))
        assert kept_out == KeptOut(how="n4: v1 cannot start with this data", for_version=True)
    else:
        with pytest.raises(BadInput, match="n4: v1 cannot start with this data"):
            await fake.cluster.joins(NEW, FakeEngine(fake.substrate, "v1"))
    assert fake.cluster.nodes == ["n1", "n2", "n3"]
    assert fake.substrate.state("n4") is ProcessState.ABSENT
    assert (await fake.deployment.healthy()).ok, "it is waited for no more"


@pytest.mark.parametrize(
    ("code", "words", "for_version"),
    [
        (1, "ERROR: v1 is Too Old for this cluster", True),
        (None, "v1 is too old for this cluster", True),
        (1, "listen: address already in use", False),
        (1, "v1 is too old for this cluster: no space left on device", False),
        (1, "bad flag", False),
        (-9, "", False),
        (None, "", False),
    ],
)
async def test_a_new_node_is_kept_out_for_its_version_only_where_it_says_so(
    code: int | None, words: str, for_version: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = await Fake().up()
    start = fake.substrate.start

    async def started(spec: ProcessSpec) -> None:
        await start(spec)
        fake.substrate.last_words["n4"] = words
        if code is None:
            fake.deployment.deaf.add("n4")
        else:
            fake.substrate.states["n4"], fake.substrate.codes["n4"] = ProcessState.EXITED, code

    monkeypatch.setattr(fake.substrate, "start", started)
    kept_out = await fake.cluster.refuses(NEW, FakeEngine(fake.substrate, "v1"), timeout=0.3)
    assert kept_out is not None
    assert (kept_out.for_version, words in kept_out.how) == (for_version, True)
    assert fake.cluster.nodes == ["n1", "n2", "n3"]
    assert fake.substrate.state("n4") is ProcessState.EXITED
    assert (await fake.deployment.healthy()).ok, "it is waited for no more"


@pytest.mark.parametrize(
    ("words", "error", "says"),
    [
        ("", TimedOut, "n4 to take clients"),
        ("store: no space left on device", HarnessError, "n4 was let down by this machine"),
    ],
)
async def test_a_new_node_that_the_machine_lets_down_is_not_late(words: str, error: type[Exception], says: str) -> None:
    fake = await Fake().up()
    fake.deployment.deaf.add("n4")
    fake.substrate.last_words["n4"] = words
    with pytest.raises(error, match=says) as caught:
        await fake.cluster.add(NEW, timeout=0.3)
    assert type(caught.value) is error


async def test_a_program_that_is_none_is_no_refusal_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = await Fake().up()

    async def started(spec: ProcessSpec) -> None:
        raise BadInput(f"{spec.name}: an empty file")

    monkeypatch.setattr(fake.substrate, "start", started)
    with pytest.raises(BadInput, match="n4: an empty file"):
        await fake.cluster.refuses(NEW, FakeEngine(fake.substrate, "v1"))
    assert (await fake.deployment.healthy()).ok
