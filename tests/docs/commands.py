"""The commands that documents show: what a shell makes of them, and what becomes of pytest's in one process.

A block is run by a shell in which the programs that it names only print what they were called with. So quotes, loops
and substitutions mean here what they mean to a reader's shell, and a program that is not known is an error.
"""

import configparser
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TypeAlias

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
Words: TypeAlias = tuple[str, ...]

NOT_SHELL = ("python", "toml", "json")
"""What the other blocks are."""
COMMAND = re.compile(r"(?:\.venv/bin/)?(?:tox|pytest|python3?|pip|git|cat|podman) \S")
"""How a command within a sentence begins."""
PROGRAMS = """\
exec 3>&1 >/dev/null
for program in git kubectl mkdir pip podman pytest python python3 tox; do
    eval "$program() { printf '%q ' $program \\"\\$@\\" >&3; echo >&3; }"
done
seq() { echo 1 2; }  # two will do
cat() { /bin/cat "$@"; }
cd() { test "$1" = roachproof; }  # nothing was cloned, and commands are tried in the checkout
"""
"""Functions in place of programs: each prints what it was called with, and does nothing."""


def shown(text: str) -> Iterator[str]:
    """The blocks of shell in a page of Markdown, and the commands within its sentences; options alone are pytest's."""
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if language == "yaml":
            yield from re.findall(r"^ *-? *run: (.*)$", block, re.MULTILINE)
        elif language not in NOT_SHELL:
            assert language == "sh", f"a block of {language or 'nothing that is named'}:\n{block}"
            yield block
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    yield from re.findall(r"(?<=\n\n)(?:    .*\n)+", text)
    for span in re.findall(r"`([^`\n]+)`", text):
        if re.search(r"(?<![\w$-])[A-Z]+(?![\w-])|…", span):
            continue  # names what goes there, and nothing that is there
        if COMMAND.match(span):
            yield span
        elif re.match(r"(?:--[a-z-]+|-m) \S", span):
            yield f"pytest -c pyproject.toml {span}"


def called(block: str, home: Path, given: Mapping[str, str]) -> list[Words]:
    """What a block calls in a directory, in order. Raises ``AssertionError`` where the shell does not understand it."""
    script = PROGRAMS + block.replace(".venv/bin/", "")
    surroundings = {"PATH": "", "HOME": str(home), "LC_ALL": "C.UTF-8", **given}
    done = subprocess.run(
        ["/bin/bash", "-euo", "pipefail", "-c", script],
        cwd=home, env=surroundings, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stderr}\n{block}"
    return [tuple(shlex.split(line)) for line in done.stdout.splitlines()]


def environment(name: str, given: Sequence[str]) -> list[Words]:
    """The commands of an environment of tox, where ``given`` stands after ``--``."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(CHECKOUT / "tox.ini")
    assert f"testenv:{name}" in tox, f"tox.ini has no environment {name}"
    commands = tox[f"testenv:{name}"]["commands"].replace("{tox_root}{/}", "").strip()
    takes = re.compile(r"\{posargs:?([^}]*)\}")
    assert not given or takes.search(commands), f"the environment {name} takes nothing after --"
    filled = takes.sub(lambda found: shlex.join(given) or found[1], commands)
    return [tuple(shlex.split(line)) for line in filled.splitlines()]


def in_one_process(commands: Sequence[Words], home: Path) -> list[tuple[int, str]]:
    """How each command of pytest ends, one after the other in one process, and what it prints."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COCKROACH_"))}
    own = {"HOME": str(home), "ROACHPROOF_CACHE": str(home / "cache"), "ROACHPROOF_STATE": str(home / "state")}
    asked, argv = json.dumps(commands), [sys.executable, "-m", __name__]
    done = subprocess.run(
        argv, cwd=CHECKOUT, env={**kept, **own}, input=asked, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [(status, text) for status, text in json.loads(done.stdout.splitlines()[-1])]


def _ended(words: Words) -> tuple[int, str]:
    """The exit status of one command of pytest, and what it printed."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        status = pytest.main(["-p", "no:cacheprovider", "--capture=no", *words])
    return int(status), out.getvalue()


if __name__ == "__main__":
    print(json.dumps([_ended(tuple(words)) for words in json.load(sys.stdin)]))
