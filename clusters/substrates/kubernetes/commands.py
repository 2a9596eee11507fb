"""What a node's first process is told to run, and commands beside it: as text for a POSIX shell; what they answer."""

import base64
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from clusters.clocks import Reading
from clusters.errors import HarnessError
from clusters.model import ProcessSpec
from clusters.substrates.kubernetes.manifests import SCRIPT

_NO_LIMIT = 1 << 60
"""What control groups of the first version say where memory is not limited is above this."""
CLOCK = "cat /proc/sys/kernel/random/boot_id; date +%s.%N"
"""What tells the clock of the machine that a container runs on."""


def order(spec: ProcessSpec) -> str:
    """A script that becomes the process: it ends as that does."""
    output = shlex.quote(str(spec.output))
    began = f"mkdir -p {shlex.quote(str(spec.output.parent))} && cd {shlex.quote(str(spec.cwd))} || exit 126"
    return f"{began}\nexec {_clean(spec.env, spec.argv)} >>{output} 2>&1 </dev/null\n"


def command(argv: Sequence[str], *, env: Mapping[str, str], cwd: PurePath, mark: str) -> Sequence[str]:
    """A command line for a container: what it leaves running is known by its mark."""
    script = f"cd {shlex.quote(str(cwd))} || exit 126; exec {_clean({'ROACHPROOF_RUN': mark, **env}, argv)}"
    return ("/bin/sh", str(SCRIPT), "bring", mark, script)


def reading(said: str, name: str) -> Reading:
    """What a container answers to ``CLOCK``. Raises ``HarnessError`` for what is no time."""
    try:
        boot, seconds = said.split()
        return Reading(clock=f"boot {boot}", seconds=float(seconds))
    except ValueError:
        raise HarnessError(
            f"the clock of {name} cannot be read to the nanosecond ({said.strip()}); use an image whose date knows %N"
        ) from None


def limits(said: str, name: str) -> Mapping[str, float]:
    """What a container answers of its control group, by the names of ``NodeResources``; those that there are.

    Raises ``HarnessError`` for what is none.
    """
    try:
        quota, period, memory = said.split()
        found = {} if quota in ("max", "-1") else {"cpus": int(quota) / int(period)}
        if memory != "max" and int(memory) < _NO_LIMIT:
            found["memory_mib"] = int(memory) / (1 << 20)
    except ValueError:
        raise HarnessError(f"the limits of {name} cannot be read: {said.strip()}") from None
    return found


def exit_code(code: int) -> int:
    """A shell's exit code as the rest of the suite has it: negative for a signal."""
    return 128 - code if code > 128 else code


def written(path: PurePath, content: bytes) -> str:
    """Commands that write a file (0600) in one step: whoever looks sees all of it or what was there before."""
    fresh, there = (shlex.quote(str(name)) for name in (path.with_name(f".{path.name}.new"), path))
    encoded = base64.b64encode(content).decode()
    parent = shlex.quote(str(path.parent))
    return f"umask 077; mkdir -p {parent} && printf %s {encoded} | base64 -d >{fresh} && mv -f {fresh} {there}"


def _clean(env: Mapping[str, str], argv: Sequence[str]) -> str:
    return shlex.join(("env", "-i", *(f"{name}={value}" for name, value in env.items()), *argv))
