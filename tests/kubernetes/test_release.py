"""A release as the tests make it: what is done until its nodes are there, which a benchmark times. No lab is needed."""

import json
from pathlib import Path

import pytest

from tests.kubernetes import release

PROGRAM = """#!/bin/sh
echo "$1 $2" >> {said}
for word in "$@"; do case $word in --certs-dir=*) certs=${{word#*=}} ;; esac; done
[ "$1" != cert ] || for name in ca.crt node.crt node.key client.root.crt client.root.key; do touch "$certs/$name"; done
[ "$1" != init ] || [ "$(grep -c init {said})" -gt 2 ]
"""
"""Keeps what it was asked; ``init`` is answered the third time."""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(release, "apply", lambda file, *objects: None)
    (file := tmp_path / "cockroach").write_text(PROGRAM.format(said=tmp_path / "said"))
    file.chmod(0o755)
    return file


def said(tmp_path: Path) -> list[str]:
    lines = (tmp_path / "said").read_text().splitlines()
    (tmp_path / "said").unlink()
    return [line for line in lines if not line.startswith("cert")]


def test_it_begins_with_init_and_no_node_is_asked_before_somebody_wants_that(program: Path, tmp_path: Path) -> None:
    """Asked one after the other within what is timed they made the other side look faster than it is."""
    certs = release.begin(tmp_path, str(program), "db:1", flags=[])
    first, *others = (f"--host={address}:26257" for address in release.ADDRESSES)
    assert said(tmp_path) == [f"init {first}"] * 3
    release.serving(str(program), certs)
    assert said(tmp_path) == [f"sql {address}" for address in (first, *others)]


def test_a_node_that_never_answers_is_no_release(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "_TRIES", 2)
    program.write_text("#!/bin/sh\necho no such node >&2\nexit 1\n")
    with pytest.raises(AssertionError, match="no such node"):
        release.serving(str(program), tmp_path)


def test_the_newest_build_is_taken_by_its_number_and_the_other_is_of_its_series(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its letters v24.1.9 is after v24.1.10."""
    tags = ("v23.2.1", "v24.1.10", "v24.1.9", "v24.1.3")
    images = {f"roachproof.local/cockroach:{tag}": {f"/{tag}/cockroach": "/cockroach"} for tag in tags}
    (file := tmp_path / "images.json").write_text(json.dumps({**images, "roachproof.local/shell:1": {}}))
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_IMAGES", str(file))
    newest = release.image_of()
    assert newest == ("roachproof.local/cockroach:v24.1.10", "/v24.1.10/cockroach")
    assert release.image_of("/v23.2.1/cockroach")[0].endswith(":v23.2.1")
    assert release.other_than(newest[0])[1] == "/v24.1.9/cockroach"
    assert release.other_than("roachproof.local/cockroach:v23.2.1") == release.other_than("") == ("", "")
