"""Load generators beside a cluster of others: a Job in its namespace, which goes with the run, and nothing else."""

import asyncio
from collections.abc import Callable
from typing import Self

from clusters.errors import BadInput, HarnessError
from clusters.generators import WantedGenerators
from clusters.substrates.adopted.finding import Found
from clusters.substrates.kubernetes import cleanup
from clusters.substrates.kubernetes.api import Api
from clusters.substrates.kubernetes.capacity import refuse_old, refuse_shortage
from clusters.substrates.kubernetes.generators import Generators
from clusters.substrates.kubernetes.history import History
from clusters.substrates.kubernetes.manifests import Settings
from clusters.substrates.kubernetes.pods import Pods
from clusters.substrates.kubernetes.rights import GENERATORS, refuse_without
from clusters.substrates.kubernetes.settings import Given


class Beside:
    """The load generators of one run. ``generators`` are there after ``begin``, and gone after ``close``."""

    generators: Generators

    def __init__(self, api: Api, settings: Settings, context: str | None, history: History) -> None:
        self._api, self._settings = api, settings
        self._pods = Pods(api, settings, history)
        self._guard = cleanup.Guard(settings, context, own=False, keep_logs=None, scratch=None)

    @classmethod
    async def begin(
        cls,
        api: Api,
        found: Found,
        wanted: WantedGenerators,
        *,
        cluster: str,
        given: Given,
        history: History,
        say: Callable[[str], None],
    ) -> Self:
        """Make them, and wait until all run. ``cluster``: what their labels say that they are of.

        If the harness dies they are deleted all the same. Raises ``BadInput``, ``HarnessError``; then nothing is left.
        """
        settings = Settings(
            namespace=found.namespace,
            cluster=cluster,
            generators=True,
            pods=given.pods,
            owner=given.owner,
            others=found.labels,
        )
        await refuse_old(api)
        await refuse_without(api, GENERATORS, found.namespace)
        await refuse_shortage(
            api,
            settings,
            own=False,
            nodes=(),
            resources=None,
            generators=wanted,
            where={},
            say=say,
            autoscaled=given.autoscaled,
        )
        self = cls(api, settings, given.context, history)
        try:
            say(f"starting {wanted.number} load generators")
            self.generators = await Generators.begin(api, settings, self._pods, wanted, given.start_s)
        except BaseException as error:
            try:
                await self.close()
            except (HarnessError, BadInput) as further:
                error.add_note(str(further))
            raise
        return self

    def refuse_dead(self) -> None:
        """Raise ``HarnessError`` where nobody would end them if the harness were killed."""
        self._guard.refuse_dead()

    async def close(self) -> None:
        """End them, and wait until they are gone. Raises ``HarnessError`` where one resists."""
        self._pods.close()
        await asyncio.to_thread(cleanup.remove, self._api, self._settings, own=False)
        # Only now: were the harness killed while it deletes, the guard would go on.
        await asyncio.to_thread(self._guard.dismiss)
