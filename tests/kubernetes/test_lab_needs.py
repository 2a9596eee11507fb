"""What is said where no Kubernetes can be made: no lab is needed for that."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.workloads.relay import ROOT
from tests.kubernetes import at_hand
from tests.kubernetes.lab import hyperkube, lab, remains
from tests.kubernetes.lab.hyperkube import GO, NotBuilt, build

NO_PROXY = "http://127.0.0.1:1"
"""Nobody listens there."""
has_go = pytest.mark.skipif(not shutil.which("go"), reason="no Go toolchain is here, which asks the proxy")


def program(directory: Path, name: str, script: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(f"#!/bin/sh\n{script}\n")
    (directory / name).chmod(0o755)


@pytest.fixture
def nothing_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache in which Kubernetes is not, and a directory that is all of ``PATH``."""
    monkeypatch.setenv("ROACHPROOF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (None, "there is no `go` on PATH that runs"),
        ("exit 1", "there is no `go` on PATH that runs"),
        ("echo go1.19.8", "`go` on PATH is go1.19.8"),
        (f"echo go{GO[0]}.{GO[1] - 1}.99", f"`go` on PATH is go{GO[0]}.{GO[1] - 1}.99"),
        (f"echo go{GO[0]}.{GO[1]}", ""),
        (f"echo go{GO[0]}.{GO[1] + 1}.2-custom", ""),
        (f'[ "$GOTOOLCHAIN" = local ] && echo go{GO[0]}.{GO[1]}.1', ""),
    ],
)
def test_a_go_that_is_missing_or_too_old_is_named(script: str | None, said: str, nothing_built: Path) -> None:
    if script:
        program(nothing_built, "go", script)
    why = hyperkube.why_not()
    assert why.endswith(said)
    assert bool(why) is bool(said)
    if why:
        assert f"needs Go {GO[0]}.{GO[1]} or later" in why


def test_where_it_is_built_no_go_is_needed(nothing_built: Path) -> None:
    hyperkube.directory().mkdir(parents=True)
    (hyperkube.directory() / "hyperkube").touch()
    assert hyperkube.why_not() == ""


@has_go
def test_a_proxy_that_cannot_be_reached_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = {"ROACHPROOF_CACHE": tmp_path / "cache", "GOPROXY": NO_PROXY, "GOMODCACHE": tmp_path / "modules"}
    for name, value in (*env.items(), ("GOSUMDB", "off")):
        monkeypatch.setenv(name, str(value))
    with pytest.raises(NotBuilt, match=rf"from the Go module proxy \({NO_PROXY}\): .*connection refused.* in GOPROXY"):
        build()
    assert not list(hyperkube.directory().parent.glob("building-*"))


@has_go
@pytest.mark.skipif(bool(lab.why_not()), reason=lab.why_not())
def test_a_command_in_no_lab_ends_with_words(tmp_path: Path) -> None:
    env = {
        **os.environ,
        "ROACHPROOF_CACHE": str(tmp_path),
        "GOPROXY": NO_PROXY,
        "GOMODCACHE": str(tmp_path / "modules"),
    }
    # A command that takes CockroachDB would first have one looked for.
    line = [sys.executable, "-m", "tests.kubernetes.lab", "true", "--engine", "postgres"]
    done = subprocess.run(line, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith("skipped: ")
    assert "Kubernetes" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("missing", ["containerd", "nft"])
def test_a_skip_says_what_is_missing(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what a machine needs for a Kubernetes; where nothing is missing, what makes one."""
    which = shutil.which
    monkeypatch.delenv(at_hand.LAB, raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: None if name == missing else which("sh"))
    assert f"none can be made here: a Kubernetes of its own needs {missing}" in at_hand.none_at_hand()


def test_a_skip_says_that_root_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(at_hand.LAB, raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "none can be made here: a Kubernetes of its own needs Linux and root" in at_hand.none_at_hand()
    monkeypatch.setattr(at_hand, "why_not", lambda: "")
    assert "none can be made" not in at_hand.none_at_hand()
    assert "`tox -e k8s` makes one" in at_hand.none_at_hand()


def test_none_is_missing_where_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's own Kubernetes is none: these tests delete namespaces and drain machines."""
    monkeypatch.setenv(at_hand.LAB, "lab/kubeconfig")
    monkeypatch.setenv("KUBECONFIG", "lab/kubeconfig")
    assert at_hand.none_at_hand() == ""
    monkeypatch.setenv("KUBECONFIG", "mine")
    assert "no Kubernetes is at hand" in at_hand.none_at_hand()
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_IMAGES", "images.json")
    monkeypatch.delenv(at_hand.LAB)
    monkeypatch.delenv("KUBECONFIG")
    assert "no Kubernetes is at hand" in at_hand.none_at_hand()


def test_mount_points_that_a_lab_made_go_with_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was there before stays, and so does a place that another lab has mounted something on."""
    group, there, missing = tmp_path / "group", tmp_path / "there", tmp_path / "var" / "missing"
    monkeypatch.setattr(remains, "PLACES", (str(there), str(missing)))
    monkeypatch.setattr(remains, "groups", lambda: [group])
    there.mkdir()
    (own := tmp_path / f"{remains.PREFIX}1").mkdir()
    (group / own.name).mkdir(parents=True)
    (another := group / f"{remains.PREFIX}2").mkdir()
    remains.make_places(own)
    assert missing.is_dir()
    (group / own.name).rmdir()
    remains._remove_places(own)
    assert missing.is_dir()
    another.rmdir()
    remains.remove(own)
    assert not own.exists()
    assert (there.is_dir(), missing.exists()) == (True, False)
