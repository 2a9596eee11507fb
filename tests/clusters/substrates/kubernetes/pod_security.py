"""The level ``restricted`` of Kubernetes' pod security standards, as far as its rules are of fields that we may set."""

from collections.abc import Iterator, Mapping
from typing import Any

_VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret",
}  # fmt: skip
_FORBIDDEN = ("hostNetwork", "hostPID", "hostIPC", "hostUsers")
_PROFILES = ("RuntimeDefault", "Localhost")


def violations(pod: Mapping[str, Any]) -> Iterator[str]:
    """What of a pod's spec the level does not allow."""
    own = pod.get("securityContext") or {}
    yield from (name for name in _FORBIDDEN if name in pod)
    for volume in pod.get("volumes") or ():
        yield from (f"volume {volume['name']}: {kind}" for kind in volume.keys() - {"name"} - _VOLUMES)
    for container in pod["containers"]:
        name, has = container["name"], container.get("securityContext") or {}
        both = {**own, **has}
        if has.get("privileged") or has.get("procMount", "Default") != "Default":
            yield f"{name} is privileged"
        if has.get("allowPrivilegeEscalation") is not False:
            yield f"{name}: allowPrivilegeEscalation"
        capabilities = has.get("capabilities") or {}
        if "ALL" not in capabilities.get("drop", ()) or set(capabilities.get("add", ())) - {"NET_BIND_SERVICE"}:
            yield f"{name}: capabilities"
        if both.get("runAsNonRoot") is not True or both.get("runAsUser") == 0:
            yield f"{name}: runAsNonRoot"
        if (both.get("seccompProfile") or {}).get("type") not in _PROFILES:
            yield f"{name}: seccompProfile"
        if any("hostPort" in port for port in container.get("ports") or ()):
            yield f"{name}: hostPort"
