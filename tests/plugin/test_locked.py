"""``constraints.txt``: one version of each package, within what is asked for, on each Python that runs the suite."""

import configparser
import re
import tomllib
from collections.abc import Iterator

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tests.plugin.conftest import CHECKOUT

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
GROUPS = PROJECT["dependency-groups"]
LOCKED = [Requirement(line) for line in (CHECKOUT / "constraints.txt").read_text().splitlines()]
IMAGE = re.findall(r"^FROM \S+/python:(\d+\.\d+)", (CHECKOUT / "Containerfile").read_text(), re.MULTILINE)
LEAST = PROJECT["project"]["requires-python"].removeprefix(">=")


def direct() -> Iterator[Requirement]:
    """What the groups ask for themselves."""
    for group in GROUPS.values():
        yield from (Requirement(each) for each in group if isinstance(each, str))


def pinned(wanted: Requirement, python: str) -> list[str]:
    """The versions that a Linux machine with this Python gets of what is wanted."""
    where = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
    where |= {
        "platform_machine": "x86_64",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }
    if wanted.marker and not wanted.marker.evaluate(where):
        return []
    found = [one for one in LOCKED if one.name == wanted.name and (not one.marker or one.marker.evaluate(where))]
    assert found, f"{wanted.name} is not pinned on Python {python}"
    return [str(one.specifier).removeprefix("==") for one in found]


@pytest.mark.parametrize("python", [LEAST, *IMAGE])
def test_what_is_asked_for_is_pinned_once_and_within_its_range(python: str) -> None:
    tried = 0
    for wanted in direct():
        for version in pinned(wanted, python):
            assert wanted.specifier.contains(Version(version), prereleases=True), f"{wanted} is pinned at {version}"
            tried += 1
        assert len(pinned(wanted, python)) <= 1
    assert tried > 15


def test_it_is_locked_for_each_python_not_for_one() -> None:
    """The image installs from it on a newer one than the oldest that runs the suite."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(CHECKOUT / "tox.ini")
    words = tox["testenv:lock"]["commands"].split()
    assert "--universal" in words
    assert words[words.index("--python-version") + 1] == LEAST
    (older,) = [one for one in LOCKED if one.name == "pgserver"]
    assert older.marker, "wanted below 3.13 alone: a lock for one Python forgets that"
