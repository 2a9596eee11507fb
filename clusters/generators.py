"""Load generators beside a cluster: places other than this machine, in which client programs run.

A substrate that has them starts programs in them and passes lines to and fro; what the lines say it does not know.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from clusters.errors import HarnessError

MOST_GENERATORS = 1000
"""More than any load of the sources takes (our own choice)."""


class GeneratorLost(HarnessError):  # noqa: N818 - what happened
    """A load generator ended, or nothing is heard from it: its evidence is incomplete. The message names it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WantedGenerators:
    """How many load generators a cluster is to have: of which image, each with how many cores and MiB of memory.

    ``None``: not limited. ``code``: what the image must have of this suite, as ``fixtures.workloads.relay`` tells it.
    """

    number: int
    image: str
    cpus: float | None = None
    memory_mib: int | None = None
    code: str = ""


class Channel(Protocol):
    """Lines to and from a program that runs in a generator. It ends with ``close``, and with the program."""

    def send(self, line: Callable[[], bytes]) -> None:
        """Have a line written soon; what it is, is asked just before. Nothing where the channel has ended."""

    def close(self) -> None:
        """Let go of the program: its standard input ends."""


Heard = Callable[[bytes, int], None]
"""Is told each line, without its end, and when it was heard (``time.monotonic_ns``), by a thread of the channel's."""

Ended = Callable[[str], None]
"""Is told, once, that nothing more will be heard, and why as far as that is known; by the same thread."""


class Generators(Protocol):
    """The load generators of one cluster, which are there already. They end with it."""

    @property
    def names(self) -> Sequence[str]:
        """What each is called in messages and evidence."""

    @property
    def argv(self) -> Sequence[str]:
        """By what a command line begins that runs a module of this suite there."""

    @property
    def private(self) -> str:
        """A directory there that is in memory alone, for what is secret."""

    @property
    def evidence(self) -> str:
        """A directory there for what programs write."""

    @property
    def addresses(self) -> Mapping[str, str]:
        """By address of a node here that by which it is reached there, where these differ."""

    @property
    def running(self) -> Mapping[str, int]:
        """How many programs run in each now."""

    def clock(self, name: str) -> str:
        """Whose clock a generator has, as ``clusters.clocks`` names it."""

    def open(self, name: str, argv: Sequence[str], *, heard: Heard, ended: Ended) -> Channel:
        """Start a program. Blocks. Raises ``HarnessError``."""

    def state(self, name: str) -> str:
        """What is known of a generator that does not answer any more, in words."""
