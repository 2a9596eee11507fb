"""What a user says of her Kubernetes: environment variables, each read before a cluster is opened."""

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePath
from typing import Any

from clusters.errors import BadInput
from clusters.model import PLANNED, Capability, NodeResources, Tells
from clusters.substrates.kubernetes.manifests import PROGRAMS

CAPABILITIES = frozenset(Capability) - PLANNED - {Capability.CUT_LINKS}
"""What can be done to nodes here in any case, as far as the engine can."""
CONTEXT = "ROACHPROOF_KUBERNETES_CONTEXT"
NAMESPACE = "ROACHPROOF_KUBERNETES_NAMESPACE"
IMAGE = "ROACHPROOF_KUBERNETES_IMAGE"
IMAGES = "ROACHPROOF_KUBERNETES_IMAGES"
STORAGE = "ROACHPROOF_KUBERNETES_STORAGE_CLASS"
VOLUME = "ROACHPROOF_KUBERNETES_VOLUME_MIB"
CUTS = "ROACHPROOF_KUBERNETES_CUTTER_IMAGE"
REACH = "ROACHPROOF_KUBERNETES_REACH"
POD = "ROACHPROOF_KUBERNETES_OWNER"
PROCESSES = "ROACHPROOF_KUBERNETES_PROCESSES"
PODS = "ROACHPROOF_KUBERNETES_PODS"
SCALES = "ROACHPROOF_KUBERNETES_AUTOSCALED"
LEAST_VOLUME_MIB = 10240
"""The smallest that is asked for by default: some storage classes give none smaller (our own choice)."""
_START_S, _SCALED_S = 300.0, 900.0
"""How long a pod may take to run: its image is pulled. And where a machine is added for it first."""
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class Reach(StrEnum):
    """How the harness reaches pods: in the cluster's network, by port-forwarding, or as it finds."""

    FOUND = "auto"
    DIRECT = "direct"
    FORWARDED = "port-forward"


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """A program or directory of this machine, as pods have it: in ``image`` at ``inside``, or copied where it is none.

    ``path`` is what the pods call it in any case. ``beside``: the image that it is copied into, where not any will do.
    """

    source: Path
    path: PurePath
    image: str | None = None
    inside: str = ""
    beside: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """The values. ``images``: for each image, where it has what this machine has at a path."""

    context: str | None
    namespace: str | None
    image: str | None
    images: Mapping[str, Mapping[str, str]]
    storage_class: str | None
    volume_mib: int | None
    cutter: str | None
    """An image with Python and ``nft``, where links may be cut."""
    reach: Reach
    owner: tuple[str, str] | None
    """The pod that the harness runs in, where all that it makes is to go with that: its name and uid."""
    pods: Mapping[str, Any]
    """What all pods are to have beside: where they may go, and with which secrets their images are pulled."""
    autoscaled: bool
    """Whether machines are added as pods need them."""

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> "Given":
        """Raises ``BadInput`` that names the variable."""
        volume = environment.get(VOLUME)
        if volume is not None and (not volume.isdecimal() or int(volume) < 64):
            raise BadInput(f"{VOLUME}={volume}: must be a whole number of MiB, at least 64; give such a figure")
        namespace = environment.get(NAMESPACE, "")
        if namespace and not _LABEL.fullmatch(namespace):
            raise BadInput(
                f"{NAMESPACE}={namespace}: must be at most 63 small letters, digits and '-', as Kubernetes has it; "
                "give the name of a namespace that is there"
            )
        owner = environment.get(POD) or ""
        if owner and not (namespace and all(owner.partition("/")[::2])):
            raise BadInput(
                f"{POD}={owner}: must be the name and the uid of a pod as NAME/UID, with {NAMESPACE} its namespace; "
                "give both, or neither"
            )
        reach = environment.get(REACH) or Reach.FOUND
        if reach not in [*Reach]:
            raise BadInput(f"{REACH}={reach}: must be one of {', '.join(Reach)}; give one of these, or none")
        if (scales := environment.get(SCALES, "")) not in ("", "1"):
            raise BadInput(f"{SCALES}={scales}: must be 1; give that, or nothing where no machines are added")
        # .ci/kubernetes imports this module before any package is installed.
        from clusters.substrates.kubernetes import files

        return cls(
            cutter=environment.get(CUTS) or None,
            reach=Reach(reach),
            owner=owner.partition("/")[::2] if owner else None,
            pods=files.pods(PODS, environment.get(PODS)),
            autoscaled=scales == "1",
            context=environment.get(CONTEXT) or None,
            namespace=namespace or None,
            image=environment.get(IMAGE) or None,
            images=files.images(IMAGES, environment.get(IMAGES)),
            storage_class=environment.get(STORAGE) or None,
            volume_mib=None if volume is None else int(volume),
        )

    @property
    def start_s(self) -> float:
        """How long a pod may take to run, in seconds."""
        return _SCALED_S if self.autoscaled else _START_S

    def volume_of(self, node: NodeResources | None) -> int:
        """How large a node's volume is to be, in MiB: the profile's, unless another size is asked for."""
        return self.volume_mib or max(LEAST_VOLUME_MIB, (node and node.disk_mib) or 0)

    def default_image(self) -> str:
        """What pods run in where nothing else is known. Raises ``BadInput`` where nothing is."""
        if image := self.image or next(iter(self.images), None):
            return image
        raise BadInput(
            f"substrate kubernetes: no image was given; set {IMAGE} to one that has /bin/sh and coreutils, into which "
            f"programs are then copied, or {IMAGES} to a file that says which image has which program"
        )

    def names(self, image: str) -> str:
        """The variable that names an image, with its value, as messages begin; empty where none does."""
        if image in self.images:
            return f"{IMAGES}: image {image}"
        return f"{IMAGE}={image}" if image == self.image else ""

    def belied(self, program: Program, tells: Tells, printed: str) -> str:
        """That a program of an image is another version than the one of this machine, by what it prints there.

        Empty where it is the same, or does not say.
        """
        if (called := tells.read(printed)) in ("", tells.version):
            return ""
        return (
            f"{IMAGES}: image {program.image}: {program.inside} calls itself {called}, and {program.source} of this "
            f"machine is {tells.version}; correct that line of the file, or name an image that has {tells.version}"
        )

    def program(self, source: Path) -> Program:
        """How pods get a program of this machine."""
        resolved = source.resolve()
        for image, has in self.images.items():
            for there, inside in has.items():
                if Path(there).resolve() == resolved:
                    return Program(source=resolved, path=_path(f"{image} {inside}", source), image=image, inside=inside)
        return Program(source=resolved, path=_path(str(resolved), source))


def run_below(environment: Mapping[str, str] = os.environ) -> tuple[int, ...]:
    """The processes of this machine below which the cluster runs, as they are named; by default none.

    Raises ``BadInput``.
    """
    if not (told := environment.get(PROCESSES)):
        return ()
    import psutil

    found = [int(one) if one.isdecimal() else 0 for one in told.split(",")]
    # Of the first one everything of the machine would be the run's.
    if not all(one > 1 and psutil.pid_exists(one) for one in found):
        raise BadInput(
            f"{PROCESSES}={told}: must be the ids of processes of this machine, with commas between them; name those "
            "below which the cluster's own run, or none where it runs elsewhere"
        )
    return tuple(found)


def _path(key: str, source: Path) -> PurePath:
    return PROGRAMS / hashlib.sha256(key.encode()).hexdigest()[:12] / source.name
