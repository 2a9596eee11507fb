"""Signatures of a run's seal by OpenSSH keys (``ssh-keygen -Y``): they find forgers, where digests find accidents."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from clusters.errors import BadInput
from plugin.evidence.run_seal import RUN_SEAL, SIGNATURE

NAMESPACE = "roachproof"
"""A signature that was made for another purpose is none of a run."""

LIMIT_S = 30
"""No signature takes so long."""


def check_key(key: Path) -> None:
    """Sign something, so that a key that cannot is found before a cluster starts. Raises ``BadInput``."""
    with TemporaryDirectory() as directory:
        probe = Path(directory) / "probe"
        probe.write_text("probe")
        _sign(probe, key)


def sign_run(directory: Path, key: Path) -> None:
    """Sign the run's seal; the signature lies beside it. Raises ``BadInput``."""
    (directory / SIGNATURE).unlink(missing_ok=True)
    _sign(directory / RUN_SEAL, key)


def not_signed(directory: Path, public_key: Path) -> str:
    """Why the run is not as the holder of this key sealed it, in words; empty where it is. Raises ``BadInput``."""
    try:
        key = public_key.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = f"cannot be read ({error}); give a public OpenSSH key, like id_ed25519.pub"
        raise BadInput(f"--signed-by {public_key}: {why}") from error
    if not (directory / RUN_SEAL).is_file() or not (directory / SIGNATURE).is_file():
        return f"not signed: {RUN_SEAL} or its signature is missing (a run is signed with --sign KEY)"
    with TemporaryDirectory() as place:
        signers = Path(place) / "signers"
        signers.write_text(f'{NAMESPACE} namespaces="{NAMESPACE}" {key}\n', encoding="utf-8")
        done = _ssh_keygen(
            ["verify", "-f", str(signers), "-I", NAMESPACE, "-s", str(directory / SIGNATURE)],
            (directory / RUN_SEAL).read_bytes(),
        )
    return "" if done.returncode == 0 else f"its signature is not {public_key}'s: {_said(done)}"


def broken_signature(directory: Path) -> str:
    """Why the signature that lies beside a run's seal is none of it, whoever made it; empty where it is.

    Empty, too, where there is no signature, or nothing to check it with: nobody asked for it.
    """
    if not (directory / SIGNATURE).is_file() or not (directory / RUN_SEAL).is_file():
        return ""
    with suppress(BadInput):
        arguments = ["check-novalidate", "-s", str(directory / SIGNATURE)]
        if (done := _ssh_keygen(arguments, (directory / RUN_SEAL).read_bytes())).returncode:
            return f"its signature is not of this {RUN_SEAL}: {_said(done)}"
    return ""


def _sign(file: Path, key: Path) -> None:
    if not key.is_file():
        raise BadInput(f"--sign {key}: no such file; give a private OpenSSH key without a passphrase")
    done = _ssh_keygen(["sign", "-f", str(key), str(file)])
    if done.returncode:
        raise BadInput(f"--sign {key}: cannot sign ({_said(done)}); give a private OpenSSH key without a passphrase")


def _ssh_keygen(arguments: list[str], data: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    action, *others = arguments
    try:
        return subprocess.run(
            ["ssh-keygen", "-Y", action, "-n", NAMESPACE, *others],
            input=data, capture_output=True, timeout=LIMIT_S, check=False, start_new_session=True,
            env={**os.environ, "SSH_ASKPASS_REQUIRE": "never"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BadInput(f"ssh-keygen cannot be used ({error}); install OpenSSH 8.2 or newer, or sign nothing") from error


def _said(done: "subprocess.CompletedProcess[bytes]") -> str:
    return " ".join((done.stderr or done.stdout).decode("utf-8", "replace").split())[:200]
