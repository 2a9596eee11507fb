"""Which release of this suite runs: its version by the tag of its checkout, and its commit."""

import os
import re
import subprocess
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

VARIABLE = "ROACHPROOF_REVISION"
"""Says in an image, which has no repository, what ``git`` would say in the checkout."""
DESCRIBE = ("describe", "--tags", "--match=v[0-9]*", "--always", "--long", "--abbrev=12", "--dirty=+")


@lru_cache
def release(checkout: Path = Path(__file__).parents[1]) -> str:
    """``0.2.0 (9f183c246b5e)``; ``+`` follows the commit of a checkout that was changed since.

    Where no tag of a version is at the commit, the version is the one that ``pyproject.toml`` has: of what comes next.
    """
    described = _described(checkout) if (checkout / ".git").exists() else os.environ.get(VARIABLE, "")
    tag, _, commit = described.rpartition("-g")
    version = tag.removesuffix("-0").removeprefix("v") if tag.endswith("-0") else _next(checkout)
    return f"{version} ({commit})" if commit else version


def _described(checkout: Path) -> str:
    with suppress(OSError, subprocess.SubprocessError):
        command = ["git", "-C", str(checkout), *DESCRIBE]
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    return ""


def _next(checkout: Path) -> str:
    with suppress(OSError):
        found = re.search(r'^version = "(.*)"$', (checkout / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
        return found[1] if found else "unknown"
    return "unknown"
