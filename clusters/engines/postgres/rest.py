"""Requests to Patroni's REST interface: one a connection, nothing kept."""

import asyncio
import base64
import http.client
import json
from collections.abc import Mapping
from typing import Any

from clusters.errors import HarnessError
from clusters.model import Host

USER = "roachproof"
"""The user name of requests that change something."""


async def ask(
    host: Host, method: str, path: str, *, timeout: float, body: Mapping[str, Any] | None = None, password: str = ""
) -> str:
    """The answer's text; with a ``body`` the ``password`` goes with it.

    Raises ``HarnessError`` for any status but 200, and where there is no whole answer within ``timeout`` seconds.
    """

    def send() -> tuple[int, str]:
        # Not urllib: proxies of the environment are none of Patroni's.
        connection = http.client.HTTPConnection(host.address, host.port, timeout=timeout)
        try:
            if body is None:
                connection.request(method, path)
            else:
                login = base64.b64encode(f"{USER}:{password}".encode()).decode()
                connection.request(method, path, json.dumps(body), {"Authorization": f"Basic {login}"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        finally:
            connection.close()

    what = f"Patroni of {host.node}: {method} {path}"
    try:
        async with asyncio.timeout(timeout):
            status, text = await asyncio.to_thread(send)
    except TimeoutError as error:
        raise HarnessError(f"{what}: no answer within {timeout:g} s") from error
    except (OSError, http.client.HTTPException) as error:
        raise HarnessError(f"{what}: {error!r}") from error
    if status != http.HTTPStatus.OK:
        raise HarnessError(f"{what}: status {status}: {text[:200]}")
    return text
