"""What images that are made of this machine's files can do: no lab is needed for that."""

import json
import platform
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from clusters.archives import write_member
from tests.kubernetes.lab.images import Image, _wrap
from tests.kubernetes.lab.layers import BUSYBOX, DASH
from tests.kubernetes.lab.python import interpreter

ENDS_A_THREAD = """
import ctypes
library, thread = ctypes.CDLL(None), ctypes.c_ulong()
assert library.pthread_create(ctypes.byref(thread), None, library.pthread_exit, None) == 0
assert library.pthread_join(thread, None) == 0
print("went on")
"""
"""As an interpreter does at its end with threads that still run: the C library opens another library for that."""


def _why_not() -> str:
    if lacks := [str(program) for program in (BUSYBOX, DASH) if not program.exists()]:
        return f"{', '.join(lacks)} of which images are made is not here"
    tried = subprocess.run(["chroot", "/", "true"], capture_output=True, check=False)
    return "whoever runs this may not change the root directory" if tried.returncode else ""


@pytest.mark.parametrize(("machine", "called"), [("x86_64", "amd64"), ("aarch64", "arm64"), ("s390x", "s390x")])
def test_an_image_is_of_the_machine_whose_programs_it_has(
    machine: str, called: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    (tmp_path / "layer").write_bytes(b"")
    _wrap("any:1", tmp_path / "layer", tmp_path / "image.tar", {})
    with tarfile.open(tmp_path / "image.tar") as image:
        (manifest,) = json.load(image.extractfile("manifest.json") or pytest.fail("it has none"))
        config = json.load(image.extractfile(manifest["Config"]) or pytest.fail("it has none"))
    assert config["architecture"] == called


@pytest.mark.skipif(bool(_why_not()), reason=_why_not())
def test_a_python_in_an_image_ends_threads(tmp_path: Path) -> None:
    """Without that the control was aborted when it was stopped, and so were claims: their node had crashed."""
    Image(name="python:1", beside=[*interpreter()]).write(tmp_path / "image.tar")
    with tarfile.open(tmp_path / "image.tar") as image:
        write_member(image, image.getmember("layer.tar"), tmp_path / "layer.tar")
    (root := tmp_path / "root").mkdir()
    subprocess.run(["tar", "-xf", str(tmp_path / "layer.tar"), "-C", str(root)], check=True)
    line = ["chroot", str(root), sys.executable, "-c", ENDS_A_THREAD]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr
