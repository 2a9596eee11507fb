"""A cluster of others that is taken over, without a Kubernetes: what is refused, and what is kept of it."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from clusters.errors import BadInput
from clusters.model import NodeSpec
from clusters.substrates.adopted import places
from clusters.substrates.adopted.places import Places
from tests.clusters.substrates.adopted.test_finding import RELEASE, found

THREE = [NodeSpec(name=f"n{number}") for number in (1, 2, 3)]


class Server:
    """An API server with events and pods of which nothing is said but that it was away, as often as it is asked."""

    where = "context lab"

    def __init__(self) -> None:
        self.closed = 0
        self.core = SimpleNamespace(list_namespaced_pod="pods", list_namespaced_event="events")

    def close(self) -> None:
        self.closed += 1

    def log(self, *_: object) -> str:
        return ""

    def watch(self, *_: object, away: Any = lambda _: None, **__: object) -> Iterator[tuple[str, Any]]:
        away(31.04)
        yield "LISTED", []


def place(of: Any, tmp_path: Path, server: Server) -> Any:
    api: Any = server
    there: Any = Places(api, of, tmp_path / "scratch", allowed=True, keep_logs=tmp_path)
    there._pods._watching.join()
    return there


@pytest.mark.parametrize("nodes", [THREE[:2], THREE], ids=["of another size", "without a right"])
async def test_one_that_is_refused_keeps_no_connection(
    nodes: list[NodeSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, refuses = (
        Server(),
        AsyncMock(side_effect=BadInput("missing: patch statefulsets") if nodes == THREE else None),
    )
    monkeypatch.setattr(places, "look", AsyncMock(return_value=(server, found("shop", [RELEASE]), "s", {})))
    monkeypatch.setattr(places, "refuse_without", refuses)
    said = "missing: patch statefulsets" if nodes == THREE else "has 3 pods, and the test is about 2 nodes; choose a"
    with pytest.raises(BadInput, match=said):
        await Places.open(name="t", workdir=tmp_path, nodes=nodes, allow_disruption=True, changes=True)
    assert server.closed == 1


async def test_one_without_a_place_for_its_files_keeps_no_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, full = Server(), tmp_path / "a file"
    full.touch()
    monkeypatch.setattr(places, "look", AsyncMock(return_value=(server, found("shop", [RELEASE]), "s", {})))
    with pytest.raises(BadInput, match=r"a file: clusters cannot be kept there .*; name a directory"):
        await Places.open(name="t", workdir=full, nodes=THREE, allow_disruption=True)
    assert server.closed == 1


async def test_that_the_api_server_was_away_is_kept(tmp_path: Path) -> None:
    there = place(found("shop"), tmp_path, Server())
    await there.close()
    assert (tmp_path / "kubernetes" / "pods.log").read_text().endswith(" the API server was away for 31.0 s\n")


async def test_a_node_without_a_pod_of_an_operator_has_a_way_out(tmp_path: Path) -> None:
    """Nobody else may add one."""
    there = place(found("orders"), tmp_path, Server())
    await there.place(THREE)
    way_out = "choose a smaller topology, or add pods by its operator"
    with pytest.raises(BadInput, match=f"^n4: all 3 pods of orders are taken already; {way_out}$"):
        await there.place([NodeSpec(name="n4")])
    await there.close()
