"""Where downloads are kept: ``$ROACHPROOF_CACHE``, ``$XDG_CACHE_HOME/roachproof`` or ``~/.cache/roachproof``."""

from collections.abc import Mapping
from pathlib import Path


def cache_dir(environ: Mapping[str, str]) -> Path:
    """Where the cache is, as an absolute path. Creates nothing."""
    if own := environ.get("ROACHPROOF_CACHE"):
        return Path(own).expanduser().absolute()
    # The XDG specification says that a relative path there is to be ignored.
    if (xdg := environ.get("XDG_CACHE_HOME")) and Path(xdg).is_absolute():
        return Path(xdg) / "roachproof"
    home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    return home.absolute() / ".cache" / "roachproof"
