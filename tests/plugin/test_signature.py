"""A run is signed with an OpenSSH key, and a replay that asks for the signature finds a forger."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from plugin.evidence.run_seal import RUN_FILE, RUN_SEAL, SIGNATURE
from tests.plugin.conftest import Gate

PROGRAM = shutil.which("ssh-keygen") or ""

pytestmark = pytest.mark.skipif(not PROGRAM, reason="needs ssh-keygen (OpenSSH 8.2 or newer)")


def key(place: Path, passphrase: str = "") -> Path:
    """A new private key; its public one lies beside it."""
    subprocess.run([PROGRAM, "-q", "-t", "ed25519", "-N", passphrase, "-f", place], check=True)
    return place


@pytest.fixture
def signed(gate: Gate) -> Gate:
    """A run that passed, with a sabotage beside the claim, and was signed with ``release``."""
    (gate.path / "nothing" / "ssh-keygen").symlink_to(PROGRAM)
    key(gate.path / "release")
    ran = gate(*gate.tests("passes", "sabotage"), "--run-dir", "out", "--sign", "release")
    assert ran.status == 0, ran.text
    assert (gate.run_dir / SIGNATURE).exists()
    return gate


def test_a_replay_asks_for_the_signature(signed: Gate) -> None:
    assert signed("--judge", "out").status == 0
    good = signed("--judge", "out", "--signed-by", "release.pub")
    assert good.status == 0, good.text
    key(signed.path / "other")
    other = signed("--judge", "out", "--signed-by", "other.pub", "--junit-xml", "again.xml", "--alluredir", "again")
    assert other.status == 6, other.text
    results = "".join(file.read_text() for file in (signed.path / "again").glob("*-result.json"))
    page, xml = (signed.path / name for name in ("out/judged-again.html", "again.xml"))
    for told in (other.text, page.read_text(), xml.read_text(), results):
        assert "its signature is not" in told


@pytest.mark.parametrize("forged", ["seal", "signature"])
def test_a_forger_is_found(signed: Gate, forged: str) -> None:
    seal = signed.run_dir / RUN_SEAL
    if forged == "seal":
        seal.write_text(json.dumps({**json.loads(seal.read_text()), "undecided": []}))
    else:
        (signed.run_dir / SIGNATURE).unlink()
    unasked = signed("--judge", "out")
    assert unasked.status == (6 if forged == "seal" else 0), "without the signature digests alone find no forger"
    assert ("its signature is not of this" in unasked.text) is (forged == "seal")
    found = signed("--judge", "out", "--signed-by", "release.pub")
    assert found.status == 6, found.text
    assert ("its signature is not" if forged == "seal" else "not signed") in found.text


@pytest.mark.parametrize("left", [RUN_SEAL, SIGNATURE])
def test_what_a_signed_run_lost_is_found_without_its_description(signed: Gate, left: str) -> None:
    """One trial is gone, and ``run.json`` with it; of seal and signature one is enough to know that it was a run."""
    sabotage = next(trial for trial in signed.trials if "sabotage" in trial.name)
    shutil.rmtree(sabotage)
    (signed.run_dir / RUN_FILE).unlink()
    found = signed("--judge", "out", "--signed-by", "release.pub")
    assert found.status == 6, found.text
    assert f"{sabotage.name} is missing" in " ".join(found.text.split())
    (signed.run_dir / (RUN_SEAL if left == SIGNATURE else SIGNATURE)).unlink()
    assert signed("--judge", "out").status == 6


def test_a_key_that_cannot_sign_is_found_before_anything_starts(signed: Gate) -> None:
    key(signed.path / "locked", "secret words")
    (signed.path / "nonsense").write_text("no key")
    for name, why in (("missing", "no such file"), ("locked", "cannot sign"), ("nonsense", "cannot sign")):
        ran = signed(*signed.tests("passes"), "--run-dir", "new", "--sign", name)
        assert ran.status == 4, ran.text
        assert why in ran.text
        assert not (signed.path / "new").exists()
        assert "Traceback" not in ran.text
    ran = signed("--judge", "out", "--signed-by", "missing.pub")
    assert ran.status == 4, ran.text
    assert "give a public OpenSSH key" in " ".join(ran.text.split())
