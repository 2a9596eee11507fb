"""The official client, as far as it is used: calls with their errors in words, commands in containers, watches, logs.

Its calls block, so each is made in a thread. Commands in containers get an ``ApiClient`` of their own: the client
patches the one that it is given while it opens a stream.
"""

import asyncio
import io
import json
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, BinaryIO, TypeVar

import urllib3
from kubernetes import client, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.stream import portforward, stream, ws_client
from kubernetes.stream.ws_client import ERROR_CHANNEL, STDERR_CHANNEL, STDOUT_CHANNEL, WSClient
from websocket import ABNF, WebSocket, WebSocketConnectionClosedException, WebSocketException

from clusters.errors import BadInput, HarnessError
from clusters.substrates.kubernetes.connection import KEPT_ALIVE, OWN, SILENT_S, configuration
from clusters.substrates.kubernetes.manifests import LONGEST_S

T = TypeVar("T")

AWAY_S, FIRST_S = 60.0, 15.0
"""How long an API server may be away before a call is given up, and one that never answered yet."""
_CALL_S, _AGAIN_S = 30.0, 0.5
_SOON_S, _LATEST_S, _OF_AWAY = 0.3, 5.0, 0.25
"""How soon a watch is begun anew, and how late at the most: after a quarter of the time that the API server was away.
So one in trouble is asked ever more seldom, and for how long it was away is still known to a quarter."""
_WATCH_S = 300
"""How long the API server goes on with one watch before it is begun anew."""
_AWAY = (429, 500, 502, 503, 504)
"""What an API server answers that is overloaded, or only half there."""
_LOST = (urllib3.exceptions.HTTPError, OSError, ValueError)
"""What is raised where no answer came, or one of another kind than was asked for, as a proxy's page of HTML."""
_answered = set[str]()
"""The API servers that this process had an answer of."""
_CHUNK = 1 << 18
_REFUSED = {
    401: "its token or certificate is not accepted, or has expired; log in again, or choose another context",
    403: "grant that right to the account (docs/kubernetes.md has all of them), or choose another namespace",
}
_NOT_FOUND, _CONFLICT, _EXPIRED, _INVALID = 404, 409, 410, 422
_RULES = "that is a rule of the cluster, not a right; choose another namespace, or ask who made the rule"
"""What is refused by quotas, policies, or since the namespace is being deleted, comes with the same status."""


