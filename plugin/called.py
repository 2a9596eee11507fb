"""How commands that are printed call the suite: by tox in a checkout, by pytest in an image, which has no tox."""

import os
import re
from configparser import ConfigParser
from pathlib import Path

from plugin.options import TOX
from plugin.release import VARIABLE

HOME = Path(__file__).parents[1]


def called(environment: str, given: str = "", home: Path = HOME) -> str:
    """The command that runs an environment of tox with these options; in an image what tox would run there.

    An image is known by what its build says of its revision, and has no repository.
    """
    if (home / ".git").exists() or VARIABLE not in os.environ:
        return f"{TOX} -e {environment} -- {given}" if given else f"{TOX} -e {environment}"
    tox = ConfigParser(interpolation=None)
    tox.read(home / "tox.ini", encoding="utf-8")
    command = tox[f"testenv:{environment}"]["commands"].strip()
    command = command.replace("{tox_root}{/}", f"{home}/").replace("{posargs}", given)
    return re.sub(r"^pytest\b", "python -m pytest", command).strip()
