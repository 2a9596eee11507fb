"""The image's build is right as far as can be seen without building it; ``test_commands.py`` tries what it runs."""

import re
import subprocess
import tomllib

from plugin.release import VARIABLE
from tests.docs.commands import CHECKOUT
from tests.docs.containerfile import instructions, of, writable


def test_the_user_is_made_and_has_no_rights() -> None:
    user = of("USER")[-1]
    assert user not in ("root", "0")
    assert re.search(rf"\buseradd .*\b{user}\b", of("RUN")[0])
    names = [name for name, _ in instructions()]
    assert names.index("USER") > max(n for n, name in enumerate(names) if name in ("RUN", "COPY")), (
        "root owns the suite"
    )


def test_what_is_copied_and_installed_is_there() -> None:
    with (CHECKOUT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)
    copied = {source for line in of("COPY") for source in line.split()[:-1]}
    assert all((CHECKOUT / source).exists() for source in copied)
    (install,) = [line for line in of("RUN") if "uv pip install" in line]
    groups = re.findall(r"--group (\S+)", install)
    assert set(groups) <= project["dependency-groups"].keys()
    assert re.findall(r"--constraint (\S+)", install) == ["constraints.txt"]
    assert {"constraints.txt", "pyproject.toml"} <= copied
    for line in of("RUN"):
        subprocess.run(["/bin/sh", "-n", "-c", line], check=True)


def test_what_git_ignores_is_in_no_image() -> None:
    """Evidence above all. Podman, Buildah and Docker all read a file of this name."""
    left_out = {line.removeprefix("**/") for line in (CHECKOUT / ".dockerignore").read_text().split()}
    ignored = {line.strip("/") for line in (CHECKOUT / ".gitignore").read_text().split()}
    assert {".git", *ignored} <= left_out
    assert {place.strip("/") for place in writable()} <= ignored, "docs/ci.md makes them in the checkout"


def test_its_python_is_one_of_ours() -> None:
    with (CHECKOUT / "pyproject.toml").open("rb") as file:
        least = tomllib.load(file)["project"]["requires-python"].removeprefix(">=")
    (base,) = of("FROM")
    found = re.fullmatch(r"docker\.io/library/python:(\d+\.\d+)-slim", base)
    assert found
    assert tuple(map(int, found[1].split("."))) >= tuple(map(int, least.split(".")))


def test_to_stop_it_is_to_interrupt_pytest() -> None:
    """Else the first process of a container waits for SIGKILL, which gives it no time to record the end."""
    assert of("STOPSIGNAL") == ["SIGINT"]


def test_what_it_writes_lies_where_it_may() -> None:
    environment = dict(word.split("=", 1) for line in of("ENV") for word in line.split())
    assert environment["ROACHPROOF_CACHE"] in writable()
    assert f"${of('ARG')[0].rstrip('=')}" == environment[VARIABLE]
