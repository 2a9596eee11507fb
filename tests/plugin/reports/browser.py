"""A real browser to look at pages with."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PATH = os.environ.get("PATH", "")
"""As it was before a test changed it."""
PATIENCE_S = 120.0
"""For a browser on a busy machine; Playwright's own is a quarter of it."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@dataclass(kw_only=True)
class Seen:
    """A page that was opened: what the browser complained about, and what it asked for beside the file itself."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def wait(self, condition: str) -> None:
        """Until the JavaScript expression is true."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.page.evaluate(condition):  # (the page's own policy forbids Playwright's way of waiting)
            assert time.monotonic() < deadline, condition
            self.page.wait_for_timeout(20)

    def drawn(self, charts: str = ".charts") -> None:
        """Scroll to the first element of charts that the selector finds, and wait until it is drawn.

        A page draws what comes near to the window, and how far down that is depends on the machine's fonts.
        """
        self.page.locator(charts).first.scroll_into_view_if_needed()
        self.wait(f"roachproof.drawn.has(document.querySelector({charts!r}))")

    def of_charts(self, number: int, expression: str) -> Any:
        """An expression over ``charts``, the uPlot instances of the element ``.charts`` of this number."""
        charts = f"roachproof.drawn.get(document.querySelectorAll('.charts')[{number}])"
        script = f"(() => {{ const charts = {charts}; return {expression}; }})()"
        return self.page.evaluate(script)


class NoBrowserError(Exception):
    """There is none; says how to get one."""


@contextmanager
def headless() -> Iterator[Any]:
    """A headless Chromium: the machine's, or else Playwright's own. Raises ``NoBrowserError``."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise NoBrowserError("playwright is not installed (dependency group test)") from error
    with sync_playwright() as playwright:
        own = Path(playwright.chromium.executable_path)
        found = next((path for name in NAMES if (path := shutil.which(name, path=PATH))), None)
        if found is None and not own.exists():
            raise NoBrowserError("no Chromium on PATH; install it, or run: playwright install chromium")
        browser = playwright.chromium.launch(
            executable_path=found,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
            timeout=1000 * PATIENCE_S,
        )
        yield browser
        browser.close()


def opening_cpu_s(chromium: Any, path: Path) -> float:
    """The CPU time that a page takes of its own process until its first chart is drawn; the least of three openings.

    What else keeps the machine busy is no part of it: the clock would count that, too.
    """

    def once() -> float:
        page = chromium.new_page(viewport={"width": 1200, "height": 900})
        page.set_default_timeout(1000 * PATIENCE_S)
        asked = page.context.new_cdp_session(page)
        asked.send("Performance.enable")

        def used() -> float:
            told = {each["name"]: each["value"] for each in asked.send("Performance.getMetrics")["metrics"]}
            return float(told["ProcessTime"])

        before = used()
        page.goto(path.as_uri())
        Seen(page=page).drawn()
        taken = used() - before
        page.close()
        return taken

    return min(once() for _ in range(3))


def opened(
    chromium: Any,
    path: Path,
    *,
    scheme: str = "light",
    width: int = 1200,
    height: int = 900,
    media: str = "screen",
) -> Seen:
    """Open a page and listen to what the browser says of it."""
    page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.set_default_timeout(1000 * PATIENCE_S)
    page.emulate_media(media=media, color_scheme=scheme)
    seen = Seen(page=page)
    page.on("console", lambda message: seen.complaints.append(message.text))
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    page.on("request", lambda request: seen.requests.append(request.url))
    page.goto(path.as_uri())
    return seen
