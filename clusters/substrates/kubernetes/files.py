"""The JSON files that a user's variables name: what all pods are to have, and which image has which program."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from clusters.errors import BadInput

_T = TypeVar("_T")


class _Toleration(Struct, forbid_unknown_fields=True, omit_defaults=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    tolerationSeconds: int | None = None  # noqa: N815 - as in a pod's spec


class _Secret(Struct, forbid_unknown_fields=True):
    name: str


class _Pods(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Of a pod's ``spec`` what a user may say."""

    nodeSelector: dict[str, str] = {}  # noqa: N815
    tolerations: list[_Toleration] = []
    priorityClassName: str = ""  # noqa: N815
    imagePullSecrets: list[_Secret] = []  # noqa: N815


def pods(variable: str, file: str | None) -> Mapping[str, Any]:
    """What the file named by the variable has of a pod's spec; empty where none is named. Raises ``BadInput``."""
    shape = f"a JSON file of what a pod's spec has of {', '.join(_Pods.__struct_fields__)}"
    told: Mapping[str, Any] = msgspec.to_builtins(_told(variable, file, _Pods, shape) or _Pods())
    return told


def images(variable: str, file: str | None) -> Mapping[str, Mapping[str, str]]:
    """For each image of the file, where it has what this machine has at a path. Raises ``BadInput``."""
    shape = 'a JSON file like {"image": {"/path/here": "/path/in/image"}}'
    return _told(variable, file, dict[str, dict[str, str]], shape) or {}


def _told(variable: str, file: str | None, of: type[_T], shape: str) -> _T | None:
    if not file:
        return None
    try:
        return msgspec.json.decode(Path(file).read_bytes(), type=of)
    except (OSError, ValueError) as error:
        raise BadInput(f"{variable}={file}: must name {shape} ({error}); correct it") from error
