"""What is made for a cluster before its supervisor starts."""

import errno
import os
from pathlib import Path
from typing import Any

from clusters.errors import BadInput
from clusters.substrates.processes import cgroups, cleanup, leases
from clusters.substrates.processes.start_errors import disk_error


def found(
    cluster: str,
    directory: Path,
    *,
    subnet: leases.Subnet,
    keep: bool,
    keep_logs: Path | None,
    device: str | None = None,
) -> dict[str, Any]:
    """Make the cluster's control groups and directories; returns the record by which all of it can be removed.

    ``cgroups`` in it is empty where none can be made. ``device`` names the host's end of the cluster's network, if it
    is to have one. Raises ``BadInput`` if we may not write there, ``HarnessError`` if the disk refuses.
    """
    config: dict[str, Any] = {
        "id": cluster,
        "directory": str(directory),
        "keep": keep,
        "keep_logs": None if keep_logs is None else str(keep_logs.resolve()),
        "cgroups": cgroups.parents(),
        "device": device,
    }
    # Before anything exists: whoever finds the lock free knows what to remove.
    subnet.record(config)
    try:
        cgroups.create(config["cgroups"], cluster)
    except OSError:
        cgroups.remove(config["cgroups"], cluster)
        config["cgroups"] = {}
    # As root, others may pass (not look): nodes that run as nobody must reach their homes.
    passage = 0o711 if os.geteuid() == 0 else 0o700
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        for place, mode in ((directory, passage), ("nodes", passage), ("scratch", 0o700), ("run", 0o700)):
            made = directory / place
            made.mkdir()
            made.chmod(mode)
            if made == directory:
                directory.joinpath(cleanup.MARKER).write_text(cluster)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EEXIST, errno.ENOTDIR, errno.EPERM, errno.EROFS):
            raise BadInput(
                f"{directory.parent}: clusters cannot be kept there ({error.strerror}: {error.filename}); "
                "name a directory you may write to"
            ) from error
        raise disk_error(f"make the directory of {cluster}", error) from error
    return config