class Refused(HarnessError):  # noqa: N818 - what happened
    """The API server refuses what was asked for, and with another account it would do so, too."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.is_there, self.is_not_there = status == _CONFLICT, status == _NOT_FOUND


class Api:
    """One cluster's API server, as kubeconfig (or the pod that the harness runs in) says."""

    def __init__(self, context: str | None) -> None:
        self._configuration, self.where = configuration(context)
        self.own = self.where == OWN
        """Whether it is the one of the pod that the harness runs in."""
        self._client = client.ApiClient(self._configuration)
        self.core = client.CoreV1Api(self._client)
        self.apps = client.AppsV1Api(self._client)
        self.batch = client.BatchV1Api(self._client)
        self.policy = client.PolicyV1Api(self._client)
        self.storage = client.StorageV1Api(self._client)
        self.authorization = client.AuthorizationV1Api(self._client)

    async def call(self, what: str, function: Callable[..., T], *args: Any, **options: Any) -> T:
        """One call, in a thread; ``what`` it is to do. Where the API server is away it is made again, for a minute.

        Raises ``BadInput`` where the account may not do it, ``Refused`` with the server's words where nobody may, and
        ``HarnessError`` where no answer comes.
        """
        return await asyncio.to_thread(self.call_now, what, function, *args, **options)

    async def told(self, what: str, function: Callable[..., Any], *args: Any, **options: Any) -> list[dict[str, Any]]:
        """What a list has, as the API server writes it; else as ``call``."""
        listed = await self.call(what, function, *args, **options)
        found: list[dict[str, Any]] = self._client.sanitize_for_serialization(listed.items)
        return found

    def call_now(self, what: str, function: Callable[..., T], *args: Any, **options: Any) -> T:
        """The same, in the thread that asks."""
        answer, _ = self._asked(what, lambda: function(*args, _request_timeout=_CALL_S, **options))
        if isinstance(answer, ApiException):
            raise self.refused(what, answer) from answer
        return answer

    async def accepted(self, what: str, ask: Callable[..., object], *args: Any) -> ApiException | None:
        """Ask for what a server may refuse, or not know; its refusal, if there is one. Raises ``HarnessError``."""
        answer, _ = await asyncio.to_thread(self._asked, what, lambda: ask(*args, _request_timeout=_CALL_S))
        return answer if isinstance(answer, ApiException) else None

    async def version(self) -> Any | None:
        """What the API server says that it is; nothing where the account may not know.

        Raises as ``call``, and ``BadInput`` where it knows no such question.
        """
        ask = client.VersionApi(self._client).get_code
        answer, _ = await asyncio.to_thread(self._asked, "ask for the version", lambda: ask(_request_timeout=_CALL_S))
        if not isinstance(answer, ApiException):
            return answer
        if answer.status in _REFUSED:
            return None
        raise BadInput(self._wrong(said(answer))) from answer

    async def make(self, what: str, create: Callable[..., object], *args: Any) -> None:
        """Have an object made. One that is there when that is tried again is ours: its answer alone was lost.

        Raises as ``call``, and ``BadInput`` where it is invalid: what the user said of pods or volumes is in it.
        """
        answer, again = await asyncio.to_thread(self._asked, what, lambda: create(*args, _request_timeout=_CALL_S))
        if isinstance(answer, ApiException) and not (again and answer.status == _CONFLICT):
            if answer.status == _INVALID:
                raise BadInput(f"{self.where}: cannot {what}: {said(answer)}; correct what the environment says of it")
            raise self.refused(what, answer) from answer

    def delete_now(
        self, what: str, delete: Callable[..., object], *names: str, uid: str = "", grace_s: int | None = None
    ) -> None:
        """Have an object deleted, in the thread that asks; it may be gone already.

        ``uid``: that one, and none that was made in its place meanwhile.
        """
        only = client.V1DeleteOptions(
            api_version="v1",
            grace_period_seconds=grace_s,
            preconditions=client.V1Preconditions(uid=uid) if uid else None,
        )
        answer, _ = self._asked(what, lambda: delete(*names, body=only, _request_timeout=_CALL_S))
        gone = (_NOT_FOUND, _CONFLICT) if uid else (_NOT_FOUND,)
        if isinstance(answer, ApiException) and answer.status not in gone:
            raise self.refused(what, answer) from answer

    def _asked(self, what: str, ask: Callable[[], T]) -> tuple[T | ApiException, bool]:
        """The answer or refusal, and whether it was asked for again: then the first attempt may have been heard.

        An API server that comes back refuses everybody for a moment, until it knows their rights again.
        """
        began, again = time.monotonic(), False
        while True:
            try:
                answer = ask()
            except ApiException as error:
                _answered.add(self._configuration.host)
                passes = error.status in _AWAY or (again and error.status in _REFUSED)
                if not passes or time.monotonic() - began > AWAY_S:
                    return error, again
            except _LOST as error:
                self._give_up(what, error, time.monotonic() - began)
            else:
                _answered.add(self._configuration.host)
                return answer, again
            again = True
            time.sleep(_AGAIN_S)

    def _give_up(self, what: str, error: Exception, away_s: float) -> None:
        """Raise where the API server has been away for too long."""
        lost = isinstance(error, (urllib3.exceptions.HTTPError, OSError))
        why = str(error) if lost else "what is sent is no Kubernetes' answer"
        if self._configuration.host not in _answered and away_s > FIRST_S:
            raise BadInput(self._wrong(why)) from error
        if away_s > AWAY_S:
            raise HarnessError(f"{self.where}: cannot {what}: it has been away for {AWAY_S:g} s ({why})") from error

    def _wrong(self, why: str) -> str:
        """That it is not there, or something else is."""
        return (
            f"{self.where}: no Kubernetes answers at {self._configuration.host} ({why}); see that it runs and is "
            "reached from here, or name another context in ROACHPROOF_KUBERNETES_CONTEXT"
        )

    def refused(self, what: str, error: ApiException) -> Exception:
        """What to raise for an answer that is a refusal."""
        words = said(error)
        if error.status in _REFUSED:
            ruled = error.status == 403 and " cannot " not in words
            return BadInput(f"{self.where}: cannot {what}: {words}; {_RULES if ruled else _REFUSED[error.status]}")
        return Refused(f"{self.where}: cannot {what}: {words}", error.status)

    def watch(
        self,
        what: str,
        listing: Callable[..., Any],
        namespace: str | None,
        ended: threading.Event,
        *,
        away: Callable[[float], None] = lambda _: None,
        **selected: str,
    ) -> Iterator[tuple[str, Any]]:
        """What becomes of objects until ``ended``: first (``LISTED``, those that are there), then each change of one.

        Without ``namespace``: of what is in none. Begins anew by itself where the connection is lost; ``away`` is told
        for how many seconds it was, with the silence by which that was known. Raises ``BadInput`` where they may not be
        watched.
        """
        where = () if namespace is None else (namespace,)
        lost_at: float | None = None
        heard, silent_s = time.monotonic(), 0.0
        while not ended.is_set():
            try:
                listed = listing(*where, _request_timeout=_CALL_S, **selected)
                heard = time.monotonic()
                if lost_at is not None:
                    away(heard - lost_at + silent_s)
                    lost_at = None
                yield "LISTED", listed.items
                since = listed.metadata.resource_version
                # The server itself ends it in time; one that hangs does not.
                limits = {"timeout_seconds": _WATCH_S, "_request_timeout": (_CALL_S, _WATCH_S + _CALL_S)}
                watched = watch.Watch().stream(listing, *where, resource_version=since, **limits, **selected)
                for event in watched:
                    heard = time.monotonic()
                    if event is None:  # a line that is no JSON, of a proxy's: what it stood for is in the next list
                        break
                    yield event["type"], event["object"]
                    if ended.is_set():
                        return
            except (ApiException, *_LOST) as error:
                refused = error if isinstance(error, ApiException) and error.status in _REFUSED else None
                # One that comes back refuses everybody for a moment.
                if refused and (lost_at is None or time.monotonic() - lost_at > AWAY_S):
                    raise self.refused(what, refused) from refused
                # It was there, and has forgotten from when on: what happened since is in the next list.
                expired = isinstance(error, ApiException) and error.status == _EXPIRED
                if lost_at is None and not expired:
                    lost_at = time.monotonic()
                    # One that is lost since nothing came was so before that was known.
                    late = isinstance(error, urllib3.exceptions.TimeoutError) and not isinstance(
                        error, urllib3.exceptions.NewConnectionError
                    )
                    silent_s = min(SILENT_S, lost_at - heard) if late else 0.0
            gone_s = 0.0 if lost_at is None else time.monotonic() - lost_at
            ended.wait(min(max(_SOON_S, _OF_AWAY * gone_s), _LATEST_S))

    def log(self, namespace: str, pod: str, container: str, **options: int) -> str:
        """A container's log, with whatever is no text in it replaced. Raises ``ApiException``, ``OSError``."""
        read = self.core.read_namespaced_pod_log
        # The client itself takes it that a log is text.
        raw = {"_request_timeout": _CALL_S, "_preload_content": False}
        try:
            with closing(read(pod, namespace, container=container, **raw, **options)) as answer:
                return bytes(answer.read()).decode(errors="replace")
        except urllib3.exceptions.HTTPError as error:
            raise OSError(f"the log of {pod} cannot be read ({error})") from error

    def follow_log(self, namespace: str, pod: str, container: str) -> Iterator[str]:
        """Each line of a container's log, from its begin, as it is written. Ends with it, or the connection."""
        with suppress(ApiException, urllib3.exceptions.HTTPError, OSError):
            # A log may be silent for as long as its node; the client takes no tuple without a number.
            limit = (_CALL_S, LONGEST_S)
            read = self.core.read_namespaced_pod_log
            answer = read(
                pod, namespace, container=container, follow=True, _preload_content=False, _request_timeout=limit
            )
            left = b""
            try:
                for part in answer.stream(4096):
                    *lines, left = (left + part).split(b"\n")
                    yield from (line.decode(errors="replace") for line in lines)
            finally:
                answer.close()

    def open_exec(self, namespace: str, pod: str, argv: Sequence[str], *, stdin: bool, container: str) -> WSClient:
        """Begin a command in a container of a pod, which may have others beside it. Raises ``HarnessError``."""
        try:
            opened: WSClient = stream(
                client.CoreV1Api(client.ApiClient(self._configuration)).connect_get_namespaced_pod_exec,
                pod,
                namespace,
                command=list(argv),
                stdin=stdin,
                stdout=True,
                stderr=True,
                tty=False,
                binary=True,
                _preload_content=False,
                container=container,
            )
        except ApiException as error:
            raise self.refused(f"run a command in {pod}", error) from error
        except (WebSocketException, OSError) as error:
            raise HarnessError(f"{self.where}: cannot run a command in {pod}: {error}") from error
        _keep_alive(opened.sock)
        # Else it keeps all that was ever said; to have it forget that, it forgets what was not read yet, too.
        opened._all = _Nowhere()
        return opened

    def open_port(self, namespace: str, pod: str, port: int) -> tuple[socket.socket, Callable[[], bool]]:
        """A connection to a port of a pod, and whether it was cut: lost on the way, and not ended by the pod.

        It ends at once where nobody listens there. Raises ``HarnessError``.
        """
        try:
            opened = portforward(
                client.CoreV1Api(client.ApiClient(self._configuration)).connect_get_namespaced_pod_portforward,
                pod,
                namespace,
                ports=str(port),
            )
        except ApiException as error:
            raise self.refused(f"reach port {port} of {pod}", error) from error
        except (WebSocketException, OSError) as error:
            raise HarnessError(f"{self.where}: cannot reach port {port} of {pod}: {error}") from error
        _keep_alive(opened.websocket)
        return opened.socket(port), lambda: bool(opened.websocket.cut)

    def execute(
        self,
        namespace: str,
        pod: str,
        argv: Sequence[str],
        *,
        feed: BinaryIO | None = None,
        into: BinaryIO | None = None,
        stop: threading.Event | None = None,
        container: str,
        timeout: float = math.inf,
    ) -> tuple[int, bytes, bytes]:
        """Run a command in a container to its end: exit code, output and errors; the output may go to ``into``.

        Of ``feed`` everything is sent; its end cannot be told, so the command must know how much there is. Returns -1
        where ``stop`` was set before. Blocks. Raises ``HarnessError`` where the connection is lost, and where it has
        not ended in ``timeout`` seconds: that an API server is there says nothing of the container.
        """
        until = time.monotonic() + timeout
        run = self.open_exec(namespace, pod, argv, stdin=feed is not None, container=container)
        told: dict[int, Any] = {STDOUT_CHANNEL: io.BytesIO(), STDERR_CHANNEL: io.BytesIO(), ERROR_CHANNEL: io.BytesIO()}
        run._channels = _Channels(told | ({} if into is None else {STDOUT_CHANNEL: into}))
        try:
            while feed is not None and (part := feed.read(_CHUNK)):
                run.write_stdin(part)
                run.update(timeout=0)
            while run.is_open() and not (stop is not None and stop.is_set()):
                run.update(timeout=0.2)
                if time.monotonic() > until:
                    raise HarnessError(f"{self.where}: a command in {pod} did not end within {timeout:g} s")
            out, err, status = (told[channel].getvalue() for channel in (STDOUT_CHANNEL, STDERR_CHANNEL, ERROR_CHANNEL))
            return (-1 if run.is_open() else _exit_code(status)), out, err
        except (WebSocketException, OSError, ValueError, KeyError) as error:
            raise HarnessError(f"{self.where}: the connection to a command in {pod} was lost ({error})") from error
        finally:
            with suppress(Exception):
                run.close()

    def close(self) -> None:
        """Close all connections."""
        self._client.close()


