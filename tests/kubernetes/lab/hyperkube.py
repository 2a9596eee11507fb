"""All of Kubernetes' programs as one, built once from the Go module proxy and kept in the user's cache by version."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from clusters.cache import cache_dir
from tests.kubernetes.lab.remains import alone

VERSION = "v1.33.13"
GO = (1, 24)
"""What it is built with, or a later one: none is fetched in its place."""
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl")
_MAIN = """\
package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	var command *cobra.Command
	switch filepath.Base(os.Args[0]) {
	case "etcd":
		etcdmain.Main(os.Args)
		return
	case "kube-apiserver":
		command = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		command = manager.NewControllerManagerCommand()
	case "kube-scheduler":
		command = scheduler.NewSchedulerCommand()
	case "kubelet":
		command = kubelet.NewKubeletCommand()
	default:
		command = kubectl.NewDefaultKubectlCommand()
	}
	os.Exit(cli.Run(command))
}
"""


class NotBuilt(Exception):  # noqa: N818 - what became of it
    """Why there is no Kubernetes, in words."""


def directory() -> Path:
    """Where the programs are kept, whether or not they are there."""
    return cache_dir(os.environ) / "hyperkube" / VERSION


def build() -> Path:
    """The directory of the programs, built where they are not there: five minutes on two cores, 3.3 GB meanwhile.

    Raises ``NotBuilt``, ``OSError``.
    """
    there = directory()
    if (there / "hyperkube").exists():
        return there
    with alone(there.parent):
        # Of builds that were killed.
        for left in there.parent.glob("building-*"):
            shutil.rmtree(left, ignore_errors=True)
        if not (there / "hyperkube").exists():
            with tempfile.TemporaryDirectory(dir=there.parent, prefix="building-") as work:
                _build(Path(work), there)
    return there


def _build(work: Path, there: Path) -> None:
    source, made = work / "source", work / "made"
    source.mkdir()
    made.mkdir()
    env = {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=mod",
        "GOTOOLCHAIN": "local",
        "GOCACHE": f"{work}/cache",
    }
    _module(source, env)
    stamp = "k8s.io/component-base/version.git"
    flags = f"-s -w -X {stamp}Version={VERSION} -X {stamp}Major=1 -X {stamp}Minor={VERSION.split('.')[1]}"
    line = ["go", "build", "-trimpath", "-ldflags", flags, "-o", str(made / "hyperkube"), "."]
    # What it says, of its proxy too, is for whoever waits for it.
    if code := subprocess.run(line, cwd=source, env=env, check=False).returncode:
        raise NotBuilt(f"Kubernetes {VERSION} was not built: `go build` ended with {code}, and says above why")
    for program in PROGRAMS:
        (made / program).symlink_to("hyperkube")
    made.rename(there)


def _module(source: Path, env: dict[str, str]) -> None:
    """A module that needs Kubernetes' own: that names its parts by directories, so each is named by its version."""
    asked = ["go", "mod", "download", "-json", f"k8s.io/kubernetes@{VERSION}"]
    done = subprocess.run(asked, cwd=source, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        told = _told(done.stdout).get("Error") or done.stderr
        raise NotBuilt(
            f"Kubernetes {VERSION} is not to be had from the Go module proxy ({_go_says('GOPROXY')}): "
            f"{' '.join(told.split())}; name one that can be reached in GOPROXY"
        )
    module = Path(_told(done.stdout)["GoMod"]).read_text()
    parts = sorted(set(re.findall(r"^\s*(k8s\.io/\S+) (?:=> \./staging/|v0\.0\.0(?:\s|$))", module, re.MULTILINE)))
    go = re.search(r"^go (\S+)", module, re.MULTILINE)
    debug = re.search(r"^godebug default=(\S+)", module, re.MULTILINE)
    assert go is not None
    lines = ["module hyperkube", "", f"go {go[1]}", *([f"godebug default={debug[1]}"] if debug else [])]
    lines += ["", f"require k8s.io/kubernetes {VERSION}", "", "replace ("]
    lines += [f"\t{part} => {part} v0.{VERSION[3:]}" for part in parts]
    (source / "go.mod").write_text("\n".join([*lines, ")", ""]))
    (source / "main.go").write_text(_MAIN)


def _told(answer: str) -> dict[str, str]:
    """What ``go`` answers in JSON; nothing where it ended before."""
    return dict(json.loads(answer)) if answer.strip() else {}


def _go_says(variable: str) -> str:
    """Of its environment; empty where there is no Go that runs."""
    try:
        line = ["go", "env", variable]
        env = {**os.environ, "GOTOOLCHAIN": "local"}
        return subprocess.run(line, cwd="/", env=env, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def why_not() -> str:
    """Why they are not there and cannot be built, as far as no proxy has to be asked; nothing where they are, or can.

    What a proxy says is known when they are built.
    """
    if (directory() / "hyperkube").exists():
        return ""
    wanted = f"Go {'.'.join(map(str, GO))} or later"
    if not (has := _go_says("GOVERSION")):
        return f"a Kubernetes of its own needs {wanted} to build it with: there is no `go` on PATH that runs"
    found = re.search(r"go(\d+)\.(\d+)", has)
    if found is None or (int(found[1]), int(found[2])) < GO:
        return f"a Kubernetes of its own needs {wanted} to build it with: `go` on PATH is {has}"
    return ""


if __name__ == "__main__":
    print(build())
