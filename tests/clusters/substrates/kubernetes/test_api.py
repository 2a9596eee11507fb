"""Calls that are made again, and what commands in containers say, which arrives whole over a socket that pretends."""

import base64
import hashlib
import json
import socket
import struct
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
import urllib3
from kubernetes import client, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.stream.ws_client import ERROR_CHANNEL, STDERR_CHANNEL, STDOUT_CHANNEL

from clusters.errors import BadInput, HarnessError
from clusters.substrates.kubernetes import api as api_module
from clusters.substrates.kubernetes.api import Api, _exit_code, _Nowhere
from clusters.substrates.kubernetes.history import History
from clusters.substrates.kubernetes.pods import HARMLESS_S
from tests.clusters.substrates.kubernetes.frames import END, Frames, opened


def executing(frames: Frames, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An API server that answers a command with these frames, all of which are there at once."""
    api: Any = Api.__new__(Api)
    run = opened(frames, monkeypatch)
    run._all = _Nowhere()
    frames.arrive(all_of_them=True)
    api.open_exec = lambda *_, **__: run
    return api


def test_each_channel_goes_where_it_belongs_and_the_last_words_come_with_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An archive whose last part was lost had an exit code of 0."""
    said = [(STDOUT_CHANNEL, b"1"), (STDERR_CHANNEL, b"!"), (STDOUT_CHANNEL, b"23")]
    frames = Frames([*said, (ERROR_CHANNEL, b'{"status": "Success"}'), END])
    api = executing(frames, monkeypatch)
    assert api.execute("team", "node-0", ["cat"], container="node") == (0, b"123", b"!")


def test_a_command_that_does_not_end_is_not_waited_for_longer_than_is_said() -> None:
    """The API server lives, and so does the connection: a container that stands still kept a run for ever."""
    closed = list[bool]()
    run = SimpleNamespace(is_open=lambda: True, update=lambda timeout: None, close=lambda: closed.append(True))
    api: Any = Api.__new__(Api)
    api.where, api.open_exec = "context lab", lambda *_, **__: run
    with pytest.raises(HarnessError, match=r"^context lab: a command in node-0 did not end within 0 s$"):
        api.execute("team", "node-0", ["date"], container="node", timeout=0)
    assert closed == [True]


def test_of_an_archive_nothing_is_kept_but_in_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The client would copy all that it has with each frame: time that grows with the square of the size."""
    part, parts = b"x" * 65536, 100
    api = executing(
        Frames([*[(STDOUT_CHANNEL, part)] * parts, (ERROR_CHANNEL, b'{"status": "Success"}'), END]), monkeypatch
    )
    tracemalloc.start()
    try:
        with (tmp_path / "archive").open("wb") as into:
            assert api.execute("team", "node-0", ["tar"], into=into, container="node") == (0, b"", b"")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (tmp_path / "archive").read_bytes() == part * parts
    assert most < len(part) * parts / 10


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ({"status": "Success"}, 0),
        ({"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "7"}]}}, 7),
    ],
)
def test_the_exit_code_is_what_the_end_of_the_stream_says(status: dict[str, Any], code: int) -> None:
    assert _exit_code(json.dumps(status).encode()) == code


def test_a_log_may_have_what_is_no_text() -> None:
    api: Any = Api.__new__(Api)
    answer = SimpleNamespace(read=lambda: b"one \x80\ntwo\n", close=lambda: None)
    api.core = SimpleNamespace(read_namespaced_pod_log=lambda *_, **__: answer)
    assert api.log("team", "shop-0", "db") == "one \N{REPLACEMENT CHARACTER}\ntwo\n"


def server(host: str) -> Api:
    """The client of an API server of which nobody had an answer yet."""
    api: Any = Api.__new__(Api)
    api.where, api._configuration = "context lab", SimpleNamespace(host=host)
    told: Api = api
    return told


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "_answered", set[str]())
    monkeypatch.setattr(api_module, "_AGAIN_S", 0.0)


class Answers:
    """What the API server answers to one call after the other: what is raised, or anything else."""

    def __init__(self, *answers: object) -> None:
        self.left = list(answers)
        self.bodies: list[Any] = []

    def __call__(self, *_: object, body: Any = None, **__: object) -> object:
        self.bodies.append(body)
        answer = self.left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def status(code: int) -> ApiException:
    return ApiException(status=code, reason=f"status {code}")


LOST = urllib3.exceptions.ProtocolError("connection aborted")


@pytest.mark.usefixtures("impatient")
async def test_an_object_that_is_invalid_is_what_the_user_said_of_it() -> None:
    """As a toleration with an operator that there is none of."""
    refused = status(422)
    refused.body = '{"message": "StatefulSet.apps node is invalid: spec.template.spec.tolerations[0].operator"}'
    with pytest.raises(
        BadInput, match=r"cannot make it: .*tolerations\[0\].operator; correct what the environment says"
    ):
        await server("one").make("make it", Answers(refused))


async def test_an_object_whose_answer_was_lost_is_not_anothers() -> None:
    """A run that was alone said that another one was in its namespace."""
    for lost in (LOST, status(504)):
        await server("one").make("make it", Answers(lost, status(409)))
    await server("one").make("make it", Answers("made"))
    with pytest.raises(HarnessError, match="cannot make it: status 409"):
        await server("one").make("make it", Answers(status(409)))
    with pytest.raises(BadInput, match="cannot make it: status 401"):
        await server("one").make("make it", Answers(status(401)))


@pytest.mark.usefixtures("impatient")
def test_one_is_deleted_and_none_that_was_made_in_its_place() -> None:
    """Where the answer is lost, too: asked for again it would be the next pod that ends."""
    for answers in (["deleted"], [status(404)], [LOST, status(404)], [LOST, status(409)], [status(409)]):
        server("one").delete_now("end it", ends := Answers(*answers), "node-0", "team", uid="u", grace_s=1)
        assert {body.preconditions.uid for body in ends.bodies} == {"u"}
        assert ends.bodies[0].grace_period_seconds == 1
    server("one").delete_now("end it", Answers(status(404)), "node-0")
    for refused in (status(409), status(422)):
        with pytest.raises(HarnessError, match="cannot end it"):
            server("one").delete_now("end it", Answers(refused), "node-0")


@pytest.mark.usefixtures("impatient")
def test_one_that_comes_back_may_refuse_for_a_moment() -> None:
    for refused in (status(401), status(403)):
        assert server("one").call_now("ask", Answers(LOST, refused, refused, "yes")) == "yes"
        with pytest.raises(BadInput, match="cannot ask"):
            server("one").call_now("ask", Answers(refused))


@pytest.mark.usefixtures("impatient")
def test_one_that_never_answered_is_the_wrong_one_and_one_that_did_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "FIRST_S", 0.0)
    way_out = "see that it runs and is reached from here, or name another context in ROACHPROOF_KUBERNETES_CONTEXT"
    with pytest.raises(
        BadInput, match=rf"context lab: no Kubernetes answers at https://one \(connection aborted\); {way_out}"
    ):
        server("https://one").call_now("ask", Answers(*[LOST] * 99))
    server("https://one").call_now("ask", Answers(status(429), "yes"))
    server("https://one").call_now("ask", Answers(*[LOST] * 50, "yes"))
    monkeypatch.setattr(api_module, "AWAY_S", 0.0)
    with pytest.raises(HarnessError, match="cannot ask: it has been away for 0 s"):
        server("https://one").call_now("ask", Answers(*[LOST] * 99))


class Page(BaseHTTPRequestHandler):
    """What a proxy or another server says to whatever it is asked."""

    code, body = 200, b"<html>log in</html>"

    def do_GET(self) -> None:
        self.send_response(self.code)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        """Tells nobody."""


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("code", "body"), [(200, b"<html>log in</html>"), (200, b"{}"), (404, b"no such page")])
async def test_a_server_that_is_no_kubernetes_is_named(code: int, body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "FIRST_S", 0.0)
    monkeypatch.setattr(Page, "code", code)
    monkeypatch.setattr(Page, "body", body)
    with HTTPServer(("127.0.0.1", 0), Page) as there:
        Thread(target=there.serve_forever).start()
        try:
            one: Any = server(f"http://127.0.0.1:{there.server_port}")
            (settings := client.Configuration()).host = one._configuration.host
            one._client = client.ApiClient(settings)
            with pytest.raises(BadInput, match=r"context lab: no Kubernetes answers at http://127.0.0.1:\d+ \("):
                await one.version()
        finally:
            there.shutdown()


def test_a_watch_goes_on_where_one_that_comes_back_refuses_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not for ever: a token that has run out stays so. It is told that it was away."""
    monkeypatch.setattr(watch.Watch, "stream", lambda *_, **__: iter([]))
    listed = SimpleNamespace(items=["pod"], metadata=SimpleNamespace(resource_version="1"))
    ended: Any = SimpleNamespace(is_set=lambda: False, wait=lambda _: None)
    away = list[float]()
    listing = Answers(LOST, status(403), status(503), status(401), listed, listed, status(401))
    seen = server("one").watch("watch pods", listing, "team", ended, away=away.append)
    assert [next(seen), next(seen)] == [("LISTED", ["pod"])] * 2
    assert len(away) == 1
    with pytest.raises(BadInput, match="cannot watch pods"):
        next(seen)
    monkeypatch.setattr(api_module, "AWAY_S", 0.0)
    with pytest.raises(BadInput, match="cannot watch pods"):
        next(server("one").watch("watch pods", Answers(LOST, status(401)), "team", ended))


def test_a_watch_whose_begin_the_api_server_has_forgotten_was_not_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """What happened since is in the list that comes next."""

    def stream(*_: object, **__: object) -> Iterator[Any]:
        raise ApiException(status=410)
        yield

    monkeypatch.setattr(watch.Watch, "stream", stream)
    listed = SimpleNamespace(items=["pod"], metadata=SimpleNamespace(resource_version="1"))
    waited, away = list[float](), list[float]()
    ended: Any = SimpleNamespace(is_set=lambda: False, wait=waited.append)
    seen = server("one").watch("watch pods", lambda *_, **__: listed, "team", ended, away=away.append)
    assert [next(seen), next(seen)] == [("LISTED", ["pod"])] * 2
    assert (away, waited) == ([], [api_module._SOON_S])


class Time:
    """Passes while somebody waits for the end, and else not; what ends a watch never comes."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def is_set(self) -> bool:
        return False


@pytest.mark.parametrize("trouble", [LOST, status(429), status(503)], ids=["refuses", "429", "503"])
def test_a_watch_asks_an_api_server_in_trouble_ever_more_seldom(
    trouble: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three watches asked it ten times a second. How long it was away is told, and that soon after it is back."""
    monkeypatch.setattr(watch.Watch, "stream", lambda *_, **__: iter([]))
    monkeypatch.setattr(api_module, "time", clock := Time())
    ended: Any = clock
    asked, away, trouble_s = list[float](), list[float](), [0.0]
    listed = SimpleNamespace(items=[], metadata=SimpleNamespace(resource_version="1"))

    def listing(*_: object, **__: object) -> Any:
        asked.append(clock.now)
        if clock.now < trouble_s[0]:
            raise trouble
        return listed

    seen = server("one").watch("watch pods", listing, "team", ended, away=away.append)
    for lasts_s, least, most in ((1.0, 2, 5), (1.5, 3, 7), (60.0, 15, 30), (600.0, 100, 150), (0.5, 2, 3)):
        next(seen)
        trouble_s[0], before = clock.now + lasts_s, len(asked)
        next(seen)
        late_s = clock.now - trouble_s[0]
        assert least <= len(asked) - before <= most, lasts_s
        assert 0 <= late_s <= min(max(0.3, 0.25 * lasts_s), 5.0), "it is back"
        assert lasts_s - 0.3 - 1e-6 <= away[-1] <= lasts_s + late_s
        assert away[-1] <= HARMLESS_S or lasts_s > 1.5, "what is harmless is not told to be longer"
    assert len(away) == 5


LATE = urllib3.exceptions.ReadTimeoutError(client.CoreV1Api, "/pods", "timed out")


@pytest.mark.parametrize(
    ("error", "after_s", "away_s"), [(LATE, 99.0, 35.0), (LATE, 12.0, 17.0), (LOST, 99.0, 5.0)],
    ids=["silent", "silent since a word", "lost"],
)  # fmt: skip
def test_the_silence_by_which_a_watch_is_known_to_be_lost_counts(
    error: Exception, after_s: float, away_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was away for half a minute had been so for a moment."""
    now, away = [0.0], list[float]()
    monkeypatch.setattr(api_module, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def pass_by(seconds: float) -> None:
        now[0] += seconds

    def stream(*_: object, **__: object) -> Iterator[Any]:
        pass_by(100.0)
        yield {"type": "ADDED", "object": "pod"}
        pass_by(after_s)
        raise error

    monkeypatch.setattr(watch.Watch, "stream", stream)
    listed = SimpleNamespace(items=[], metadata=SimpleNamespace(resource_version="1"))
    ended: Any = SimpleNamespace(is_set=lambda: bool(away), wait=lambda _: pass_by(5.0))
    seen = server("one").watch("watch pods", lambda *_, **__: listed, "team", ended, away=away.append)
    assert [next(seen)[0] for _ in range(3)] == ["LISTED", "ADDED", "LISTED"]
    assert away == [away_s]


def test_a_watch_lists_anew_after_a_line_that_is_no_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client passes over such a line of a proxy's; what it stood for is in the list that comes next."""
    monkeypatch.setattr(watch.Watch, "stream", lambda *_, **__: iter([None, {"type": "ADDED", "object": "late"}]))
    listed = SimpleNamespace(items=["pod"], metadata=SimpleNamespace(resource_version="1"))
    ended: Any = SimpleNamespace(is_set=lambda: False, wait=lambda _: None)
    seen = server("one").watch("watch pods", lambda *_, **__: listed, "team", ended)
    assert [next(seen), next(seen)] == [("LISTED", ["pod"])] * 2


def test_a_watch_has_limits_where_an_api_server_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes connections and says nothing: without one the watch would never tell that it was away."""
    asked = list[object]()
    listed = SimpleNamespace(items=[], metadata=SimpleNamespace(resource_version="1"))

    def listing(*_: object, **options: object) -> Any:
        asked.append((options.get("timeout_seconds"), options["_request_timeout"]))
        return listed

    monkeypatch.setattr(watch.Watch, "stream", lambda _, of, *where, **options: [of(*where, **options)][1:])
    ended: Any = SimpleNamespace(is_set=lambda: len(asked) > 1, wait=lambda _: None)
    assert [kind for kind, _ in server("one").watch("watch pods", listing, "team", ended)] == ["LISTED"]
    assert asked == [(None, 30.0), (300, (30.0, 330.0))]


def test_a_log_is_followed_by_the_client_s_own_rules() -> None:
    """It refuses what it knows no number of, such as a time-out that is none."""
    with taking("http", lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nruns\nexits 0\n") as (api, _):
        api.core = client.CoreV1Api(client.ApiClient(api._configuration))
        assert [*api.follow_log("team", "node-0", "node")] == ["runs", "exits 0"]


def test_no_connection_is_silent_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """What load balancers forget is not heard any more, as the end of a node that had run for minutes."""
    api: Any = Api.__new__(Api)
    api._configuration = client.Configuration()
    with socket.create_server(("127.0.0.1", 0)) as listens, socket.create_connection(listens.getsockname()) as there:
        opened = SimpleNamespace(sock=there)
        run = SimpleNamespace(sock=opened, websocket=opened, socket=lambda _: there)
        for way in ("stream", "portforward"):
            monkeypatch.setattr(api_module, way, lambda *_, **__: run)
        commands, ports = (
            partial(api.open_exec, "team", "p", [], stdin=False, container="node"),
            partial(api.open_port, "team", "p", 1),
        )
        for opens in (commands, ports):
            there.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 0)
            opens()
            assert there.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert there.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 10
        opened.sock = None  # ended by the pod as soon as it was there
        ports()


@contextmanager
def taking(scheme: str, answer: Callable[[bytes], bytes]) -> Iterator[tuple[Any, list[socket.socket]]]:
    """The client of an API server that takes connections, and those: each is answered this, and then nothing more."""
    taken = list[socket.socket]()
    with socket.create_server(("127.0.0.1", 0)) as listens:

        def take() -> None:
            with suppress(OSError):
                while True:
                    taken.append(listens.accept()[0])
                    taken[-1].sendall(answer(taken[-1].recv(4096)))

        threading.Thread(target=take, daemon=True).start()
        api = server(f"{scheme}://127.0.0.1:{listens.getsockname()[1]}")
        api._configuration = client.Configuration(host=api._configuration.host)
        api._configuration.verify_ssl = False
        try:
            yield api, taken
        finally:
            for there in taken:
                there.close()


@pytest.mark.parametrize(
    ("scheme", "answer"),
    [("http", b""), ("http", b"HTTP/1.1 101 "), ("https", b"")],
    ids=["nothing", "half an answer", "nothing to TLS"],
)
def test_an_api_server_that_takes_a_connection_and_says_nothing_is_not_waited_for_for_ever(
    scheme: str, answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To a command, or to a port: both are connections of the client's that know no time-out."""
    monkeypatch.setattr(api_module, "_CALL_S", 0.2)
    with taking(scheme, lambda _: answer) as (api, taken):
        with pytest.raises(HarnessError, match=r"context lab: cannot run a command in node-0: .*timed out"):
            api.open_exec("team", "node-0", ["true"], stdin=False, container="node")
        with pytest.raises(HarnessError, match=r"context lab: cannot reach port 1 of node-0: .*timed out"):
            api.open_port("team", "node-0", 1)
        assert len(taken) == 2


def agrees(request: bytes) -> bytes:
    """The answer of an API server that takes a websocket."""
    (key,) = (line.split()[1] for line in request.splitlines() if line.lower().startswith(b"sec-websocket-key"))
    accepted = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    agreed = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n"
    return b"HTTP/1.1 101 OK\r\n" + agreed + b"Sec-WebSocket-Accept: " + accepted + b"\r\n\r\n"


def test_a_connection_that_was_made_waits_as_long_as_it_takes() -> None:
    """For what a node says, which may be nothing for hours."""
    with taking("http", agrees) as (api, _):
        opened = api.open_exec("team", "node-0", ["true"], stdin=True, container="node")
        assert opened.is_open()
        assert opened.sock.sock.gettimeout() is None


WEBSOCKET = (b"\x82\x03\x00\x01\x00", b"\x82\x03\x01\x01\x00")
"""By which a kubelet begins to forward port 1: a frame for what is said, and one for errors."""
PARTS, REFUSES = b"\x88\x02\x03\xe8", b"\x82\x04\x01no!"


@pytest.mark.parametrize(
    ("last", "reset", "cut"),
    [(b"", False, True), (b"", True, True), (PARTS, False, False), (REFUSES, False, False)],
    ids=["cut", "reset", "ended by the pod", "not taken"],
)
def test_a_connection_to_a_pod_that_is_lost_on_the_way_is_told_from_one_that_ends(
    last: bytes, reset: bool, cut: bool
) -> None:
    with taking("http", lambda request: agrees(request) + b"".join(WEBSOCKET) + last) as (api, taken):
        there, was_cut = api.open_port("team", "node-0", 1)
        there.settimeout(60.0)
        if reset:
            taken[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        taken[0].close()
        assert there.recv(1) == b""
        assert was_cut() == cut


def killing(name: str, words: str) -> Any:
    return SimpleNamespace(
        metadata=SimpleNamespace(uid=words, resource_version="1"),
        involved_object=SimpleNamespace(name=name, kind="Pod"),
        reason="Killing",
        message=words,
        type="Normal",
        count=1,
    )


def test_that_events_are_not_heard_any_more_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever kept the watch from going on: what is missing from there on was not said to be."""
    api: Any = server("one")
    listed = SimpleNamespace(items=[], metadata=SimpleNamespace(resource_version="1"))

    def listing(*_: object, **options: object) -> Any:
        """:return: CoreV1EventList"""
        return SimpleNamespace(close=lambda: None, release_conn=lambda: None) if options.get("watch") else listed

    monkeypatch.setattr("kubernetes.watch.watch.iter_resp_lines", lambda _: iter([b"{}\n"]))
    api.core = SimpleNamespace(list_namespaced_event=listing)
    history = History(api, "team", tmp_path / "pods.log", of=bool)
    history._listen()
    assert (tmp_path / "pods.log").read_text().endswith(" events are not heard any more: KeyError 'object'\n")


def test_a_container_that_fails_its_probe_is_ended_by_kubernetes() -> None:
    nobody: Any = None
    history = History(nobody, "team", None, of=bool)
    history._happened(killing("node-0", "Container db failed liveness probe, will be restarted"))
    history._happened(killing("node-1", "Stopping container db"))
    assert history.probed("node-0") == "Killing: Container db failed liveness probe, will be restarted"
    assert history.probed("node-1") == ""
    history.begins("node-0")
    assert history.probed("node-0") == ""


def made_by(reason: str, words: str, version: str) -> Any:
    """What happened to a StatefulSet that makes pods."""
    event = killing("node", words)
    event.reason, event.involved_object.kind, event.metadata.resource_version = reason, "StatefulSet", version
    return event


@pytest.mark.parametrize(
    "words",
    [
        'pods "node-0" is forbidden: violates PodSecurity "restricted:latest"',
        'admission webhook "validation.gatekeeper.sh" denied the request: [owner] a label is missing',
    ],
)
def test_a_statefulset_that_is_refused_pods_for_long_is_told_from_one_that_is_for_a_moment(words: str) -> None:
    """As in a new namespace, until that has an account."""
    nobody: Any = None
    history = History(nobody, "team", None, of=bool)
    history._happened(made_by("FailedCreate", "create Pod node-0 failed error: the API server is away", "1"))
    assert history.refused("node", 0.0) == ""
    history._happened(made_by("FailedCreate", words, "2"))
    assert history.refused("node", 0.0) == f"FailedCreate: {words}"
    assert history.refused("node", 3600.0) == ""
    assert history.refused("node-1", 0.0) == ""
    history._happened(made_by("SuccessfulCreate", "create Pod node-0 successful", "3"))
    assert history.refused("node", 0.0) == ""
