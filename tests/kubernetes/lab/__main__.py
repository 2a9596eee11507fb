"""``python -m tests.kubernetes.lab [OPTIONS] COMMAND …``: run a command in a Kubernetes that is there meanwhile.

It has an image of each build of CockroachDB in the cache, of the embedded control where that is installed, and of what
cuts links. The command finds the cluster by KUBECONFIG, and the images by ROACHPROOF_KUBERNETES_IMAGES and
ROACHPROOF_KUBERNETES_CUTTER_IMAGE.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from clusters.cache import cache_dir
from clusters.engines.cockroach.cache import versions
from tests.kubernetes.lab import control
from tests.kubernetes.lab.images import SHELL, Image
from tests.kubernetes.lab.inside import die_with_parent
from tests.kubernetes.lab.lab import Lab, why_not
from tests.kubernetes.lab.python import called, interpreter

CUTTER = "roachproof.local/cutter:1"


def known_images(cache: Path) -> list[Image]:
    """The shell, what cuts links, each build of CockroachDB in the cache, and the control if it is installed."""
    builds = sorted(cache.glob("cockroach/v*/cockroach"))
    of_builds = [
        Image(name=f"roachproof.local/cockroach:{build.parent.name}", programs={"/cockroach/cockroach": build})
        for build in builds
    ]
    installed = control.image()
    return [Image(name=SHELL), _cutter(cache), *of_builds, *([installed] if installed else [])]


def two_versions(cache: Path, command: Sequence[str]) -> list[str]:
    """What names the newest version in the cache and the one of its series before it, unless the command names some.

    Nothing where there are no two: then the claims that change a version say what they lack, or are the control's.
    """
    cached = versions(cache)
    pair = [version for version in cached if version.series == cached[-1].series][-2:]
    if len(pair) < 2 or any(word.startswith("--cockroach") for word in command):
        return []
    return [word for version in pair for word in ("--cockroach-version", str(version))]


def _cutter(cache: Path) -> Image:
    """Python and ``nft``."""
    (home := cache / "lab").mkdir(parents=True, exist_ok=True)
    nft = Path(shutil.which("nft") or "/usr/sbin/nft")
    return Image(name=CUTTER, programs={"/usr/bin/python": called(home), "/usr/sbin/nft": nft}, beside=[*interpreter()])


def _ended(signum: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + signum)


def _run(argv: Sequence[str], env: Mapping[str, str]) -> int:
    """Run a command to its end; its exit code as a shell tells it. Asked to end, we ask it, and it ends if we are gone.

    From here on nothing interrupts us: what comes after the command is the lab's end.
    """
    process = subprocess.Popen(argv, env=env, preexec_fn=die_with_parent)  # noqa: PLW1509, RUF100
    # Ctrl-C is heard by the command itself.
    signal.signal(signal.SIGINT, lambda *_: None)
    for signum in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, lambda signum, _: process.send_signal(signum))
    code = process.wait()
    return code if code >= 0 else 128 - code


def main() -> int:
    """The command's exit code; 3 where there can be no lab."""
    parser = argparse.ArgumentParser(prog="python -m tests.kubernetes.lab", description=__doc__)
    parser.add_argument("--machines", type=int, default=3, help="how many (default: 3)")
    parser.add_argument("--regions", type=int, default=1, help="of how many regions, each zone with one machine")
    parser.add_argument(
        "--two-versions",
        action="store_true",
        help="have COMMAND change from a version in the cache to the newest there",
    )
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if reason := why_not():
        print(f"skipped: {reason}", file=sys.stderr)
        return 3
    if not options.command:
        parser.error("no COMMAND was given")
    signal.signal(signal.SIGTERM, _ended)
    base = cache_dir(os.environ) / "lab"
    more = two_versions(base.parent, options.command) if options.two_versions else []
    images = known_images(base.parent)
    zones = [(f"r{i % options.regions + 1}", f"z{i // options.regions + 1}") for i in range(options.machines)]
    with Lab(base, images, zones) as lab:
        has = lab.directory / "images.json"
        has.write_text(json.dumps({image.name: image.where for image in images}))
        named = {"ROACHPROOF_KUBERNETES_IMAGES": str(has), "ROACHPROOF_KUBERNETES_CUTTER_IMAGE": CUTTER}
        env = {**lab.environment(), **named}
        return _run(lab.enter([*options.command, *more]), env)


if __name__ == "__main__":
    sys.exit(main())
