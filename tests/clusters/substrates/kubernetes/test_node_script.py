"""The nodes' script, on this machine's shell: what it runs, what it tells, and what it writes."""

import base64
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath

import pytest

from clusters.model import ProcessSpec
from clusters.substrates.kubernetes import commands

SCRIPT = Path(commands.__file__).with_name("node.sh")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The script with its directory here."""
    own = tmp_path / "node.sh"
    own.write_text(SCRIPT.read_text().replace("/roachproof/node", str(tmp_path / "node")))
    return own


@contextmanager
def begun(script: Path) -> Iterator["subprocess.Popen[str]"]:
    """The script as a container's first process."""
    process = subprocess.Popen(
        ["/bin/sh", script, "serve"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "roachproof ready\n"
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def serving(script: Path) -> Iterator["subprocess.Popen[str]"]:
    with begun(script) as process:
        yield process


def told(process: "subprocess.Popen[str]") -> str:
    """The next thing it tells; the shell itself says "Killed" and the like between."""
    assert process.stdout is not None
    return next(line.strip() for line in process.stdout if line.startswith("roachproof "))


def order(at: Path, script: str) -> None:
    spec = ProcessSpec(
        name="n1",
        argv=("/bin/sh", "-c", script),
        env={"PATH": "/usr/bin:/bin", "WORD": "it's $5"},
        cwd=at / "node" / "home",
        output=at / "node" / "home" / "logs" / "out",
    )
    subprocess.run(
        ["/bin/sh", "-c", commands.written(at / "node" / "order", commands.order(spec).encode())], check=True
    )


def test_an_order_is_carried_out_once_and_its_end_is_told(serving: "subprocess.Popen[str]", tmp_path: Path) -> None:
    for code in (0, 7):
        order(tmp_path, f'echo "$WORD" in $(pwd); exit {code}')
        serving.send_signal(signal.SIGUSR1)
        assert told(serving).startswith("roachproof started ")
        assert told(serving) == f"roachproof exited {code}"
    said = (tmp_path / "node" / "home" / "logs" / "out").read_text()
    assert said == f"it's $5 in {tmp_path}/node/home\n" * 2


def test_an_order_is_gone_before_its_end_is_told(script: Path, tmp_path: Path) -> None:
    """Else it would take the next one along, which comes as soon as the end is heard."""
    (tmp_path / "bin").mkdir()
    (slow := tmp_path / "bin" / "rm").write_text('#!/bin/sh\nsleep 0.3\nexec /bin/rm "$@"\n')
    slow.chmod(0o755)
    order(tmp_path, "exit 3")
    with subprocess.Popen(
        ["/bin/sh", script, "serve"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PATH": f"{slow.parent}:{os.environ['PATH']}"},
    ) as process:
        try:
            assert told(process) == "roachproof ready"
            assert told(process).startswith("roachproof started ")
            assert told(process) == "roachproof exited 3"
            assert not (tmp_path / "node" / "order").exists()
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_it_tells_whether_a_process_runs(script: Path, tmp_path: Path) -> None:
    """By which Kubernetes knows whether another pod may be evicted."""

    def runs() -> bool:
        return subprocess.run(["/bin/sh", script, "runs"], check=False).returncode == 0

    for killed_before in (False, True):  # the first time all of it is, while its process runs
        (tmp_path / "node" / "order").unlink(missing_ok=True)
        with begun(script) as process:
            assert runs() is not killed_before, "as long as nothing was begun nothing is down"
            order(tmp_path, "sleep 60")
            process.send_signal(signal.SIGUSR1)
            pid = int(told(process).split()[-1])
            assert runs()
            if killed_before:
                os.kill(pid, signal.SIGKILL)
                assert told(process) == "roachproof exited 137"
                assert not runs()


def test_a_signal_is_told_as_a_shell_does(serving: "subprocess.Popen[str]", tmp_path: Path) -> None:
    order(tmp_path, "sleep 60")
    serving.send_signal(signal.SIGUSR1)
    pid = int(told(serving).split()[-1])
    serving.send_signal(signal.SIGUSR1)
    os.kill(pid, signal.SIGKILL)
    assert told(serving) == "roachproof exited 137"


def test_ended_from_outside_it_asks_its_process_to_stop_and_leaves_the_order(
    serving: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    """As when somebody deletes the pod: the next one goes on with what this one was told."""
    os.mkfifo(tmp_path / "set")
    order(tmp_path, f"trap 'exit 3' TERM; echo > {tmp_path}/set; while :; do sleep 0.02; done")
    serving.send_signal(signal.SIGUSR1)
    told(serving)
    (tmp_path / "set").read_text()
    serving.send_signal(signal.SIGTERM)
    assert told(serving) == "roachproof exited 3 pod"
    assert serving.wait(timeout=60) == 0
    assert (tmp_path / "node" / "order").exists()


@pytest.mark.parametrize(("pod", "goes_on"), [("that", False), ("another", True)])
def test_what_ran_goes_on_in_another_pod_and_not_in_another_container(script: Path, pod: str, goes_on: bool) -> None:
    """A container that is made anew in its pod was ended by something, as by a lack of memory: that is to be seen."""
    order(script.parent, "echo goes on; sleep 60")
    (script.parent / "node" / "pod").write_text("that\n")
    env = {**os.environ, "ROACHPROOF_POD": pod}
    line = ["/bin/sh", str(script), "serve"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, start_new_session=True, env=env)
    try:
        assert told(process) == "roachproof ready"
        if goes_on:
            assert told(process).startswith("roachproof started ")
        else:
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0
            assert not (script.parent / "node" / "order").exists()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_ended_while_idle_it_ends_at_once(serving: "subprocess.Popen[str]") -> None:
    serving.send_signal(signal.SIGTERM)
    assert serving.wait(timeout=60) == 0


def test_questions_are_answered_one_a_line(script: Path) -> None:
    asked = "1 echo one\n2 eval 'echo two; echo three >&2; exit 4'\n3 nonsense-program\n4 echo last\n"
    done = subprocess.run(["/bin/sh", script, "shell"], input=asked, capture_output=True, text=True, check=True)
    answers = [line.split(" ") for line in done.stdout.splitlines()]
    assert [(number, code) for number, code, _ in answers] == [("1", "0"), ("2", "4"), ("3", "127"), ("4", "0")]
    assert base64.b64decode(answers[1][2]) == b"two\nthree"


@pytest.mark.parametrize("content", [b"", b"plain", b"\x00\xff'\"$(no)\n\n", bytes(range(256)) * 300])
def test_a_file_is_written_whole_and_for_nobody_else(tmp_path: Path, content: bytes) -> None:
    there = tmp_path / "a b" / "secret's"
    for _ in range(2):
        subprocess.run(["/bin/sh", "-c", commands.written(PurePath(there), content)], check=True)
    assert there.read_bytes() == content
    assert there.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in there.parent.iterdir()] == ["secret's"]
