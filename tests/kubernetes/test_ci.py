"""``.ci/kubernetes`` says what is missing before it takes minutes for nothing. No lab is needed for that."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fixtures.workloads.relay import ROOT
from tests.kubernetes.lab import lab

SCRIPT = ROOT / ".ci" / "kubernetes"
ASKED, TOX = "apt-get-was-asked", "tox-was-asked"
OLD, NEW = "2:1.19~1", "2:1.24~2"
"""What apt has of Go on Debian 12 and 13."""
NOBODY = ["unshare", "--user"]
"""Runs a command without any right, whoever we are."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A directory that is all of ``PATH``: what the script and a Kubernetes need, ``apt-get`` that only keeps what it
    is asked, and no Go: apt has that of Debian 12.
    """
    (there := tmp_path / "bin").mkdir()
    for name in ("bash", "dirname", "env", "dpkg", "id", "uname", *lab.PROGRAMS):
        (there / name).symlink_to(shutil.which(name) or "/bin/false")
    (there / "python3").symlink_to(sys.executable)
    program(there / "apt-get", f'echo "$@" >> {tmp_path / ASKED}')
    has(there, OLD)
    return there


def program(path: Path, does: str) -> None:
    """A program of this name that does this, in the place of another."""
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/sh\n{does}\n")
    path.chmod(0o755)


def has(path: Path, candidate: str) -> None:
    """Let apt have this version of Go, in its own words."""
    said = f"golang-go:\\n  Installed: (none)\\n  Candidate: {candidate}\\n  Version table:\\n"
    program(path / "apt-cache", f"printf '{said}'")


def run(path: Path, *arguments: str, before: Sequence[str] = (), script: Path = SCRIPT) -> Any:
    """The script, with no Kubernetes built."""
    env = {"PATH": str(path), "HOME": str(path), "ROACHPROOF_CACHE": str(path / "cache")}
    line = [shutil.which(before[0]) or before[0], *before[1:]] if before else []
    return subprocess.run([*line, str(script), *arguments], env=env, capture_output=True, text=True, check=False)


def test_it_is_a_script() -> None:
    subprocess.run(["bash", "-n", str(SCRIPT)], check=True)
    assert os.access(SCRIPT, os.X_OK)


def test_what_it_runs_of_ours_needs_no_package() -> None:
    """It runs before one is installed, on a machine that may lack all that a lab needs."""
    lines = re.findall(r"python3? -c '([^']+)'", SCRIPT.read_text())
    ours = [line for line in lines if "tests." in line or "clusters." in line]
    assert len(ours) == 3
    for line in ours:
        done = subprocess.run([sys.executable, "-S", "-c", line], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_its_wheel_is_the_one_that_is_locked() -> None:
    locked = [one for one in (ROOT / "constraints.txt").read_text().split() if one.startswith("pgserver==")]
    assert [word for word in SCRIPT.read_text().split() if word.startswith("pgserver==")] == locked


def test_without_root_it_says_so_and_changes_nothing(path: Path, tmp_path: Path) -> None:
    if os.geteuid() == 0 and subprocess.run([*NOBODY, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces are here, in which root is nobody")
    done = run(path, before=NOBODY if os.geteuid() == 0 else [])
    assert done.returncode == 3
    assert done.stderr.startswith(".ci/kubernetes: root is missing, ")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / ASKED).exists()


def test_elsewhere_than_on_debian_it_says_so(path: Path) -> None:
    (path / "apt-get").unlink()
    program(path / "id", "echo 0")
    done = run(path)
    assert (done.returncode, "apt-get is missing" in done.stderr) == (3, True), done.stderr


def test_what_it_does_not_know_changes_nothing(path: Path, tmp_path: Path) -> None:
    done = run(path, "everything")
    assert (done.returncode, done.stderr) == (
        4,
        ".ci/kubernetes: everything: must be `full`, or nothing; give one of these\n",
    )
    assert not (tmp_path / ASKED).exists()


@pytest.mark.skipif(bool(lab.why_not()), reason=lab.why_not())
@pytest.mark.parametrize("candidate", [OLD, "(none)"])
def test_without_go_it_says_so_before_anything_is_built(candidate: str, path: Path, tmp_path: Path) -> None:
    has(path, candidate)
    done = run(path)
    assert done.returncode == 3
    assert done.stderr.startswith(".ci/kubernetes: a Kubernetes of its own needs Go ")
    assert len(done.stderr.splitlines()) == 1
    update, install = (tmp_path / ASKED).read_text().splitlines()
    assert update == "update"
    assert {"containerd", "runc", "containernetworking-plugins", "nftables"} <= set(install.split())


@pytest.fixture
def script(path: Path, tmp_path: Path) -> Path:
    """The script in a directory of its own, where a virtual environment has nothing but what it is asked."""
    (copy := tmp_path / "checkout" / ".ci" / "kubernetes").parent.mkdir(parents=True)
    shutil.copy(SCRIPT, copy)
    (made := tmp_path / "made").mkdir()
    program(made / "pip", ":")
    program(made / "python", "echo 3.11")
    program(made / "tox", f'echo "$@" >> {tmp_path / TOX}')
    venv = f"{shutil.which('mkdir')} .venv && exec {shutil.which('ln')} -s {made} .venv/bin"
    program(path / "python3", f'[ "$1" != -m ] || {{ {venv}; }}\nPYTHONPATH={ROOT} exec {sys.executable} "$@"')
    return copy


@pytest.mark.skipif(bool(lab.why_not()) or not shutil.which("dpkg"), reason=lab.why_not() or "dpkg is Debian's")
@pytest.mark.parametrize(("arguments", "environment"), [([], "k8s"), (["full"], "k8s-full")])
def test_where_apt_has_a_go_that_is_new_enough_it_is_installed(
    arguments: list[str], environment: str, path: Path, script: Path, tmp_path: Path
) -> None:
    has(path, NEW)
    go = f"printf '#!/bin/sh\\necho go1.24.4\\n' > {path}/go; {shutil.which('chmod')} +x {path}/go"
    program(path / "apt-get", f'echo "$@" >> {tmp_path / ASKED}\ncase "$*" in *golang-go*) {go};; esac')
    done = run(path, *arguments, script=script)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / ASKED).read_text().splitlines()[2:] == ["install --yes --no-install-recommends golang-go"]
    assert (tmp_path / TOX).read_text() == f"-e {environment}\n"


@pytest.mark.skipif(bool(lab.why_not()), reason=lab.why_not())
def test_a_go_that_is_there_is_left_alone(path: Path, script: Path, tmp_path: Path) -> None:
    """One that is too old, too: another in its place may be hidden by it."""
    has(path, NEW)
    program(path / "go", "echo go1.19.8")
    done = run(path, script=script)
    assert (done.returncode, "`go` on PATH is go1.19.8" in done.stderr) == (3, True)
    assert "golang-go" not in (tmp_path / ASKED).read_text()
    assert not (tmp_path / TOX).exists()


def test_its_packages_are_those_that_the_documents_name() -> None:
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    (named,) = (one.split() for one in page.split("`") if one.startswith("containerd runc "))
    assert set(named) <= set(SCRIPT.read_text().replace("\\\n", " ").split())
