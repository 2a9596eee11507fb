"""The official client, as far as it is used: calls with their errors in words, commands in containers, watches, logs.

Its calls block, so each is made in a thread. Commands in containers get an ``ApiClient`` of their own: the client
patches the one that it is given while it opens a stream.
"""

import asyncio
import io
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, BinaryIO, TypeVar

import urllib3
from kubernetes import client, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.stream import portforward, stream
from kubernetes.stream.ws_client import ERROR_CHANNEL, STDERR_CHANNEL, STDOUT_CHANNEL, WSClient
from websocket import WebSocketException

from clusters.errors import BadInput, HarnessError
from clusters.substrates.kubernetes.reached import configuration

T = TypeVar("T")

AWAY_S = 60.0
"""How long an API server may be away before a call is given up."""
_CALL_S = 30.0
_CHUNK = 1 << 18
_REFUSED = {
    401: "its token or certificate is not accepted, or has expired; log in again, or choose another context",
    403: "grant that right to the account (docs/kubernetes.md has all of them), or choose another namespace",
}
_RULES = "that is a rule of the cluster, not a right; choose another namespace, or ask who made the rule"
"""What is refused by quotas, policies, or since the namespace is being deleted, comes with the same status."""


class Api:
    """One cluster's API server, as kubeconfig (or the pod that the harness runs in) says."""

    def __init__(self, context: str | None) -> None:
        self._configuration, self.where = configuration(context)
        self._client = client.ApiClient(self._configuration)
        self.core = client.CoreV1Api(self._client)
        self.apps = client.AppsV1Api(self._client)
        self.batch = client.BatchV1Api(self._client)
        self.policy = client.PolicyV1Api(self._client)
        self.storage = client.StorageV1Api(self._client)
        self.authorization = client.AuthorizationV1Api(self._client)

    async def call(self, what: str, function: Callable[..., T], *args: Any, **options: Any) -> T:
        """One call, in a thread; ``what`` it is to do. Where the API server is away it is made again, for a minute.

        Raises ``BadInput`` where the account may not do it, ``HarnessError`` with the server's words otherwise.
        """
        return await asyncio.to_thread(self.call_now, what, function, *args, **options)

    async def told(self, what: str, function: Callable[..., Any], *args: Any, **options: Any) -> list[dict[str, Any]]:
        """What a list has, as the API server writes it; else as ``call``."""
        listed = await self.call(what, function, *args, **options)
        found: list[dict[str, Any]] = self._client.sanitize_for_serialization(listed.items)
        return found

    def call_now(self, what: str, function: Callable[..., T], *args: Any, **options: Any) -> T:
        """The same, in the thread that asks."""
        until = time.monotonic() + AWAY_S
        while True:
            try:
                return function(*args, _request_timeout=_CALL_S, **options)
            except ApiException as error:
                if error.status not in (429, 500, 502, 503, 504) or time.monotonic() > until:
                    raise self.refused(what, error) from error
            except (urllib3.exceptions.HTTPError, OSError) as error:
                if time.monotonic() > until:
                    raise HarnessError(
                        f"{self.where}: cannot {what}: it has been away for {AWAY_S:g} s ({error})"
                    ) from error
            time.sleep(0.5)

    def refused(self, what: str, error: ApiException) -> Exception:
        """What to raise for an answer that is a refusal."""
        try:
            words = json.loads(error.body or "")["message"]
        except (ValueError, KeyError, TypeError):
            words = error.reason or f"status {error.status}"
        if error.status in _REFUSED:
            ruled = error.status == 403 and " cannot " not in words
            return BadInput(f"{self.where}: cannot {what}: {words}; {_RULES if ruled else _REFUSED[error.status]}")
        return HarnessError(f"{self.where}: cannot {what}: {words}")

    def watch(
        self, what: str, listing: Callable[..., Any], namespace: str, ended: threading.Event, **selected: str
    ) -> Iterator[tuple[str, Any]]:
        """What becomes of objects until ``ended``: first (``LISTED``, those that are there), then each change of one.

        Begins anew by itself where the connection is lost. Raises ``BadInput`` where they may not be watched.
        """
        while not ended.is_set():
            try:
                listed = listing(namespace, **selected)
                yield "LISTED", listed.items
                since = listed.metadata.resource_version
                watched = watch.Watch().stream(
                    listing, namespace, resource_version=since, timeout_seconds=300, **selected
                )
                for event in watched:
                    yield event["type"], event["object"]
                    if ended.is_set():
                        return
            except ApiException as error:
                if error.status in _REFUSED:
                    raise self.refused(what, error) from error
            except (urllib3.exceptions.HTTPError, OSError):
                pass
            ended.wait(0.3)

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

    def follow_log(self, namespace: str, pod: str) -> Iterator[str]:
        """Each line of a pod's log, from its begin, as it is written. Ends with the container, or the connection."""
        with suppress(ApiException, urllib3.exceptions.HTTPError, OSError):
            answer = self.core.read_namespaced_pod_log(pod, namespace, follow=True, _preload_content=False)
            left = b""
            try:
                for part in answer.stream(4096):
                    *lines, left = (left + part).split(b"\n")
                    yield from (line.decode(errors="replace") for line in lines)
            finally:
                answer.close()

    def open_exec(
        self, namespace: str, pod: str, argv: Sequence[str], *, stdin: bool, container: str | None = None
    ) -> WSClient:
        """Begin a command in a pod's container, to be named where there are several. Raises ``HarnessError``."""
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
                **({} if container is None else {"container": container}),
            )
        except ApiException as error:
            raise self.refused(f"run a command in {pod}", error) from error
        except (WebSocketException, OSError) as error:
            raise HarnessError(f"{self.where}: cannot run a command in {pod}: {error}") from error
        # Else it keeps all that was ever said; to have it forget that, it forgets what was not read yet, too.
        opened._all = _Nowhere()
        return opened

    def open_port(self, namespace: str, pod: str, port: int) -> socket.socket:
        """A connection to a port of a pod. It ends at once where nobody listens there. Raises ``HarnessError``."""
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
        found: socket.socket = opened.socket(port)
        return found

    def execute(
        self,
        namespace: str,
        pod: str,
        argv: Sequence[str],
        *,
        feed: BinaryIO | None = None,
        into: BinaryIO | None = None,
        stop: threading.Event | None = None,
        container: str | None = None,
    ) -> tuple[int, bytes, bytes]:
        """Run a command in a pod to its end: exit code, output and errors; the output goes to ``into`` where given.

        Of ``feed`` everything is sent; its end cannot be told, so the command must know how much there is. Returns -1
        where ``stop`` was set before. Blocks. Raises ``HarnessError`` where the connection is lost.
        """
        run = self.open_exec(namespace, pod, argv, stdin=feed is not None, container=container)
        told: dict[int, Any] = {STDOUT_CHANNEL: io.BytesIO(), STDERR_CHANNEL: io.BytesIO(), ERROR_CHANNEL: io.BytesIO()}
        to = told | ({} if into is None else {STDOUT_CHANNEL: into})
        try:
            while feed is not None and (part := feed.read(_CHUNK)):
                run.write_stdin(part)
                _drain(run, to)
            while run.is_open():
                run.update(timeout=0.2)
                _drain(run, to)
                if stop is not None and stop.is_set():
                    break
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


class _Nowhere:
    """What is written to it is gone."""

    def write(self, content: bytes) -> None:
        """Forget it."""


def _drain(run: WSClient, to: Mapping[int, Any]) -> None:
    """Write what has arrived to where it belongs. While one channel is read more may arrive of another."""
    for channel, file in to.items():
        file.write(run.read_channel(channel))


def _exit_code(status: bytes) -> int:
    """The exit code that the end of a stream tells. Raises ``ValueError`` or ``KeyError`` where it tells none."""
    told = json.loads(status)
    if told.get("status") == "Success":
        return 0
    causes = {cause.get("reason"): cause.get("message") for cause in (told.get("details") or {}).get("causes") or ()}
    return int(causes["ExitCode"])
