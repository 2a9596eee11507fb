"""``.ci/kubernetes`` says what is missing before it takes minutes for nothing. No lab is needed for that."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.workloads.relay import ROOT
from tests.kubernetes.lab import lab

SCRIPT = ROOT / ".ci" / "kubernetes"
ASKED = "apt-get-was-asked"
NOBODY = ["unshare", "--user"]
"""Runs a command without any right, whoever we are."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A directory that is all of ``PATH``: what the script and a Kubernetes need, ``apt-get`` that only keeps what it
    is asked, and no Go.
    """
    (there := tmp_path / "bin").mkdir()
    for name in ("bash", "dirname", "env", "id", "uname", *lab.PROGRAMS):
        (there / name).symlink_to(shutil.which(name) or "/bin/false")
    (there / "python3").symlink_to(sys.executable)
    (there / "apt-get").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path / ASKED}\n')
    (there / "apt-get").chmod(0o755)
    return there


def run(path: Path, *before: str) -> "subprocess.CompletedProcess[str]":
    """The script, with no Kubernetes built."""
    env = {"PATH": str(path), "HOME": str(path), "ROACHPROOF_CACHE": str(path / "cache")}
    line = [shutil.which(before[0]) or before[0], *before[1:]] if before else []
    return subprocess.run([*line, str(SCRIPT)], env=env, capture_output=True, text=True, check=False)


def test_it_is_a_script() -> None:
    subprocess.run(["bash", "-n", str(SCRIPT)], check=True)
    assert os.access(SCRIPT, os.X_OK)


def test_its_wheel_is_the_one_that_is_locked() -> None:
    locked = [one for one in (ROOT / "constraints.txt").read_text().split() if one.startswith("pgserver==")]
    assert [word for word in SCRIPT.read_text().split() if word.startswith("pgserver==")] == locked


def test_without_root_it_says_so_and_changes_nothing(path: Path, tmp_path: Path) -> None:
    if os.geteuid() == 0 and subprocess.run([*NOBODY, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces are here, in which root is nobody")
    done = run(path, *(NOBODY if os.geteuid() == 0 else []))
    assert done.returncode == 3
    assert done.stderr.startswith(".ci/kubernetes: root is missing, ")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / ASKED).exists()


def test_elsewhere_than_on_debian_it_says_so(path: Path) -> None:
    (path / "apt-get").unlink()
    (path / "id").unlink()
    (path / "id").write_text("#!/bin/sh\necho 0\n")
    (path / "id").chmod(0o755)
    done = run(path)
    assert (done.returncode, "apt-get is missing" in done.stderr) == (3, True), done.stderr


@pytest.mark.skipif(bool(lab.why_not()), reason=lab.why_not())
def test_without_go_it_says_so_before_anything_is_built(path: Path, tmp_path: Path) -> None:
    done = run(path)
    assert done.returncode == 3
    assert done.stderr.startswith(".ci/kubernetes: a Kubernetes of its own needs Go ")
    assert len(done.stderr.splitlines()) == 1
    update, install = (tmp_path / ASKED).read_text().splitlines()
    assert update == "update"
    assert {"containerd", "runc", "containernetworking-plugins", "nftables"} <= set(install.split())


def test_its_packages_are_those_that_the_documents_name() -> None:
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    (named,) = (one.split() for one in page.split("`") if one.startswith("containerd runc "))
    assert set(named) <= set(SCRIPT.read_text().replace("\\\n", " ").split())
