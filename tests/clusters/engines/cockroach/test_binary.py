"""Which binary is taken, in which order, and what is said of one that cannot be."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from clusters.cache import cache_dir
from clusters.engines.cockroach import binary
from clusters.engines.cockroach import cache as store
from clusters.engines.cockroach.binary import Binary, inspect, resolve
from clusters.engines.cockroach.engine import Cockroach
from clusters.engines.cockroach.introspection import parse_build
from clusters.engines.cockroach.vendor import Vendor
from clusters.engines.cockroach.version import Version
from clusters.engines.cockroach.versions import OLDEST, dialect_for
from clusters.errors import BadInput
from tests.clusters.substrates.processes.process_nodes import PATIENCE_S, alive

NOBODY = Vendor(downloads="http://127.0.0.1:9", releases="http://127.0.0.1:9/releases.yml", stall_s=2)
"""Nothing listens on the discard port."""


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def fake(path: Path, tag: str) -> Path:
    """Answers as CockroachDB does."""
    return script(
        path,
        '[ "$*" = "start --help" ] && echo --join && exit\n'
        f'[ "$*" = version ] || exit 4\necho "Build Tag:        {tag}"; echo "Build Time:       2020/11/30 22:24:16"\n'
        'echo "Build Commit ID:  e017dd1353c15c98c242f4310ec3584b29e4181e"',
    )


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def find(cache: Path, *, path: str | None = None, version: str | None = None, **environ: str) -> Binary:
    return resolve(path=path, version=version, environ={"PATH": "", **environ}, cache=cache, vendor=NOBODY)


class TestOrder:
    @pytest.fixture
    def all_of_them(self, tmp_path: Path, cache: Path) -> dict[str, str]:
        fake(tmp_path / "bin" / "cockroach", "v24.1.3")
        fake(store.binary_path(cache, Version.parse("v24.1.4")), "v24.1.4")
        fake(store.binary_path(cache, Version.parse("v24.1.10")), "v24.1.10")
        return {
            "option": str(fake(tmp_path / "given", "v24.1.1")),
            "variable": str(fake(tmp_path / "set", "v24.1.2")),
            "PATH": str(tmp_path / "bin"),
        }

    def test_each_goes_before_the_next(self, cache: Path, all_of_them: dict[str, str]) -> None:
        option, variable, path = all_of_them["option"], all_of_them["variable"], all_of_them["PATH"]
        found = [
            find(cache, path=option, COCKROACH_BINARY=variable, PATH=path),
            find(cache, version="24.1.4", COCKROACH_BINARY=variable, PATH=path),
            find(cache, COCKROACH_BINARY=variable, PATH=path),
            find(cache, PATH=path),
            find(cache),
        ]
        assert [str(b.version) for b in found] == ["v24.1.1", "v24.1.4", "v24.1.2", "v24.1.3", "v24.1.10"]
        assert [b.origin for b in found] == [
            "--cockroach",
            f"--cockroach-version 24.1.4, from the cache {cache}",
            "COCKROACH_BINARY",
            "PATH",
            f"newest in the cache {cache}",
        ]

    def test_none_to_be_had_names_every_way_out(self, cache: Path) -> None:
        with pytest.raises(BadInput) as caught:
            find(cache)
        for words in (
            "no CockroachDB to test",
            "127.0.0.1:9/releases.yml can't be reached",
            "--cockroach PATH",
            "--cockroach-version vX.Y.Z",
            f"{cache}/cockroach/vX.Y.Z/cockroach",
            "--engine postgres",
            "--engine auto",
            "https://www.cockroachlabs.com/docs/releases/",
        ):
            assert words in str(caught.value)

    def test_a_version_that_is_nonsense(self, cache: Path) -> None:
        with pytest.raises(BadInput, match="--cockroach-version: 'newest' is not a CockroachDB version"):
            find(cache, version="newest")

    def test_two_options_that_contradict_each_other(self, tmp_path: Path, cache: Path) -> None:
        given = str(fake(tmp_path / "given", "v24.1.1"))
        assert find(cache, path=given, version="24.1.1").build.tag == "v24.1.1"
        with pytest.raises(BadInput, match=r"is v24\.1\.1, but --cockroach-version asks for v24\.1\.2"):
            find(cache, path=given, version="v24.1.2")

    @pytest.mark.parametrize("version", [None, "v24.1.3"])
    def test_a_binary_that_lies_in_the_cache_under_another_name(self, cache: Path, version: str | None) -> None:
        fake(store.binary_path(cache, Version.parse("v24.1.3")), "v23.2.1")
        with pytest.raises(
            BadInput, match=r"as v24\.1\.3, but says that it is v23\.2\.1\. Move it to .*/v23\.2\.1/cockroach"
        ):
            find(cache, version=version)

    def test_what_else_lies_in_the_cache_does_not_count(self, cache: Path) -> None:
        fake(cache / "cockroach" / ".unpack-v25.1.0" / "cockroach", "v25.1.0")
        fake(cache / "cockroach" / "25.2.0" / "cockroach", "v25.2.0")
        fake(cache / "cockroach" / "notes" / "cockroach", "v25.3.0")
        (cache / "cockroach" / "v25.4.0").mkdir()
        assert store.versions(cache) == ()
        fake(cache / "cockroach" / "v24.1.0" / "cockroach", "v24.1.0")
        assert [str(v) for v in store.versions(cache)] == ["v24.1.0"]

    def test_where_the_cache_is(self, tmp_path: Path) -> None:
        assert cache_dir({"ROACHPROOF_CACHE": "/c", "XDG_CACHE_HOME": "/x", "HOME": "/h"}) == Path("/c")
        assert cache_dir({"XDG_CACHE_HOME": "/x", "HOME": "/h"}) == Path("/x/roachproof")
        assert cache_dir({"XDG_CACHE_HOME": "relative", "HOME": "/h"}) == Path("/h/.cache/roachproof")
        assert cache_dir({"ROACHPROOF_CACHE": "here"}) == Path.cwd() / "here"


class TestUnusable:
    """Each is refused with the option or variable that it came from, the path and what to do."""

    def refusal(self, path: Path) -> str:
        with pytest.raises(BadInput) as caught:
            inspect(path, "COCKROACH_BINARY")
        assert str(caught.value).startswith(f"COCKROACH_BINARY: {path}")
        return str(caught.value)

    def test_not_there(self, tmp_path: Path) -> None:
        assert "no such file" in self.refusal(tmp_path / "cockroach")

    def test_a_directory(self, tmp_path: Path) -> None:
        assert "is a directory" in self.refusal(tmp_path)

    def test_not_executable(self, tmp_path: Path) -> None:
        path = fake(tmp_path / "cockroach", "v24.1.0")
        path.chmod(0o644)
        assert "chmod +x" in self.refusal(path)

    @pytest.mark.parametrize(
        ("head", "said"),
        [
            (b"\xcf\xfa\xed\xfe" + bytes(60), "macOS"),
            (b"MZ" + bytes(60), "Windows"),
            (b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xf3\x00" + bytes(44), "riscv64"),
            (b"", "an empty file"),
            (b"neither a program nor a script", "no program"),
            (b"#!/no/such/interpreter\n", "/no/such/interpreter"),
        ],
    )
    def test_not_a_program_for_this_machine(self, tmp_path: Path, head: bytes, said: str) -> None:
        path = tmp_path / "cockroach"
        path.write_bytes(head)
        path.chmod(0o755)
        assert said in self.refusal(path)

    @pytest.mark.parametrize(
        ("body", "said"),
        [
            ("exit 0", "exited with 0 and printed 'nothing'"),
            ('echo "$@"', "printed 'version'"),
            ('echo "Build Tag:"; echo "Build Time: 2020"', "printed 'Build Tag:'"),
            ("echo no such command >&2; exit 3", "exited with 3 and printed 'no such command'"),
        ],
    )
    def test_another_program(self, tmp_path: Path, body: str, said: str) -> None:
        refusal = self.refusal(script(tmp_path / "cockroach", body))
        assert "is not CockroachDB" in refusal
        assert said in refusal

    @pytest.mark.parametrize(
        "start", ["echo unknown command >&2; exit 1", "echo Usage: cockroach-sql"], ids=["unknown", "a client"]
    )
    def test_no_server(self, tmp_path: Path, start: str) -> None:
        path = script(tmp_path / "cockroach", f'[ "$*" = version ] && echo "Build Tag: v24.1.0" && exit\n{start}')
        assert "answers `version` and is no server: `cockroach start --help` exited with" in self.refusal(path)

    def test_a_build_without_a_version(self, tmp_path: Path) -> None:
        assert "'d98e083' is not a CockroachDB version" in self.refusal(fake(tmp_path / "cockroach", "d98e083"))

    def test_it_hangs_and_leaves_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        pids = tmp_path / "pids"
        path = script(tmp_path / "cockroach", f"sleep 300 &\necho $! $$ > {pids}\nwait")
        for seconds in (1, 10, 100):  # by then it must have begun
            monkeypatch.setattr(binary, "ANSWER_S", float(seconds))
            assert f"did not answer `version` within {seconds} s" in self.refusal(path)
            if pids.exists():
                break
        # what was killed dies when it is next given a CPU
        left = {int(pid) for pid in pids.read_text().split()}
        assert len(left) == 2
        until = time.monotonic() + PATIENCE_S
        while left := {pid for pid in left if alive(pid)}:
            assert time.monotonic() < until, left
            time.sleep(0.01)


def test_a_build_says_its_date_and_commit(tmp_path: Path) -> None:
    found = inspect(fake(tmp_path / "cockroach", "v20.2.0-dev.20201130"), "PATH")
    assert found.version.series == (20, 2)
    assert str(found.build) == "v20.2.0-dev.20201130 of 2020-11-30 (e017dd1353)"


def test_what_follows_a_plus_is_no_part_of_a_version(tmp_path: Path) -> None:
    """Servers' tags are read so, too: a node that was given such a build was told to call itself something else."""
    found = inspect(fake(tmp_path / "cockroach", "v24.1.3+built.twice"), "--cockroach")
    assert Cockroach(binary=found, dialect=dialect_for(found.version)).version == "v24.1.3"
    assert str(parse_build("CockroachDB CCL v24.1.3+built.twice (x86_64-pc-linux-gnu)")) == "v24.1.3"


def test_a_build_may_say_nothing_but_its_tag(tmp_path: Path) -> None:
    found = inspect(script(tmp_path / "cockroach", "echo Build Tag: v24.1.0; echo --join"), "PATH")
    assert str(found.build) == "v24.1.0"


def test_diagnostics_reporting_is_off_while_it_is_asked(tmp_path: Path) -> None:
    path = script(
        tmp_path / "cockroach",
        f'echo "$COCKROACH_SKIP_ENABLING_DIAGNOSTIC_REPORTING" > {tmp_path}/said; echo Build Tag: v24.1.0; echo --join',
    )
    inspect(path, "PATH")
    assert (tmp_path / "said").read_text() == "1\n"


def test_a_build_has_a_digest(tmp_path: Path) -> None:
    path = fake(tmp_path / "cockroach", "v24.1.0")
    assert inspect(path, "PATH").sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.skipif("COCKROACH_BINARY" not in os.environ, reason="needs a CockroachDB binary in COCKROACH_BINARY")
def test_a_real_binary(cache: Path) -> None:
    found = find(cache, COCKROACH_BINARY=os.environ["COCKROACH_BINARY"])
    assert found.version.series >= OLDEST
    assert found.path.samefile(os.environ["COCKROACH_BINARY"])
