"""Counts what is sent to a Kubernetes' API server. As a plugin (``-p``) it leaves the number in a file at the end.

A watch is one request for as long as it is answered, and so is a command in a container.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FILE = "ROACHPROOF_BENCHMARK_REQUESTS"
"""Environment variable: where a run leaves the number."""
_sent: list[float] = []


def count(into: list[float], replace: Callable[[object, str, Any], None] = setattr) -> None:
    """From now on each request of this process adds the time at which it is sent."""
    from kubernetes.client.rest import RESTClientObject
    from kubernetes.stream import ws_client

    def counted(function: Any) -> Any:
        def send(*args: Any, **options: Any) -> Any:
            into.append(time.monotonic())
            return function(*args, **options)

        return send

    replace(RESTClientObject, "request", counted(RESTClientObject.request))
    replace(ws_client, "create_websocket", counted(ws_client.create_websocket))


def pytest_configure() -> None:
    """Begin to count."""
    count(_sent)


def pytest_unconfigure() -> None:
    """Leave the number."""
    Path(os.environ[FILE]).write_text(str(len(_sent)))
