"""The audit reads a long history in one stream: time grows with its length, memory by bytes a row."""

import os
import sys
from pathlib import Path
from statistics import median

from fixtures.workloads.ledger.records import FINAL_HEADER, HISTORY_HEADER, payload
from tests.benchmarks.measuring import ROOT, Figure, in_turns, spread, used_by

FEW, MANY = 100_000, 1_000_000
MOST_TIMES = 12.0
"""Ten times the rows may take ten times as long, and a fifth more."""
MOST_BYTES_A_ROW = 64
"""The columns of ``Rows`` (the ledger's ``row_histories``) take some 26 bytes a row, half as much again where they have
grown beyond it."""
PAIRS = 3
BUCKETS, SEED = 9, 5

AUDIT = """
import sys, time
from pathlib import Path
from fixtures.workloads.ledger.records import read_final, read_history
from fixtures.workloads.ledger.judge.audit import audit
history, final = map(Path, sys.argv[1:])
began = time.process_time()
with history.open() as before, final.open() as after:
    found = audit(read_history(before), read_final(after), seed=5, buckets=9)
assert not found.problems, found.problems
assert not any(finding.count for finding in found.findings.values()), found.findings
used = time.process_time() - began
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(found.acknowledged, found.found, used, peak.split()[1])
"""


def write_records(rows: int, home: Path) -> tuple[Path, Path]:
    """A lawful history: every row inserted, every tenth updated, every tenth read; and the final read of it."""
    history, final = home / f"{rows}.tsv", home / f"{rows}-final.tsv"
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
                file.write(f"R\t{key}\t{version}\t{payload(SEED, key, version)}\n")
            file.write(f"D\t{t + 20}\t{bucket}\t{len(keys)}\n")
    return history, final


def test_audit_is_linear_and_flat(tmp_path: Path, figures: list[Figure]) -> None:
    """A million rows take no more than 12 times as long as a hundred thousand, and 64 bytes a row."""

    def audited(rows: int) -> tuple[float, float]:
        """Seconds of CPU time and MiB."""
        history, final = tmp_path / f"{rows}.tsv", tmp_path / f"{rows}-final.tsv"
        argv = (sys.executable, "-c", AUDIT, str(history), str(final))
        used = used_by(argv, cwd=ROOT, env=os.environ, timeout_s=120)
        acknowledged, found, seconds, kib = used.out.split()
        assert int(acknowledged) == int(found) == rows
        return float(seconds), int(kib) / 1024

    for rows in (FEW, MANY):
        write_records(rows, tmp_path)
    runs = in_turns(PAIRS, lambda: audited(FEW), lambda: audited(MANY))
    times = [many[0] / few[0] for few, many in runs]
    seconds = [many[0] for _, many in runs]
    growth = [(many[1] - few[1]) * 2**20 / (MANY - FEW) for few, many in runs]
    figures.append(
        Figure(
            what="audit of 1 000 000 rows against 100 000",
            promised=f"≤ {MOST_TIMES:.0f} × the time, ≤ {MOST_BYTES_A_ROW} bytes a row",
            measured=f"{spread(times, 1)} ×; {median(seconds):.1f} s, {MANY / median(seconds):,.0f} rows/s; "
            f"{spread(growth, 0)} bytes a row, peak {median(many[1] for _, many in runs):.0f} MiB",
            kept=median(times) <= MOST_TIMES and median(growth) <= MOST_BYTES_A_ROW,
            raw=f"(seconds, MiB) of each pair: {runs}",
            how=f"{PAIRS} pairs; CPU time of the audit, files read line by line; memory: the largest resident set of a "
            "process of its own, 1 000 000 rows less 100 000",
        )
    )
    assert median(times) <= MOST_TIMES
    assert median(growth) <= MOST_BYTES_A_ROW
