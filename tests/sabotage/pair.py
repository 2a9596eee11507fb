"""Two builds that a sabotage needs, in the place of those that its session has."""

from collections.abc import Callable
from typing import Any

import pytest

from clusters.engines import Engine
from tests.clusters.real_cockroach import cockroach


def pair(old: str, new: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A module's fixtures ``versions`` and ``engine``: its clusters begin with ``old``. Skips where one lacks."""

    @pytest.fixture(name="versions")
    def versions() -> tuple[Engine, ...]:
        return cockroach(old), cockroach(new)

    @pytest.fixture(name="engine")
    def engine(versions: tuple[Engine, ...]) -> Engine:
        return versions[0]

    return versions, engine
