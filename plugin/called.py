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

    An image is known by what its build says of its revision, and has no repository. In one that was built without
    ``tox.ini`` it is tox all the same: no run may fail by what it prints at its end.
    """
    tox = ConfigParser(interpolation=None)
    if VARIABLE in os.environ and not (home / ".git").exists():
        tox.read(home / "tox.ini", encoding="utf-8")
    command = tox.get(f"testenv:{environment}", "commands", fallback="").strip()
    if not command:
        return f"{TOX} -e {environment} -- {given}" if given else f"{TOX} -e {environment}"
    command = command.replace("{tox_root}{/}", f"{home}/").replace("{posargs}", given)
    return re.sub(r"^pytest\b", "python -m pytest", command).strip()
