"""Makes the documents' pictures again: ``tox -e pictures``.

The README's are of the stored run in ``docs/sample-run.tar.xz``; the growth curves are drawn from what was measured.

``tox -e pictures -- --sample RUN`` puts another run into the sample's place first.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from clusters.archives import unpack
from plugin.evidence.run_seal import not_tested_of, seal_run, undecided_of
from plugin.evidence.store import TRIAL_FILE, seal
from plugin.options import TOX
from plugin.reports import allure_html
from plugin.reports.page_file import JUDGED_AGAIN
from tests.docs import growth_curve
from tests.plugin.reports.browser import NoBrowserError, headless

CHECKOUT = Path(__file__).parents[2]
DOCS = CHECKOUT / "docs"
SAMPLE = DOCS / "sample-run.tar.xz"
LEFT_OUT = ("logs", "progress", "allure-results", "allure-report", "report.html")
"""Of a stored run: what is made from the evidence, and the nodes' own words, of which a pass shows none."""
COLUMNS = 100
CLAIM = "survivability"
"""The claim that is shown."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the pictures, and say which."""
    parser = argparse.ArgumentParser(prog="tox -e pictures --", description="The documents' pictures.")
    parser.add_argument("--sample", type=Path, metavar="RUN", help="make this run directory the sample")
    chosen = parser.parse_args(arguments)
    if chosen.sample:
        keep(chosen.sample)
    print(growth_curve.draw().relative_to(CHECKOUT))  # it needs no browser
    try:
        with tempfile.TemporaryDirectory() as scratch, headless() as browser:
            run = unpacked(SAMPLE, Path(scratch))
            judge(run)
            for picture in (terminal(browser, run), page(browser, run), allure(browser, run)):
                print(picture.relative_to(CHECKOUT))
    except NoBrowserError as missing:
        print(f"ERROR: {missing}", file=sys.stderr)
        return 4
    return 0


def keep(run: Path) -> None:
    """Pack a stored run without what the pictures do not need, sealed anew."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / run.absolute().name
        shutil.copytree(run, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
        for trial in copy.rglob(TRIAL_FILE):
            seal(trial.parent)
        seal_run(copy, undecided_of(copy), not_tested_of(copy))
        with tarfile.open(SAMPLE, "w:xz", preset=9) as archive:
            archive.add(copy, copy.name)


def unpacked(archive: Path, into: Path) -> Path:
    """The run directory that an archive holds."""
    with tarfile.open(archive) as file:
        unpack(file, into)
    return next(into.iterdir())


def judge(place: Path, *more: str) -> str:
    """What pytest says of stored evidence, colours and all; the page is made on the way."""
    command = [sys.executable, "-m", "pytest", f"--judge={place}", "--color=yes", *more]
    done = subprocess.run(
        command, cwd=CHECKOUT, env={**os.environ, "COLUMNS": str(COLUMNS)}, capture_output=True, text=True, check=False
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"--judge={place} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout.rstrip()


def terminal(browser: Any, run: Path) -> Path:
    """The verdict on one claim, as pytest writes it."""
    from io import StringIO

    from rich.console import Console
    from rich.terminal_theme import MONOKAI
    from rich.text import Text

    place = run / "claims" / CLAIM
    said = f"$ {TOX} -e gate -- --judge={place}\n{judge(place)}".replace(str(run), f".roachproof/{run.name}")
    console = Console(record=True, width=COLUMNS, file=StringIO())
    console.print(Text.from_ansi(said))
    frame = (
        "<!doctype html><meta charset=utf-8><style>{stylesheet} body {{ margin: 0; padding: 16px; width: max-content;"
        " color: {foreground}; background: {background}; }} pre {{ margin: 0; font: 13px/1.35 monospace; }}</style>"
        "<pre>{code}</pre>"
    )
    html = console.export_html(theme=MONOKAI, code_format=frame)

    def show(view: Any) -> None:
        view.set_content(html)

    return picture(browser, "terminal", show, size=(600, 400), whole="body")


def page(browser: Any, run: Path) -> Path:
    """The upper part of the interactive page's first trial, with the pointer on its time axis."""

    def show(view: Any) -> None:
        view.goto((run / JUDGED_AGAIN).as_uri())
        view.locator("section.trial").first.evaluate("element => element.scrollIntoView()")
        chart = view.locator(".charts .u-over").first.bounding_box()
        view.mouse.move(chart["x"] + chart["width"] * 0.55, chart["y"] + chart["height"] * 0.5)

    return picture(browser, "page", show, size=(1200, 1150))


def allure(browser: Any, run: Path) -> Path:
    """A claim in Allure's HTML, its checks as steps."""
    output = run / "allure-report"
    print(allure_html.build(run, output))

    def show(view: Any) -> None:
        view.goto((output / "index.html").as_uri())
        claim_in_allure(view)

    return picture(browser, "allure", show, size=(1200, 1150))


def claim_in_allure(view: Any) -> None:
    """Open the claim's test in Allure's report, and in it the checks."""
    branches = ("Survivability", "Node disruptions (RQ4)", "One of three nodes is killed")
    leaf = view.get_by_test_id("tree-leaf").first
    for branch, within in pairwise([*(view.get_by_text(name, exact=True).last for name in branches), leaf]):
        unfold(branch, within)
    leaf.click()
    view.get_by_text("Checks: ").last.click()
    view.get_by_text("Description", exact=True).last.evaluate("element => element.scrollIntoView()")


def unfold(branch: Any, within: Any) -> None:
    """Click until what is within is seen: a click that comes before the page listens is lost."""
    from playwright.sync_api import TimeoutError as TooLate

    for _ in range(20):
        if within.is_visible():
            return
        branch.click()
        with suppress(TooLate):
            within.wait_for(timeout=5000)


def picture(browser: Any, name: str, show: Callable[[Any], None], *, size: tuple[int, int], whole: str = "") -> Path:
    """A picture of what is shown: of an element that is ``whole``, or of a window of this size in CSS pixels."""
    view = browser.new_page(
        viewport={"width": size[0], "height": size[1]}, color_scheme="light", device_scale_factor=1.5
    )
    show(view)
    view.wait_for_timeout(500)  # what fades in has done so
    target = DOCS / f"{name}.png"
    if whole:
        view.locator(whole).screenshot(path=target)
    else:
        view.screenshot(path=target)
    view.close()
    return target


if __name__ == "__main__":
    sys.exit(main())
