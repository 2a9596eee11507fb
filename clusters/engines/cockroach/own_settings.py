"""Cluster settings of the user's own (``--cluster-setting``): each new cluster is given them, as production is."""

import re
from collections.abc import Callable, Mapping

from clusters.engines.cockroach.licences import KEY, ORGANISATION
from clusters.engines.cockroach.licences import SETTINGS as LICENCE
from clusters.errors import BadInput
from clusters.sql import Connection, Failure, SqlError

OPTION = "--cluster-setting"
SECRET = re.compile("secret|license|password|token|key")
"""Names of settings whose values are told to nobody."""
_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)+")
_RESERVED = {
    **dict.fromkeys(LICENCE.values(), f"set {KEY} and {ORGANISATION} in the environment"),
    "cluster.preserve_downgrade_option": "changes of version set it by themselves; leave it out",
    "version": "changes of version set it by themselves; leave it out",
}


def checked(settings: Mapping[str, str]) -> Mapping[str, str]:
    """The same settings. Raises ``BadInput`` for one that cannot be given so, before any cluster starts."""
    for name, value in settings.items():
        if name in _RESERVED:
            raise BadInput(f"{OPTION} {name}: is not given so; {_RESERVED[name]}")
        if not _NAME.fullmatch(name):
            raise BadInput(
                f"{OPTION} {name}={value}: {name} is no setting's name; they have small letters, digits, _ and dots: "
                "sql.stats.automatic_collection.enabled"
            )
        if SECRET.search(name):
            raise BadInput(
                f"{OPTION} {name}: may hold a secret, and verdicts tell what was set; give it to a cluster of your own "
                "(--substrate adopted), or leave it out"
            )
    return settings


async def give_own(connection: Connection, settings: Mapping[str, str], left_s: Callable[[], float]) -> None:
    """Give a new cluster these settings, in the time that is left.

    Raises ``BadInput`` for one that servers do not take, ``SqlError`` where they did not answer.
    """
    for name, value in settings.items():
        literal = value.replace("'", "''")
        try:
            await connection.execute(f"SET CLUSTER SETTING {name} = '{literal}'", timeout=left_s())
        except SqlError as error:
            if error.failure is not Failure.REFUSED:
                raise
            raise BadInput(
                f"{OPTION} {name}={value}: the server does not take it ({error}); give a setting that this version has "
                "(SHOW ALL CLUSTER SETTINGS), with a value of its kind, or leave it out"
            ) from error
