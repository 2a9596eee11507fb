"""The live view on a person's terminal: a line for each process below what pytest has written, out of the way whenever it writes."""

import json
import os
import re
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

LEDGER = "ledger.tsv"
RUNS = "tpcc-*.jsonl"
LAST_S = 10
"""Seconds that the tpmC shown is of: in one of them a small load finishes no new-order, or one."""
TAIL_BYTES = 1 << 18
"""As much of a ledger's end is read: two seconds of some 3000 writes a second."""
FRESH_S = 3.0
"""A ledger that was not written to for so long tells nothing of the last second."""
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """Shares the terminal of pytest's reporter between it and the live view.

    The view stands on the lines below the cursor. Before pytest writes, it is erased and the cursor put back to where pytest
    left it, also in the middle of a line.
    """

    def __init__(self, writer: Any, descriptor: int) -> None:
        from rich.console import Console
        from rich.live import Live

        self._descriptor = descriptor
        self._file = os.fdopen(os.dup(descriptor), "w", encoding="utf-8", errors="replace")
        self._console = Console(file=self._file, force_terminal=True, highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False)  # fmt: skip
        self._lock = threading.RLock()
        self._open = ""
        """What pytest wrote on the line that it has not ended yet."""
        self._shown = False
        self._writer = writer
        self._original = self._writer._file
        self._writer._file = _Shared(self, self._original)

    def show(self, said: Sequence[tuple[str, Mapping[str, Any]]], elapsed_s: float) -> None:
        """Show what each process said last; nothing where none said anything."""
        with self._lock, suppress(OSError):  # a terminal that was closed
            if self._writer._file is self._original:
                return
            if not said:
                self._clear()
                return
            self._console.size = self._size()
            if not self._shown:
                if self._open:
                    self._file.write("\n")
                self._live.start()
                self._console.show_cursor(True)  # rich hides it, and a killed pytest could not show it again
                self._shown = True
            self._live.update(_view(said, elapsed_s), refresh=True)

    def write(self, text: str) -> int:
        """Write for pytest."""
        with self._lock:
            self._clear()
            written: int = self._original.write(text)
            self._original.flush()
            self._open = re.split(r"[\r\n]", self._open + text)[-1]
            return written

    def close(self) -> None:
        """Erase the view, and let pytest write to its terminal itself again."""
        with self._lock:
            self._writer._file = self._original
            with suppress(OSError):
                self._clear()
                self._file.close()

    def _size(self) -> Any:
        from rich.console import ConsoleDimensions

        size = os.get_terminal_size(self._descriptor)
        return ConsoleDimensions(size.columns or 80, size.lines or 24)

    def _clear(self) -> None:
        if not self._shown:
            return
        from rich.cells import cell_len

        self._shown = False
        self._live.stop()
        at = cell_len(ESCAPE.sub("", self._open))
        if 0 < at < self._console.size.width:
            self._file.write(f"\x1b[1A\x1b[{at}C")
        self._file.flush()


class _Shared:
    """The file that pytest's reporter writes to."""

    def __init__(self, terminal: Terminal, original: Any) -> None:
        self._terminal = terminal
        self._original = original

    def write(self, text: str) -> int:
        return self._terminal.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


def _view(said: Sequence[tuple[str, Mapping[str, Any]]], elapsed_s: float) -> "RenderableType":
    from rich.table import Table
    from rich.text import Text

    from plugin.reports.progress import time_left

    grid = Table.grid(padding=(0, 2), expand=False)
    for _ in range(3):
        grid.add_column(no_wrap=True, overflow="ellipsis")
    now = time.monotonic()
    for index, (worker, latest) in enumerate(said):
        clock = f"{elapsed_s:4.0f} s" if index == 0 else ""
        name = " ".join(filter(None, ["" if worker == "main" else worker, latest["test"]]))
        arm = Path(latest["arm"]) if latest.get("arm") else None
        rate = last_second(arm) if arm else None
        tpmc = last_tpmc(arm) if arm and rate is None else None
        told = [
            latest["stage"],
            time_left(latest, now),
            f"{rate:.0f} writes/s" if rate is not None else "",
            f"{tpmc:.0f} tpmC" if tpmc is not None else "",
        ]
        grid.add_row(clock, Text(name, style="bold"), Text(", ".join(filter(None, told))))
    return grid


def last_second(arm: Path) -> float | None:
    """Acknowledged writes of the arm's last whole second, from the end of its ledger; ``None`` while nothing is being written."""
    try:
        with (arm / LEDGER).open("rb") as file:
            status = os.fstat(file.fileno())
            if time.time() - status.st_mtime > FRESH_S:
                return None
            file.seek(max(0, status.st_size - TAIL_BYTES))
            lines = file.read().split(b"\n")
    except OSError:
        return None
    ticks = [index for index, line in enumerate(lines) if line.startswith(b"S\t")]
    if len(ticks) < 2 or any(line.startswith(b"E\t") for line in lines[-3:]):
        return None
    first, last = ticks[-2:]
    # An answered write is one that saw nothing: the field after it is empty (``plugin.evidence.records``).
    writes = sum(line.startswith(b"O\t") and line.endswith(b"\t") for line in lines[first:last])
    try:
        seconds = (int(lines[last].split(b"\t")[1]) - int(lines[first].split(b"\t")[1])) / 1e6
    except (ValueError, IndexError):
        return None
    return writes / seconds if seconds > 0 else None


def last_tpmc(arm: Path) -> float | None:
    """New-orders a minute over the last seconds of the TPC-C run that is going on; ``None`` while none is."""
    orders: dict[int, int] = {}
    for path in arm.glob(RUNS):
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                if time.time() - status.st_mtime > FRESH_S:
                    continue
                file.seek(max(0, status.st_size - TAIL_BYTES))
                lines = file.read().split(b"\n")
            for line in lines[-LAST_S - 1 :]:
                with suppress(ValueError, KeyError, TypeError):
                    second = json.loads(line)
                    one = second["types"]["new_order"]
                    orders[second["t"]] = orders.get(second["t"], 0) + one["ok"] + one["rolled_back"]
        except OSError:
            continue
    last = sorted(orders)[-LAST_S:]
    return 60 * sum(orders[t] for t in last) / len(last) if last else None
