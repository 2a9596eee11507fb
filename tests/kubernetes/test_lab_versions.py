"""Which versions a command in the tests' Kubernetes changes between: no lab is needed for that."""

from pathlib import Path

import pytest

from tests.kubernetes.lab.__main__ import two_versions


@pytest.mark.parametrize(
    ("cached", "command", "named"),
    [
        (["v25.4.0", "v26.1.0", "v26.1.1", "v26.1.2"], ["pytest"], ["v26.1.1", "v26.1.2"]),
        (["v25.4.0", "v26.1.0"], ["pytest"], []),
        ([], ["pytest"], []),
        (["v26.1.0", "v26.1.1"], ["pytest", "--cockroach-version=v26.1.0"], []),
    ],
    ids=["the newest two of a series", "one of a series", "none", "the command names one"],
)
def test_a_command_changes_to_the_newest_version(
    cached: list[str], command: list[str], named: list[str], tmp_path: Path
) -> None:
    for version in cached:
        (tmp_path / "cockroach" / version).mkdir(parents=True)
        (tmp_path / "cockroach" / version / "cockroach").touch()
    options = two_versions(tmp_path, command)
    assert options[1::2] == named
    assert options[::2] == ["--cockroach-version"] * len(named)
