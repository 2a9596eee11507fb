"""Why a process could not be started, in words that name the way out."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clusters.errors import BadInput, HarnessError
from clusters.executables import why_not


def refusal(program: str, step: str, number: int, path: str) -> Exception:
    """The error to raise for a process that could not be started at a ``step`` of ``spawn``."""
    if step == "closed":
        return BadInput(
            f"{program}: cannot be run as the user nobody, who may not pass {path}. This program refuses root, and "
            "user namespaces are forbidden here: run the suite as an ordinary user, or from a place that others can "
            f"read (chmod o+x {path})"
        )
    if step == "exec" and (why := why_not(Path(program), number)):
        return BadInput(why)
    if step == "prepare" or number == 0:
        return HarnessError(f"cannot start {program}: {path}")
    reason = os.strerror(number)
    if number in (errno.ENOSPC, errno.EDQUOT):
        reason += "; free some space or use another directory"
    return HarnessError(f"cannot start {program}: {step} {path}: {reason}")


@contextmanager
def refused(what: str) -> Iterator[None]:
    """Raise ``disk_error`` where the machine does not let us write."""
    try:
        yield
    except OSError as error:
        raise disk_error(what, error) from error


def disk_error(what: str, error: OSError) -> HarnessError:
    """The error to raise when the machine did not let us write: what was being done, where, and why not."""
    way_out = "; free some space or use another directory" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return HarnessError(f"cannot {what}: {error.filename or ''}: {error.strerror}{way_out}")
