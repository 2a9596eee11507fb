"""The live view on a person's terminal: a line for each process, below what pytest has written."""

import os
import re
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """Shares the terminal of pytest's reporter between it and the live view.

    The view stands on the lines below the cursor. Before pytest writes, it is erased and the cursor put back to where
    pytest left it, also in the middle of a line.
    """

    def __init__(self, writer: Any, descriptor: int) -> None:
        from rich.console import Console
        from rich.live import Live

        self._descriptor = descriptor
        self._file = os.fdopen(os.dup(descriptor), "w", encoding="utf-8", errors="replace")
        self._console = Console(file=self._file, force_terminal=True, highlight=False)
        self._live = Live(
            console=self._console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        self._lock = threading.RLock()
        self._open = ""
        """What pytest wrote on the line that it has not ended yet."""
        self._shown = False
        self._writer = writer
        self._original = self._writer._file
        self._writer._file = _Shared(self, self._original)

    def show(self, lines: Sequence[str]) -> None:
        """Show these lines, each cut off where the terminal ends; nothing where there are none."""
        from rich.console import Group
        from rich.text import Text

        with self._lock, suppress(OSError):  # a terminal that was closed
            if self._writer._file is self._original:
                return
            if not lines:
                self._clear()
                return
            self._console.size = self._size()
            if not self._shown:
                if self._open:
                    self._file.write("\n")
                self._live.start()
                self._console.show_cursor(True)  # rich hides it, and a killed pytest could not show it again
                self._shown = True
            self._live.update(Group(*(Text(line, no_wrap=True, overflow="ellipsis") for line in lines)), refresh=True)

    def tell(self, text: str) -> None:
        """Write lines that stay, above the view."""
        with self._lock, suppress(OSError):
            if self._writer._file is self._original:
                return
            self._clear()
            self._original.flush()
            self._file.write(text)
            self._file.flush()
            self._open = ""

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
            if self._writer._file is self._original:
                return
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
