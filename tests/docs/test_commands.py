"""Each command that a document shows can be given as it stands: what needs no database runs, the rest is looked up."""

import configparser
import importlib.util
import re
import shutil
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from plugin.release import DESCRIBE
from plugin.reports.result_files import SUMMARY_FILE
from tests.docs import commands, containerfile
from tests.docs.commands import CHECKOUT, Words
from tests.docs.pictures import SAMPLE, unpacked
from tests.plugin.conftest import Gate

PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md")), CHECKOUT / "tests/benchmarks/README.md"]
FILES = {"shop.sql": "CREATE TABLE goods (id INT PRIMARY KEY);\n"}
"""What a reader has beside the examples of the pages."""


def written(page: Path, home: Path) -> None:
    """The files that the page's examples are, each by its first line, where that says."""
    mine = home / "mine"
    mine.mkdir(parents=True)
    for name, text in FILES.items():
        (mine / name).write_text(text)
    for block in re.findall(r"^```\w+\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
        if title := re.match(r"# ~/mine/(\S+)\n", block):
            (mine / title[1]).parent.mkdir(parents=True, exist_ok=True)
            (mine / title[1]).write_text(block)


def pytests(words: Words) -> Iterator[Words]:
    """What of a command is pytest's, without its name; all else of it is looked up. What no rule covers is an error."""
    match words:
        case ("python3", "-m", "venv", ".venv"):
            pass
        case ("pip", "install", "-q", *packages):
            tox = configparser.ConfigParser(interpolation=None)
            tox.read(CHECKOUT / "tox.ini")
            required = {re.split(r"\W*[><=]", line)[0] for line in tox["tox"]["requires"].splitlines() if line}
            assert set(packages) == {"tox", *required}
        case ("tox", "-e", name) | ("tox", "-e", name, "--", *_):
            for filled in commands.environment(name, words[4:]):
                yield from pytests(filled)
        case ("python", "-m", "tests.kubernetes.lab", "--machines" | "--regions", _, *command):
            yield from pytests((*words[:3], *command))
        case ("python", "-m", "tests.kubernetes.lab", "--two-versions", *command):
            yield from pytests((*words[:3], *command))
        case ("python", "-m", "tests.kubernetes.lab", *command) if command:
            yield from pytests(tuple(command))
        case ("python", "-m", module):
            found = importlib.util.find_spec(module)
            assert found, f"no module is called {module}"
            assert found.origin
            assert "__main__" in Path(found.origin).read_text() or found.origin.endswith("__main__.py")
        case ("git", "clone", "ADDRESS", "roachproof"):
            pass
        case ("git", "describe", *options):
            assert set(options) < set(DESCRIBE)
        case ("mkdir", "-p", *places):
            assert {f"/{place}" for place in places} == containerfile.writable()
        case ("podman", "build", "--build-arg", given, "-t", _, "."):
            assert containerfile.of("ARG") == [given.partition("=")[0] + "="]
        case ("podman", "run", _, *rest) if "roachproof" in rest:
            at = rest.index("roachproof")
            assert {mount.split(":")[1] for mount in rest[:at] if mount != "-v"} == containerfile.writable()
            program, *entrypoint = containerfile.entrypoint()
            yield from pytests((program, *entrypoint, *rest[at + 1 :]))
        case ("python", "-m", "pytest", *arguments):
            yield tuple(arguments)
        case ("pytest", *arguments):
            yield tuple(arguments)
        case ("kubectl", *given):
            for manifest in (file for option, file in pairwise(given) if option == "-f"):
                for job in (one for one in yaml.safe_load_all(Path(manifest).read_text()) if one["kind"] == "Job"):
                    (container,) = job["spec"]["template"]["spec"]["containers"]
                    arguments = [word for word in container["args"] if not word.startswith("--junit-xml")]
                    yield from pytests((*containerfile.entrypoint(), *arguments))
        case ("ruff" | "mypy", *_):
            pass  # they have run before the tests do
        case _:
            raise AssertionError(f"no rule says how this is tried: {words}")


def as_tried(arguments: Words) -> Words:
    """What is given to pytest: a run of claims says what it would do, and of other tests what they could be marked."""
    if "--judge" in arguments:
        page = Path(arguments[arguments.index("--judge") + 1]).parent / "page.html"
        return (*arguments, "--report", str(page))
    if {"--claims", "--dry-run"} & {*arguments}:
        return arguments
    for word in arguments:
        assert not word.startswith("tests/") or (CHECKOUT / word).exists(), f"{word} is not there"
    claims = any(re.search(r"tests/claims|/mine", word) for word in arguments if not word.startswith("--ignore"))
    return (*arguments, "--dry-run" if claims else "--markers")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stored sample run, with what a run leaves beside its evidence."""
    run = unpacked(SAMPLE, tmp_path_factory.mktemp("sample"))
    (run / SUMMARY_FILE).touch()
    return run


def test_commands_are_understood_and_what_they_name_is_there(sample: Path, tmp_path: Path) -> None:
    tried: dict[Words, str] = {}
    for page in PAGES:
        home = tmp_path / page.relative_to(CHECKOUT).with_suffix("")
        written(page, home)
        (home / ".roachproof").mkdir()
        (home / ".roachproof" / sample.name).symlink_to(sample)
        for block in commands.shown(page.read_text()):
            for words in called(block, home, sample):
                for arguments in pytests(words):
                    tried.setdefault(as_tried(arguments), f"{page.name}: {' '.join(words)}")
    assert len(tried) > 20
    only_read = sum(not {"--dry-run", "--markers"}.isdisjoint(words) for words in tried)
    assert len(tried) / 2 < only_read < len(tried), f"docs/design.md says most: {only_read} of {len(tried)}"
    named = [pair for words in tried for pair in pairwise(words)]
    for version in {given for option, given in named if option == "--cockroach-version"}:
        program = Gate(path=tmp_path, run_dir=tmp_path / "out").fake_cockroach(version)
    for path in {given for option, given in named if option == "--cockroach"}:
        shutil.copy(program, path)
    ends = commands.in_one_process([*tried], tmp_path)
    for where, (status, text) in zip(tried.values(), ends, strict=True):
        assert status == 0, f"{where}\n{text}"


def called(block: str, home: Path, sample: Path) -> list[Words]:
    """What a block calls, with paths that lead to what a reader would have there: each stored run is the sample."""
    block = re.sub(r"\.roachproof/<\w+>", f".roachproof/{sample.name}", block)
    given: Mapping[str, str] = {"VERSION": "v24.1.3", "GITHUB_STEP_SUMMARY": str(home / "summary")}
    there = ("./cockroach", ".roachproof/", "drawn/", "images.json", "result.xml")
    return [
        tuple(
            str(sample) if option == "--judge" else str(home / word) if word.startswith(there) else word
            for option, word in zip(("", *words), words, strict=False)
        )
        for words in commands.called(block, home, given)
    ]
