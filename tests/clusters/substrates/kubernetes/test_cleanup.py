"""What is cleared away of runs that are gone, and that the namespace of one that lives is let be."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from clusters.errors import BadInput, HarnessError
from clusters.substrates.kubernetes import cleanup
from clusters.substrates.kubernetes.api import Refused
from clusters.substrates.kubernetes.manifests import INSTANCE, RENEWED, SCRIPTS, Settings

NOW = 1_700_000_000
"""By the API server; the machine of this test has another time."""


class Server:
    """An API server with namespaces, each with what its owner wrote on it, and pods that end after a few looks."""

    def __init__(self, written: dict[str, str], pods: int = 0) -> None:
        self.core = self.apps = self.policy = self
        self.where, self.written, self.pods = "context lab", written, pods
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: SimpleNamespace(items=[])

    def call_now(self, what: str, function: Any, *args: Any, **options: Any) -> Any:
        self.asked += 1
        return function(*args, **options)

    def list_namespace_with_http_info(self, **_: Any) -> Any:
        return None, 200, {"Date": format_datetime(datetime.fromtimestamp(NOW, UTC), usegmt=True)}

    def list_namespaced_pod_with_http_info(self, *_: Any, **limit: Any) -> Any:
        return self.list_namespace_with_http_info(**limit)

    def list_namespace(self, **_: Any) -> Any:
        def told(name: str, at: str) -> Any:
            metadata = SimpleNamespace(name=name, annotations={RENEWED: at} if at else None)
            return SimpleNamespace(metadata=metadata, status=SimpleNamespace(phase="Active"))

        return SimpleNamespace(items=[told(*each) for each in self.written.items()])

    def patch_namespace(self, name: str, body: Any) -> None:
        self.written[name] = body["metadata"]["annotations"][RENEWED]

    def delete_now(self, what: str, delete: Any, name: str, *_: Any) -> None:
        self.written.pop(name, None)

    def list_namespaced_pod(self, *_: Any, **__: Any) -> Any:
        self.pods -= 1
        return SimpleNamespace(items=[object()] * max(0, self.pods))


def server(written: dict[str, str], pods: int = 0) -> Any:
    return Server(written, pods)


def test_the_time_is_the_api_servers_so_that_no_machine_with_another_deletes_what_lives() -> None:
    written = {"lost": f"{NOW - 181}", "lives": f"{NOW - 179}", "ahead": f"{NOW + 999}", "kept": "", "strange": "once"}
    there = server(written)
    cleanup._renew(there, Settings(namespace="lives", cluster="c"), own=True)
    assert written["lives"] == f"{NOW}"
    assert cleanup.sweep(there) == ["lost"]
    assert [*written] == ["lives", "ahead", "kept", "strange"]


def test_what_a_killed_harness_left_is_tried_again_where_it_cannot_be_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else does it: as when a laptop is closed whose run was killed."""
    monkeypatch.setattr(cleanup, "_AGAIN_S", 0.0)
    fails: list[Exception] = [HarnessError("it has been away"), BadInput("log in again")]

    def remove() -> None:
        if fails:
            raise fails.pop()

    cleanup._insist(remove)
    assert fails == []
    monkeypatch.setattr(cleanup, "_GIVE_UP_S", 0.0)
    fails.extend([HarnessError("it has been away")] * 9)
    with pytest.raises(HarnessError, match="it has been away"):
        cleanup._insist(remove)


def test_the_keys_of_a_killed_harness_go_whatever_becomes_of_its_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on processes: the key of root, and of the authority, that the run directory had as long as it ran."""
    there, settings = server({"team": ""}), Settings(namespace="team", cluster="c")
    did = list[str]()

    async def logs(*_: object) -> None:
        did.append("logs")
        raise HarnessError("no log is to be had")

    monkeypatch.setattr(cleanup, "save_logs", logs)
    monkeypatch.setattr(cleanup, "remove", lambda *_, **__: did.append("removed"))
    for scratch in (tmp_path / "scratch", None):
        if scratch:
            (scratch / "certs").mkdir(parents=True)
            (scratch / "certs" / "ca.key").write_text("secret")
        with pytest.raises(HarnessError, match="no log is to be had"):
            cleanup._clear_away(there, settings, own=True, keep_logs=tmp_path / "logs", scratch=scratch)
    assert did == ["logs", "removed"] * 2
    assert [*tmp_path.iterdir()] == []


def test_pods_that_take_long_to_end_are_asked_for_less_than_five_times_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there, slept = server({"team": ""}, pods=9), list[tuple[float, int]]()
    monkeypatch.setattr(time, "sleep", lambda pause: slept.append((pause, there.asked)))
    cleanup.remove(there, Settings(namespace="team", cluster="c"), own=False)
    (_, first), *_, (_, last) = slept
    assert (last - first) / sum(pause for pause, _ in slept[1:]) < 5


class Named(Server):
    """One with a namespace that was named, in which something of ours is, with this written on it."""

    def __init__(self, written: str) -> None:
        super().__init__({})
        self.first = SimpleNamespace(annotations={RENEWED: written}, labels={INSTANCE: "lost-one"})
        self.selected = set[str]()

    def __getattr__(self, name: str) -> Any:
        def deleted(*_: Any, label_selector: str, **__: Any) -> Any:
            self.selected.add(label_selector)
            return SimpleNamespace(items=[])

        return deleted

    def list_namespaced_pod(self, *_: Any, **selected: Any) -> Any:
        return SimpleNamespace(items=[])

    def read_namespaced_config_map(self, name: str, namespace: str) -> Any:
        assert (name, namespace) == (SCRIPTS, "team")
        if not self.first.labels:
            raise Refused("configmaps not found", status=404)
        return SimpleNamespace(metadata=self.first)

    def patch_namespaced_config_map(self, name: str, namespace: str, body: Any) -> None:
        test, change = body
        assert (test["op"], test["path"]) == ("test", "/metadata/labels/app.kubernetes.io~1instance")
        if test["value"] != self.first.labels[INSTANCE]:
            raise HarnessError("the server rejected our request: testing path failed")
        assert (change["op"], change["path"]) == ("add", "/metadata/annotations/roachproof~1renewed")
        self.first.annotations[RENEWED] = change["value"]


@pytest.mark.parametrize(
    ("written", "lost"), [(f"{NOW - 181}", True), (f"{NOW - 179}", False), ("", False)], ids=["lost", "lives", "kept"]
)
def test_what_a_lost_run_left_in_a_namespace_that_is_named_is_deleted(written: str, lost: bool) -> None:
    there: Any = Named(written)
    settings = Settings(namespace="team", cluster="next")
    assert cleanup.sweep_named(there, settings) == ("lost-one" if lost else "")
    of = replace(settings, cluster="lost-one").selector
    assert there.selected == ({of} if lost else set())
    with pytest.raises(HarnessError, match="testing path failed"):
        cleanup._renew(there, settings, own=False)
    assert there.first.annotations == {RENEWED: written}, "what another has written says nothing of this one"
    cleanup._renew(there, replace(settings, cluster="lost-one"), own=False)
    assert cleanup.sweep_named(there, settings) == "", "its owner said that it lives"
    there.first.labels.clear()
    assert cleanup.sweep_named(there, settings) == "", "another cleared it away meanwhile"
