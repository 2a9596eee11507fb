"""What a user says of her Kubernetes: read and refused before anything is made."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from clusters.engines.cockroach.binary import called
from clusters.errors import BadInput
from clusters.model import Capability, Tells
from clusters.substrates import SUBSTRATES
from clusters.substrates.kubernetes.settings import CUTS, Given, Reach, run_below
from plugin.profiles import profile_named

CHECKOUT = Path(__file__).parents[4]
LOADS = """
import sys
import pytest
status = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "--substrate", sys.argv[1], "tests/claims"])
assert "plugin" in sys.modules
assert "kubernetes" not in sys.modules
sys.exit(status)
"""


def images(tmp_path: Path, has: object) -> dict[str, str]:
    file = tmp_path / "images.json"
    file.write_text(json.dumps(has))
    return {"ROACHPROOF_KUBERNETES_IMAGES": str(file)}


@pytest.mark.parametrize("name", ["n" * 64, "Team_A", "-a", "a.b"])
def test_a_namespace_with_a_name_that_kubernetes_does_not_take(name: str) -> None:
    with pytest.raises(BadInput, match=f"ROACHPROOF_KUBERNETES_NAMESPACE={name}: must be at most 63 small letters"):
        Given.read({"ROACHPROOF_KUBERNETES_NAMESPACE": name})
    assert Given.read({"ROACHPROOF_KUBERNETES_NAMESPACE": "n" * 63}).namespace == "n" * 63


def test_a_program_of_an_image_is_called_by_a_path_of_its_own(tmp_path: Path) -> None:
    """Two images may have their programs at the same path: which of them is meant must still be seen."""
    (old := tmp_path / "old").touch()
    (new := tmp_path / "new").touch()
    given = Given.read(images(tmp_path, {"db:1": {str(old): "/db/db"}, "db:2": {str(new): "/db/db"}}))
    first, second = given.program(old), given.program(new)
    assert (first.image, second.image) == ("db:1", "db:2")
    assert first.inside == second.inside == "/db/db"
    assert first.path != second.path
    assert given.program(tmp_path / "other").image is None
    assert given.default_image() == "db:1"


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        ("Build Tag:    v24.1.3\nBuild Time:   2024/07/30\n", ""),
        ("Build Tag:    v24.1.3+deb\n", ""),
        ("/db/db: not found\n", ""),
        (
            "Build Tag:    v24.2.0\n",
            r"ROACHPROOF_KUBERNETES_IMAGES: image db:2: /db/db calls itself v24\.2\.0, and .*/new of this machine is "
            r"v24\.1\.3; correct that line of the file, or name an image that has v24\.1\.3",
        ),
    ],
)
def test_an_image_that_has_another_version_than_the_file_says(tmp_path: Path, printed: str, why: str) -> None:
    (new := tmp_path / "new").touch()
    given = Given.read(images(tmp_path, {"db:2": {str(new): "/db/db"}}))
    tells = Tells(argv=("db", "version"), read=called, version="v24.1.3")
    assert re.fullmatch(why, given.belied(given.program(new), tells, printed))


@pytest.mark.parametrize("size", ["ten", "0", "-5", "63"])
def test_a_size_that_is_none_is_refused(size: str) -> None:
    with pytest.raises(BadInput, match=rf"ROACHPROOF_KUBERNETES_VOLUME_MIB={size}: must be a whole number"):
        Given.read({"ROACHPROOF_KUBERNETES_VOLUME_MIB": size})


@pytest.mark.parametrize(
    ("asked", "profile", "size"),
    [("", None, 10240), ("", "laptop", 10240), ("", "medium", 70 * 1024), ("512", "medium", 512)],
)
def test_a_volume_is_as_large_as_the_profile_says_unless_another_size_is_asked_for(
    asked: str, profile: str | None, size: int
) -> None:
    given = Given.read({"ROACHPROOF_KUBERNETES_VOLUME_MIB": asked} if asked else {})
    assert given.volume_of(profile_named(profile).node if profile else None) == size


@pytest.mark.parametrize(
    ("owner", "namespace"), [("gate-1", "team"), ("/7", "team"), ("gate-1/", "team"), ("gate-1/7", "")]
)
def test_an_owner_that_is_no_pod_of_the_namespace_is_refused(owner: str, namespace: str) -> None:
    with pytest.raises(BadInput, match=f"OWNER={owner}: must be the name and the uid of a pod as NAME/UID"):
        Given.read({"ROACHPROOF_KUBERNETES_OWNER": owner, "ROACHPROOF_KUBERNETES_NAMESPACE": namespace})
    given = {"ROACHPROOF_KUBERNETES_OWNER": "gate-1/7", "ROACHPROOF_KUBERNETES_NAMESPACE": "team"}
    assert Given.read(given).owner == ("gate-1", "7")
    assert Given.read({}).owner is None


@pytest.mark.parametrize("told", ["1", "none", "-3", "own,", f"{2**31 - 1}"])
def test_processes_below_which_the_cluster_does_not_run_are_refused(told: str) -> None:
    """Below the first one of a machine all of it runs, other work, too."""
    told = told.replace("own", str(os.getpid()))
    with pytest.raises(BadInput, match=f"PROCESSES={told}: must be the ids of processes of this machine"):
        run_below({"ROACHPROOF_KUBERNETES_PROCESSES": told})


@pytest.mark.parametrize("substrate", ["kubernetes", "adopted"])
def test_a_cluster_of_this_machine_is_no_other_work(substrate: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROACHPROOF_KUBERNETES_PROCESSES", raising=False)
    assert SUBSTRATES[substrate].run_below() == SUBSTRATES["processes"].run_below() == ()
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_PROCESSES", f"{os.getpid()},{os.getpid()}")
    assert SUBSTRATES[substrate].run_below() == (os.getpid(), os.getpid())
    assert SUBSTRATES["processes"].run_below() == ()


def test_a_way_to_reach_pods_that_is_none_is_refused() -> None:
    with pytest.raises(BadInput, match="REACH=tunnel: must be one of auto, direct, port-forward; give one of these"):
        Given.read({"ROACHPROOF_KUBERNETES_REACH": "tunnel"})
    assert Given.read({"ROACHPROOF_KUBERNETES_REACH": "port-forward"}).reach is Reach.FORWARDED
    assert Given.read({}).reach is Reach.FOUND


@pytest.mark.parametrize("has", [[], {"image": []}, {"image": "x"}, {"image": {"/here": {"/there": 1}}}])
def test_a_file_of_images_that_is_none_is_refused(tmp_path: Path, has: object) -> None:
    with pytest.raises(BadInput, match="must name a JSON file like"):
        Given.read(images(tmp_path, has))


def test_without_an_image_it_says_what_to_set() -> None:
    with pytest.raises(BadInput, match="set ROACHPROOF_KUBERNETES_IMAGE to one that has /bin/sh"):
        Given.read({}).default_image()


def test_links_are_cut_where_an_image_is_named_that_can(monkeypatch: pytest.MonkeyPatch) -> None:
    kind, asked = SUBSTRATES["kubernetes"], {Capability.CUT_LINKS, Capability.KILL}
    monkeypatch.delenv(CUTS, raising=False)
    assert kind.offered(asked) == {Capability.KILL}
    assert CUTS in kind.why_not(Capability.CUT_LINKS)
    monkeypatch.setenv(CUTS, "cutter:1")
    assert kind.offered(asked) == asked
    assert Given.read().cutter == "cutter:1"


@pytest.mark.parametrize("substrate", ["processes", "kubernetes"])
def test_the_client_is_imported_only_where_it_is_used(substrate: str) -> None:
    """It takes a second: nobody who only looks is to wait for it, also where the claims are for Kubernetes.

    Of a run on one's own machine ``tests/plugin/test_imports.py`` shows it.
    """
    line = [sys.executable, "-c", LOADS, substrate]
    done = subprocess.run(line, cwd=CHECKOUT, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tests collected" in done.stdout


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "Input data was truncated"),
        ("[]", "Expected `object`, got `array`"),
        ('{"hostNetwork": true}', "Object contains unknown field `hostNetwork`"),
        ('{"tolerations": {"key": "only"}}', r"Expected `array`, got `object` - at `\$.tolerations`"),
        ('{"tolerations": [{"key": 1}]}', r"Expected `str`, got `int` - at `\$.tolerations\[0\].key`"),
        ('{"nodeSelector": {"pool": 1}}', r"Expected `str`, got `int` - at `\$.nodeSelector\[...\]`"),
        ('{"imagePullSecrets": ["registry"]}', r"Expected `object`, got `str` - at `\$.imagePullSecrets\[0\]`"),
        ('{"priorityClassName": 1}', r"Expected `str`, got `int` - at `\$.priorityClassName`"),
    ],
)
def test_what_pods_cannot_be_told_is_refused(content: str, why: str, tmp_path: Path) -> None:
    (file := tmp_path / "pods.json").write_text(content)
    with pytest.raises(BadInput, match=rf"ROACHPROOF_KUBERNETES_PODS={file}: must name a .*imagePullSecrets \({why}"):
        Given.read({"ROACHPROOF_KUBERNETES_PODS": str(file)})


def test_what_pods_are_told(tmp_path: Path) -> None:
    told = {"nodeSelector": {"pool": "databases"}, "tolerations": [{"operator": "Exists"}]}
    (file := tmp_path / "pods.json").write_text(json.dumps(told))
    assert Given.read({"ROACHPROOF_KUBERNETES_PODS": str(file)}).pods == told
    assert Given.read({}).pods == {}


def test_that_machines_are_added_is_said_with_one_word() -> None:
    """`0` and `no` had meant that they are."""
    assert [Given.read({"ROACHPROOF_KUBERNETES_AUTOSCALED": told}).autoscaled for told in ("1", "")] == [True, False]
    with pytest.raises(BadInput, match="ROACHPROOF_KUBERNETES_AUTOSCALED=0: must be 1; give that, or nothing"):
        Given.read({"ROACHPROOF_KUBERNETES_AUTOSCALED": "0"})
