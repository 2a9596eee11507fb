"""A TPC-C generator with an easier pack: six new-orders fewer, six payments more, for few transactions to show it."""

from dataclasses import dataclass
from typing import ClassVar

from fixtures.workloads import program
from fixtures.workloads.tpcc import deck, terminals
from fixtures.workloads.tpcc.spec import TpccSpec

PACK = (0,) * 4 + (1,) * 16 + (2, 3, 4)


@dataclass(frozen=True, kw_only=True, slots=True)
class EasierSpec(TpccSpec):
    """As ``TpccSpec``, for this program."""

    PROGRAM: ClassVar[str] = "tests.sabotage.wrong_mix"


if __name__ == "__main__":
    deck.PACK = PACK
    program.run(EasierSpec, terminals.main)
