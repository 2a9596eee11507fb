"""The audit reads a long history in one stream: a million rows in four seconds, and memory grows by bytes a row.

Counted is CPU time, of the fastest of three. Where other work has a tenth of the machine, that counts more than it is:
then the audit is held against decoding, in the same process, the same records from JSON, line by line and to nothing
but lists. CI holds a tenth of the rows against that (``tests/fixtures/workloads/ledger/judge/test_audit_pace.py``).
"""

import os
import sys
from pathlib import Path
from statistics import median

from fixtures.workloads.ledger.records import FINAL, FINAL_HEADER, HISTORY, HISTORY_HEADER, payloads
from plugin.host_use import CpuUse
from tests.benchmarks.measuring import ROOT, Figure, in_turns, spread, used_by

FEW, MANY = 100_000, 1_000_000
MOST_TIMES = 12.0
"""Ten times the rows may take ten times as long, and a fifth more."""
MOST_BYTES_A_ROW = 64
"""The columns of ``Rows`` (the ledger's ``row_histories``) take some 26 bytes a row, half as much again where they have
grown beyond it."""
MOST_S = 4.0
"""CPU time of the audit of a million rows, on a machine that has nothing else to do."""
BUSY_PERCENT = 10.0
"""What other work may have of the machine meanwhile: caches and cores that are shared make CPU time longer."""
MOST_DECODES = 8.5
"""On a machine that has: CPU time of the audit, in that of decoding its lines and no more: 6 on two quiet cores, up to
8 on busy ones."""
PAIRS = 3
BUCKETS, SEED = 9, 5

AUDIT = """
import itertools, sys, time
from pathlib import Path
from msgspec.json import Decoder, encode
from fixtures.workloads.ledger.records import read_evidence
from fixtures.workloads.ledger.judge.audit import audit
evidence = read_evidence(Path(sys.argv[1]))
began = time.process_time()
found = audit(evidence.history(), evidence.final(), seed=5, buckets=9)
assert not found.problems, found.problems
assert not any(finding.count for finding in found.findings.values()), found.findings
used = time.process_time() - began
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
decode, plain = Decoder().decode, 0.0
for records in (evidence.history(), evidence.final()):
    while lines := [encode(record) for record in itertools.islice(records, 50_000)]:
        began = time.process_time()
        for line in lines:
            decode(line)
        plain += time.process_time() - began
print(found.acknowledged, found.found, used, plain, peak.split()[1])
"""


def write_records(rows: int, home: Path) -> None:
    """A lawful history: every row inserted, every tenth updated, every tenth read; and the final read of it."""
    home.mkdir()
    history, final, text = home / HISTORY, home / FINAL, payloads(SEED)
    t = op = 0
    with history.open("w") as file:
        file.write(HISTORY_HEADER + "\n")
        for key in range(rows):
            op, t = op + 1, t + 10
            file.write(f"I\t{t}\t{op}\tw1\tn1\tinsert\t{key}\t1\nO\t{t + 5}\t{op}\t\n")
            if not key % 10:
                op, t = op + 1, t + 10
                file.write(f"I\t{t}\t{op}\tw1\tn1\tupdate\t{key}\t2\nO\t{t + 5}\t{op}\t\n")
            elif key % 10 == 1:
                op, t = op + 1, t + 10
                file.write(f"I\t{t}\t{op}\tr1\tn1\tread\t{key}\t0\nO\t{t + 5}\t{op}\t1\n")
        file.write(f"E\t{t + 10}\n")
    with final.open("w") as file:
        file.write(FINAL_HEADER + "\n")
        for bucket in range(BUCKETS):
            keys = range(bucket, rows, BUCKETS)
            for key in keys:
                version = 1 if key % 10 else 2
                file.write(f"R\t{key}\t{version}\t{text(key, version)}\n")
            file.write(f"D\t{t + 20}\t{bucket}\t{len(keys)}\n")


def audited(rows: int, home: Path) -> tuple[float, float, float]:
    """Seconds of CPU time, MiB, and seconds of CPU time for decoding alone."""
    argv = (sys.executable, "-c", AUDIT, str(home))
    used = used_by(argv, cwd=ROOT, env=os.environ, timeout_s=120)
    acknowledged, found, seconds, plain, kib = used.out.split()
    assert int(acknowledged) == int(found) == rows
    return float(seconds), int(kib) / 1024, float(plain)


def test_audit_is_linear_and_flat(tmp_path: Path, figures: list[Figure]) -> None:
    """A million rows take four seconds, no more than 12 times as long as a hundred thousand, and 64 bytes a row."""
    for rows in (FEW, MANY):
        write_records(rows, tmp_path / str(rows))
    machine = CpuUse(os.getpid())
    runs = in_turns(PAIRS, lambda: audited(FEW, tmp_path / str(FEW)), lambda: audited(MANY, tmp_path / str(MANY)))
    others = machine.since_last()["others_percent"]
    times = [many[0] / few[0] for few, many in runs]
    seconds = [many[0] for _, many in runs]
    decodes = [many[0] / many[2] for _, many in runs]
    growth = [(many[1] - few[1]) * 2**20 / (MANY - FEW) for few, many in runs]
    fast = min(seconds) <= MOST_S if others < BUSY_PERCENT else median(decodes) <= MOST_DECODES
    figures.append(
        Figure(
            what="audit of 1 000 000 rows against 100 000",
            promised=f"≤ {MOST_S:g} s of CPU time (≤ {MOST_DECODES:g} × decoding its lines where other work has "
            f"{BUSY_PERCENT:g} % of the machine); ≤ {MOST_TIMES:.0f} × the time, ≤ {MOST_BYTES_A_ROW} bytes a row",
            measured=f"{min(seconds):.1f} s ({spread(decodes, 1)} × decoding, other work {others:.0f} %), "
            f"{MANY / min(seconds):,.0f} rows/s; {spread(times, 1)} ×; "
            f"{spread(growth, 0)} bytes a row, peak {median(many[1] for _, many in runs):.0f} MiB",
            kept=median(times) <= MOST_TIMES and median(growth) <= MOST_BYTES_A_ROW and fast,
            raw=f"(seconds, MiB, seconds of decoding) of each pair: {runs}",
            how=f"{PAIRS} pairs; CPU time of the audit, the fastest; memory: the largest resident set of a "
            "process of its own, 1 000 000 rows less 100 000",
        )
    )
    assert median(times) <= MOST_TIMES
    assert median(growth) <= MOST_BYTES_A_ROW
    assert fast, f"{min(seconds):.1f} s of CPU time, {spread(decodes, 1)} × decoding, other work {others:.0f} %"
