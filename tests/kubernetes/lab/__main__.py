"""``python -m tests.kubernetes.lab [OPTIONS] COMMAND …``: run a command in a Kubernetes that is there meanwhile.

It has an image of each build of CockroachDB in the cache, or of another that can be had where that has none, of the
embedded control where that is installed, and of what cuts links. The command finds the cluster by KUBECONFIG, and the
images by ROACHPROOF_KUBERNETES_IMAGES and ROACHPROOF_KUBERNETES_CUTTER_IMAGE.
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
from clusters.engines import Wanted
from clusters.engines.cockroach.cache import versions
from clusters.engines.cockroach.engine import find
from clusters.errors import BadInput
from clusters.known import CHOICES, SUBJECT
from plugin.options import AUTO
from plugin.run import DOWNLOAD_S
from tests.kubernetes.at_hand import LAB
from tests.kubernetes.lab import control
from tests.kubernetes.lab.hyperkube import NotBuilt
from tests.kubernetes.lab.images import SHELL, Image
from tests.kubernetes.lab.inside import die_with_parent
from tests.kubernetes.lab.lab import Lab, why_not
from tests.kubernetes.lab.python import called, interpreter

CUTTER = "roachproof.local/cutter:1"
CONTROL = "postgres"
_BUILDS = "cockroach/v*/cockroach"


def sought(cache: Path, command: Sequence[str]) -> Mapping[str, Path]:
    """One build of CockroachDB that can be had, by its version, where the cache has none and the command takes that.

    It is looked for as for a run, in the same time. Here: the network of the lab has no way out, and so no run of there
    downloads one.
    """
    if versions(cache) or _engine(command) not in (SUBJECT, AUTO):
        return {}
    print(f"no build of CockroachDB is in {cache}: looking for one", file=sys.stderr)
    try:
        found = find(Wanted(download_s=DOWNLOAD_S))
    except BadInput as error:
        print(f"the lab has no CockroachDB: {error}", file=sys.stderr)
        return {}
    return {found.version: found.program}


def known_images(cache: Path, command: Sequence[str]) -> list[Image]:
    """The shell, what cuts links, builds of CockroachDB, and the control if it is installed."""
    builds = sought(cache, command) or {build.parent.name: build for build in sorted(cache.glob(_BUILDS))}
    of_builds = [
        Image(name=f"roachproof.local/cockroach:{version}", programs={"/cockroach/cockroach": build})
        for version, build in builds.items()
    ]
    installed = control.image()
    return [Image(name=SHELL), _cutter(cache), *of_builds, *([installed] if installed else [])]


def two_versions(cache: Path, command: Sequence[str]) -> list[str]:
    """What names two versions to change between, unless the command names some.

    The newest in the cache and the one of its series before it. Where there are no two the control's, if the command
    takes that; where it takes CockroachDB alone nothing: then the claims that change a version say what they lack.
    """
    if any(word.startswith(tuple(filter(None, choice))) for word in command for choice in CHOICES.values()):
        return []
    engine = _engine(command)
    cached = versions(cache)
    builds = [version for version in cached if version.series == cached[-1].series][-2:]
    if len(builds) == 2 and engine in (SUBJECT, AUTO):
        return _named(SUBJECT, *map(str, builds))
    if engine in (AUTO, CONTROL) and (pair := control.pair()):
        return ["--engine", CONTROL, *_named(CONTROL, *pair)]
    return []


def _engine(command: Sequence[str]) -> str:
    """Which engine a command of pytest names."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--engine", default=SUBJECT)
    return str(parser.parse_known_args(command)[0].engine)


def _named(engine: str, *chosen: str) -> list[str]:
    return [word for version in chosen for word in (CHOICES[engine].version, version)]


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
    """The command's exit code; 3 where there can be no lab, for a reason that is printed."""
    parser = argparse.ArgumentParser(prog="python -m tests.kubernetes.lab", description=__doc__)
    parser.add_argument("--machines", type=int, default=3, help="how many (default: 3)")
    parser.add_argument("--regions", type=int, default=1, help="of how many regions, each zone with one machine")
    parser.add_argument(
        "--two-versions",
        action="store_true",
        help="have COMMAND change from a version in the cache to the newest there, or between two of the control",
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
    images = known_images(base.parent, options.command)
    zones = [(f"r{i % options.regions + 1}", f"z{i // options.regions + 1}") for i in range(options.machines)]
    try:
        with Lab(base, images, zones) as lab:
            has = lab.directory / "images.json"
            has.write_text(json.dumps({image.name: image.where for image in images}))
            named = {"ROACHPROOF_KUBERNETES_IMAGES": str(has), "ROACHPROOF_KUBERNETES_CUTTER_IMAGE": CUTTER}
            env = {**lab.environment(), **named}
            env[LAB] = env["KUBECONFIG"]
            return _run(lab.enter([*options.command, *more]), env)
    except NotBuilt as reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