def said(error: ApiException) -> str:
    """A server's words of what it refuses."""
    try:
        return str(json.loads(error.body or "")["message"])
    except (ValueError, KeyError, TypeError):
        return error.reason or f"status {error.status}"


def _keep_alive(websocket: Any) -> None:
    """As the client's own setting does with other connections. It may have ended already."""
    with suppress(OSError, AttributeError):
        for option in KEPT_ALIVE:
            websocket.sock.setsockopt(*option)


class _Connection(WebSocket):
    """As the client's own, which waits for ever for an API server that takes a connection and says nothing."""

    cut = False
    """Whether it was lost: a kubelet says so before it ends one, an API server that is away says nothing."""
    _parting = False

    def connect(self, url: str, **options: Any) -> None:
        self.settimeout(_CALL_S)
        super().connect(url, **options)  # type: ignore[no-untyped-call]
        self.settimeout(None)

    def recv_data_frame(self, control_frame: bool = False) -> tuple[int, Any]:
        try:
            opcode, frame = super().recv_data_frame(control_frame)
        except (WebSocketException, OSError) as error:
            self.cut = not self._parting
            # The client's thread that forwards a port takes no other: whoever it forwards to would wait for ever.
            raise WebSocketConnectionClosedException(str(error)) from error
        self._parting = self._parting or opcode == ABNF.OPCODE_CLOSE
        return opcode, frame


ws_client.WebSocket = _Connection  # it takes no time-out by which it connects


class _Nowhere:
    """What is written to it is gone."""

    def write(self, content: bytes) -> None:
        """Forget it."""


class _Channels(dict[int, bytes]):
    """What the client has of each channel: nothing, as it is written to a file as it arrives.

    The client itself copies all that it has with each frame, for as long as there is another: 100 MiB took minutes.
    """

    def __init__(self, to: Mapping[int, Any]) -> None:
        super().__init__()
        self._to = to

    def __setitem__(self, channel: int, content: bytes) -> None:
        self._to[channel].write(content)


def _exit_code(status: bytes) -> int:
    """The exit code that the end of a stream tells. Raises ``ValueError`` or ``KeyError`` where it tells none."""
    told = json.loads(status)
    if told.get("status") == "Success":
        return 0
    causes = {cause.get("reason"): cause.get("message") for cause in (told.get("details") or {}).get("causes") or ()}
    return int(causes["ExitCode"])
