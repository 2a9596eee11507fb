"""The two ways in which something other than the database can be at fault."""

from collections.abc import Iterator
from contextlib import contextmanager


class BadInput(Exception):  # noqa: N818 - named for what it is, as pytest's UsageError is
    """Something the user gave cannot be used: pytest exits with status 4.

    The message says the value, the constraint it breaks and the way out, and names file and key where there are any.
    """


class HarnessError(Exception):
    """The harness or the machine failed, so nothing was learnt about the database: status 7.

    The message says what was being done, what was seen (the last value, the last error, the log's tail), and how long
    it was waited for.
    """


class TimedOut(HarnessError):  # noqa: N818 - what happened
    """What was waited for did not come in time: evidence, where that is the database's own recovery."""


class CommandTimedOut(HarnessError):  # noqa: N818 - what happened
    """A helper command did not end in time. The message has its last words."""


class CommandFailed(HarnessError):  # noqa: N818 - what happened
    """A helper command ended with an exit code of its own that is not 0. The message has what it said."""


class NotDrained(HarnessError):  # noqa: N818 - what happened
    """A node did not hand over its work: servers refused that, or failed in it. Evidence, where that is what is tried.

    What did not end in time is ``TimedOut``.
    """


class NodeDied(Exception):  # noqa: N818 - what happened
    """A node of a running cluster ended by itself, which no database that survives does: the claim is refuted.

    Not raised for a node that dies while the cluster is first started, nor for one that the system killed (SIGKILL that
    nobody here sent, as when memory runs out): those are ``HarnessError``.
    """


@contextmanager
def of_a_node_that_has_run() -> Iterator[None]:
    """Raise ``HarnessError`` in the place of ``BadInput``: what a node has run with is no bad input any more.

    Where a claim is under way bad input would end it with 4, or be taken for what a new program does.
    """
    try:
        yield
    except BadInput as error:
        raise HarnessError(str(error)) from error


def first_of(error: Exception, *kinds: type[Exception]) -> Exception | None:
    """The first error of a group, or the error itself, where all of it is of these kinds; else ``None``.

    For what a task group raises: whatever is raised in an ``except*`` clause Python before 3.11.4 puts into a group.
    """
    if not isinstance(error, ExceptionGroup):
        return error if isinstance(error, kinds) else None
    found = [first_of(one, *kinds) for one in error.exceptions]
    return found[0] if all(found) else None
