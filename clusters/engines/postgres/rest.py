"""A few lines of HTTP for Patroni's REST interface: one request a connection, nothing kept, cancellable."""

import asyncio
import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clusters.errors import HarnessError
from clusters.model import Host

USER = "roachproof"
"""The user name of Patroni's requests that change something."""

_LARGEST_ANSWER = 1 << 20
"""In bytes. Patroni's answers are a few kilobytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """An HTTP status and the body's text."""

    status: int
    text: str

    @property
    def json(self) -> Mapping[str, Any]:
        """The body as a JSON object. Raises ``HarnessError`` if it is none."""
        try:
            data = json.loads(self.text)
        except ValueError as error:
            raise HarnessError(f"Patroni answered {self.status} {self.text[:200]!r}, not JSON") from error
        if not isinstance(data, dict):
            raise HarnessError(f"Patroni answered {self.status} {self.text[:200]!r}, not a JSON object")
        return data


async def ask(
    host: Host,
    method: str,
    path: str,
    *,
    timeout: float,
    body: Mapping[str, Any] | None = None,
    password: str | None = None,
) -> Answer:
    """Send one request. Raises ``HarnessError`` when there is no whole answer within ``timeout`` seconds."""
    content = b"" if body is None else json.dumps(body).encode()
    lines = [
        f"{method} {path} HTTP/1.0",
        f"Host: {host.address}:{host.port}",
        f"Content-Length: {len(content)}",
    ]
    if password is not None:
        lines.append("Authorization: Basic " + base64.b64encode(f"{USER}:{password}".encode()).decode())
    request = "\r\n".join([*lines, "", ""]).encode() + content
    try:
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection(host.address, host.port, limit=_LARGEST_ANSWER)
            try:
                writer.write(request)
                await writer.drain()
                answer = await reader.read(-1)
            finally:
                writer.transport.abort()
    except TimeoutError as error:
        raise HarnessError(f"Patroni of {host.node}: {method} {path}: no answer within {timeout:g} s") from error
    except OSError as error:
        raise HarnessError(f"Patroni of {host.node}: {method} {path}: {error}") from error
    head, _, text = answer.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    if len(words) < 2 or not words[1].isdigit():
        raise HarnessError(f"Patroni of {host.node}: {method} {path}: {answer[:80]!r} is not an HTTP answer")
    return Answer(status=int(words[1]), text=text.decode(errors="replace"))
