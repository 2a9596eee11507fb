"""What ``Containerfile`` says, instruction by instruction."""

import json
import re

from tests.docs.commands import CHECKOUT, Words


def instructions() -> list[tuple[str, str]]:
    """Names and what stands after them, in order."""
    text = re.sub(r"^#.*\n", "", (CHECKOUT / "Containerfile").read_text(), flags=re.MULTILINE)
    text = re.sub(r"\s*\\\n\s*", " ", text)
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in text.splitlines() if line)]


def of(name: str) -> list[str]:
    """All instructions of one name."""
    return [rest for one, rest in instructions() if one == name]


def entrypoint() -> Words:
    """What the image runs, in the checkout instead of ``/suite``."""
    (said,) = of("ENTRYPOINT")
    (home,) = of("WORKDIR")
    return tuple(str(word).removeprefix(f"{home}/") for word in json.loads(said))


def writable() -> set[str]:
    """The directories at the root that the image's user may write."""
    commands = [line.split() for line in " && ".join(of("RUN")).split(" && ")]
    made = {place for program, *places in commands if program == "mkdir" for place in places}
    return made & {place for program, *given in commands if program == "chown" for place in given[1:]}
