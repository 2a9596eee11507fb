"""Where the replicas of a cluster lay, sample by sample, as a line of ``layout.jsonl`` and back."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.json import Decoder, encode

from plugin.evidence.records import Count, Moment, read_lines

LAYOUT = "layout.jsonl"


class LayoutSample(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One sample, at ``t`` microseconds.

    ``replicas``: how many each node has. ``homeless``: ranges none of whose replicas is on a node of the cluster.
    ``moves``: replicas added and removed since the first sample, as far as samples show. ``leases`` of each node, and
    how many ranges are ``unavailable`` and ``underreplicated``, come from the servers' metrics, which are asked less
    often and are some seconds old: ``None`` where they were not asked or nobody answered. ``silent`` are the nodes that
    did not answer when they were asked: the sums are those of the others, and ``leases`` is unknown then. ``lost``: why
    there is a hole instead of a sample; where the replicas were is not known then.
    """

    t: Moment
    replicas: Mapping[str, Count] = {}
    ranges: Count = 0
    homeless: Count | None = None
    moves: Count | None = None
    leases: Mapping[str, Count] | None = None
    unavailable: Count | None = None
    underreplicated: Count | None = None
    silent: tuple[str, ...] = ()
    source: str = ""
    lost: str = ""

    def __post_init__(self) -> None:
        if not self.replicas and not self.lost:
            raise ValueError("neither replicas nor why they are lost")


def layout_line(sample: LayoutSample) -> str:
    """The sample as its line; what is not known is left out."""
    return encode(sample).decode() + "\n"


def read_layout(lines: Iterable[str]) -> Iterator[LayoutSample]:
    """All samples; a last line that was cut off is dropped. Raises ``MalformedRecord``."""
    return read_lines(lines, Decoder(LayoutSample).decode, "a sample")
