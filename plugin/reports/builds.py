"""Which builds a trial tested, as every report shows them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def tested_of(described: Mapping[str, Any]) -> str:
    """Engine and version of a ``trial.json``; empty where no database was started."""
    return named(described.get("context") or {})


def named(context: Mapping[str, Any]) -> str:
    """Engine and version of a context, as far as they are known."""
    return " ".join(str(context[key]) for key in ("engine", "version") if context.get(key))


def builds_of(described: Mapping[str, Any]) -> Mapping[str, str]:
    """Facts of the builds in a ``trial.json``: commit, digests, origin, settings; by version of several."""
    by_version = {str(one.get("version") or ""): one for one in fingerprints_of(described)}
    return {
        f"{name} of {version}" if len(by_version) > 1 else name: value
        for version, one in by_version.items()
        for name, value in _build(one).items()
    }


def fingerprints_of(described: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What identifies each build of a ``trial.json``; nothing where no database was started."""
    own = described.get("fingerprint") or {}
    observed = {name.rpartition(", ")[2]: seen for name, seen in (described.get("observed") or {}).items()}
    sides = {name: {**one, **observed.get(name, {})} for name, one in (described.get("sides") or {}).items()}
    return [one for one in (own, *sides.values()) if one]


def targets_of(fingerprints: Iterable[Mapping[str, Any]]) -> Sequence[Mapping[str, str | None]]:
    """Each of these builds once, for programs: engine, version, day and commit of the build, digest of its program.

    ``None`` stands for what is not known. Of an engine of several programs the digest is the server's own.
    """
    found = {}
    for one in fingerprints:
        known = {name: str(one[name]) if one.get(name) else None for name in ("engine", "version", "date", "commit")}
        digest = next((str(value) for name, value in one.items() if name.endswith("sha256")), None)
        found[*known.values(), digest] = {**known, "sha256": digest, "origin": one.get("origin") or None}
    return [*found.values()]


def _build(fingerprint: Mapping[str, Any]) -> dict[str, str]:
    digests = {name.replace("_", " "): str(value) for name, value in fingerprint.items() if name.endswith("sha256")}
    others = {
        "build": " ".join(str(fingerprint[key]) for key in ("date", "commit") if fingerprint.get(key)),
        "run before": str(fingerprint.get("not_run") or fingerprint.get("run_before") or ""),
        "binary from": str(fingerprint.get("origin") or ""),
        "settings": ", ".join(f"{name} = {value}" for name, value in (fingerprint.get("behaviour") or {}).items()),
        "note": " ".join(map(str, fingerprint.get("notes") or ())),
    }
    return {**digests, **{name: value for name, value in others.items() if value}}
