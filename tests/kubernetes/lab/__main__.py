"""``python -m tests.kubernetes.lab [--machines N] COMMAND …``: run a command in a Kubernetes that is there meanwhile.

It has an image of each build of CockroachDB in the cache, and one of the PostgreSQL control. The command finds the
cluster by KUBECONFIG, and which image has which program by ROACHPROOF_KUBERNETES_IMAGES.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import FrameType
from typing import NoReturn

from clusters.cache import cache_dir
from clusters.engines.postgres import binaries
from clusters.errors import BadInput
from tests.kubernetes.lab.images import SHELL, Image
from tests.kubernetes.lab.lab import Lab, why_not


def control() -> list[Image]:
    """The PostgreSQL control with the environment that has Patroni, where each has it here; none where it is not."""
    try:
        found = binaries.find()
    except BadInput:
        return []
    interpreter, library = Path(sys.executable).resolve(), Path(sysconfig.get_path("stdlib"))
    has = (Path(sys.prefix), interpreter, library, found.bin_dir.parent, found.etcd)
    name = f"roachproof.local/control:{found.postgres_version}"
    return [Image(name=name, programs={str(path): path for path in has})]


def known_images(cache: Path) -> list[Image]:
    """The shell, each build of CockroachDB that is in the cache, and the control."""
    builds = sorted(cache.glob("cockroach/v*/cockroach"))
    of_builds = [
        Image(name=f"roachproof.local/cockroach:{build.parent.name}", programs={"/cockroach/cockroach": build})
        for build in builds
    ]
    return [Image(name=SHELL), *of_builds, *control()]


def _ended(signum: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + signum)


def main() -> int:
    """The command's exit code; 3 where there can be no lab."""
    parser = argparse.ArgumentParser(prog="python -m tests.kubernetes.lab", description=__doc__)
    parser.add_argument("--machines", type=int, default=3, help="how many (default: 3)")
    parser.add_argument("--regions", type=int, default=1, help="of how many regions, each zone with one machine")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if reason := why_not():
        print(f"skipped: {reason}", file=sys.stderr)
        return 3
    signal.signal(signal.SIGTERM, _ended)
    base = cache_dir(os.environ) / "lab"
    images = known_images(base.parent)
    zones = [(f"r{i % options.regions + 1}", f"z{i // options.regions + 1}") for i in range(options.machines)]
    with Lab(base, images, zones) as lab:
        has = lab.directory / "images.json"
        has.write_text(json.dumps({image.name: image.where for image in images}))
        env = {**lab.environment(), "ROACHPROOF_KUBERNETES_IMAGES": str(has)}
        return subprocess.run(lab.enter(options.command), env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
