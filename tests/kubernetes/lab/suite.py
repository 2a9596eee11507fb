"""The suite's own image, as ``Containerfile`` makes it, of this checkout: for load generators.

It changes with every line of the suite, so that it is given to the machines of a lab that runs, not kept with others.
"""

import subprocess
from pathlib import Path

from fixtures.workloads.relay import PACKAGES, ROOT
from tests.kubernetes.lab.images import Image
from tests.kubernetes.lab.python import called, interpreter, packages

NAME = "roachproof.local/suite:1"
_WHEELS = ("asyncpg", "uvloop", "hdrhistogram", "msgspec", "psutil", "pytest")
"""What client programs need of the dependency group ``run``."""


def give(lab: Path, work: Path) -> str:
    """Have all machines of the lab in this directory have the image; its name."""
    python = called(work)
    programs = {f"/suite/{package}": ROOT / package for package in PACKAGES}
    image = Image(
        name=NAME, programs={**programs, "/usr/bin/python": python}, beside=[*interpreter(), *packages(_WHEELS)]
    )
    image.write(archive := work / "suite.tar")
    for socket in sorted(lab.glob("machine-*/containerd.sock")):
        line = [
            "ctr",
            "-a",
            str(socket),
            "-n",
            "k8s.io",
            "images",
            "import",
            "--snapshotter",
            "overlayfs",
            str(archive),
        ]
        subprocess.run(line, stdout=subprocess.DEVNULL, check=True)
    archive.unlink()
    return NAME
