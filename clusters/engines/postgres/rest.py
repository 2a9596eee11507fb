"""Requests to Patroni's REST interface: one a connection, nothing kept."""

import asyncio
import base64
import http.client
import json
from collections.abc import Mapping
from typing import Any

from clusters.errors import HarnessError, TimedOut
from clusters.model import Host

USER = "roachproof"
"""The user name of requests that change something."""


class Refused(HarnessError):  # noqa: N818 - what happened
    """Patroni's answer says that it did not do what it was asked for."""


async def ask(
    host: Host, method: str, path: str, *, timeout: float, body: Mapping[str, Any] | None = None, password: str = ""
) -> str:
    """The answer's text; with a ``body`` the ``password`` goes with it.

    Raises ``Refused`` for any status but 200, ``TimedOut`` where there is no whole answer within ``timeout`` seconds,
    and ``HarnessError`` where there is none at all.
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
        raise TimedOut(f"{what}: no answer within {timeout:g} s") from error
    except (OSError, http.client.HTTPException) as error:
        raise HarnessError(f"{what}: {error!r}") from error
    if status != http.HTTPStatus.OK:
        raise Refused(f"{what}: status {status}: {text[:200]}")
    return text
