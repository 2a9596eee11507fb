"""The suite's own image, as ``Containerfile`` makes it, of this checkout: for load generators and the gate as a Job.

It changes with every line of the suite, so that it is given to the machines of a lab that runs, not kept with others.
The control's packages are not in it: nodes that are its servers have an image of their own.
"""

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from fixtures.workloads.relay import PACKAGES, ROOT
from tests.docs import containerfile
from tests.kubernetes.lab.images import PATH, Image
from tests.kubernetes.lab.python import called, interpreter, packages

NAME = "roachproof.local/suite:1"
_SUITE = (*PACKAGES, "tests/claims", "conftest.py", "pyproject.toml", "tox.ini")
_LEFT_OUT = "control"


def give(lab: Path, work: Path) -> str:
    """Have all machines of the lab in this directory have the image; its name."""
    python, (home,) = called(work), containerfile.of("WORKDIR")
    programs = {f"{home}/{part}": ROOT / part for part in _SUITE}
    image = Image(
        name=NAME,
        programs={**programs, "/usr/bin/python": python},
        beside=[*interpreter(), *packages(_wheels())],
        config=config(),
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


def config() -> Mapping[str, object]:
    """What ``Containerfile`` says of a container of it: what runs, where, as whom, and how it is told to end."""
    (home,), (user,), (stop,), (runs,) = map(containerfile.of, ("WORKDIR", "USER", "STOPSIGNAL", "ENTRYPOINT"))
    told = {argument.rstrip("=") for argument in containerfile.of("ARG")}
    environment = [word for line in containerfile.of("ENV") for word in line.split()]
    for argument in told:
        environment = [word.replace(f"${argument}", "lab") for word in environment]
    return {
        "Env": [PATH, *environment],
        "Entrypoint": json.loads(runs),
        "Cmd": [],
        "WorkingDir": home,
        "User": user,
        "StopSignal": stop,
    }


def _wheels() -> list[str]:
    """The requirements of the dependency groups that the image has, but the control's."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]

    def of(group: str) -> Iterator[str]:
        for one in groups[group]:
            if isinstance(one, str):
                yield one
            else:
                yield from of(one["include-group"])

    installs = re.findall(r"--group (\S+)", " ".join(containerfile.of("RUN")))
    return sorted({wheel for group in installs if group != _LEFT_OUT for wheel in of(group)})
