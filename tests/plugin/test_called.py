"""Commands that are printed work where they are printed: in a checkout, and in an image, which has no tox."""

import shlex
import shutil
from pathlib import Path

import pytest

from plugin.called import called
from plugin.release import VARIABLE
from tests.docs import containerfile
from tests.plugin.conftest import CHECKOUT, Gate


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What of the checkout its build takes, and what it says of itself."""
    home = tmp_path / "suite"
    home.mkdir()
    shutil.copy(CHECKOUT / "tox.ini", home)
    monkeypatch.setenv(VARIABLE, "")
    return home


def test_a_checkout_has_tox(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (image / ".git").mkdir()
    assert called("gate", "--judge x", image) == ".venv/bin/tox -e gate -- --judge x"
    assert called("report", home=image) == ".venv/bin/tox -e report"
    (image / ".git").rmdir()
    monkeypatch.delenv(VARIABLE)
    assert called("gate", "--judge x", image) == ".venv/bin/tox -e gate -- --judge x", "an archive of the checkout"


def test_an_image_runs_what_tox_would(image: Path) -> None:
    suite = f"python -m pytest -c {image}/pyproject.toml -o testpaths=tests/claims"
    assert called("gate", "--judge x", image) == f"{suite} --suite gate --engine cockroach --judge x"
    control = "--engine auto --default-keyword test_a_killed_node"
    assert called("try", "--cockroach-version X", image) == f"{suite} {control} --cockroach-version X"
    assert called("report", home=image) == "python -m plugin.reports.allure_html"


def test_an_image_without_tox_ini_names_tox(image: Path) -> None:
    (image / "tox.ini").unlink()
    assert called("gate", "--judge x", image) == ".venv/bin/tox -e gate -- --judge x"


def test_the_image_itself_runs_the_same(image: Path) -> None:
    """But for where its evidence goes."""
    words = shlex.split(called("gate", home=image).replace(f"{image}/", ""))
    entrypoint = [*containerfile.entrypoint()]
    at = entrypoint.index("--run-dir")
    assert [word for word in entrypoint[:at] if word not in ("-p", "no:cacheprovider")] == words


def test_a_run_and_its_page_print_them(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    (gate.path / "conftest.py").write_text(
        "from pathlib import Path\n"
        "from plugin import called\n"
        "called.called.__defaults__ = (*called.called.__defaults__[:-1], Path(__file__).parent)\n"
    )
    shutil.copy(CHECKOUT / "tox.ini", gate.path)
    monkeypatch.setenv(VARIABLE, "v1.2.3-0-g0123456789ab")
    ran = gate(*gate.tests("passes"), "--engine", "auto", "--run-dir", "out")
    assert ran.status == 0, ran.text
    here = f"python -m pytest -c {gate.path}/pyproject.toml -o testpaths=tests/claims --suite gate --engine cockroach"
    assert f"judge it again: {here} --judge out" in ran.text
    assert f"<code>{here} --judge=out</code>" in (gate.run_dir / "report.html").read_text()
    assert "bin/tox" not in ran.text
