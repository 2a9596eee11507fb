"""One run: what was asked for, what this host is, which databases are tested, and where the evidence goes.

Built once a process from the settings. Under pytest-xdist the controller makes the run directory and draws the seed;
workers are told both. Nothing is started and no binary is looked for until a claim needs it.
"""

import datetime
import fnmatch
import hashlib
import json
import os
import platform
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from clusters import topology
from clusters.declared import suggestion
from clusters.engines import ENGINES, SUBJECT, Engine, EngineKind, Wanted, control_notice, is_control
from clusters.errors import BadInput, HarnessError
from clusters.generators import WantedGenerators
from clusters.model import Topology
from clusters.substrates import LOCAL, SUBSTRATES
from plugin.counts import number_of
from plugin.evidence.redaction import redacted, redacted_json
from plugin.host import Host, measure
from plugin.options import AUTO
from plugin.ours import without_collector
from plugin.profiles import Profile, profile_named
from plugin.release import release
from plugin.settings import Settings, read
from plugin.suites import AS_TAKEN
from plugin.workloads import Workload

if TYPE_CHECKING:
    from fixtures.objects.catalogue import ObjectCheck
    from fixtures.swapping.given import Given
    from plugin.catalogue import Catalogue
    from plugin.claims import Claim
    from plugin.required import Required

S = TypeVar("S")

KEY: pytest.StashKey["Run"] = pytest.StashKey()

DOWNLOAD_S = 60.0
"""How long ``auto`` downloads a subject that nobody named, before the control runs: a first look takes three minutes in
all, of which the control's packages and its claim take two. (Our own choice.)"""


@dataclass(kw_only=True)
class Run:
    """The state of one session."""

    settings: Settings
    worker: str = ""
    controller: bool = True
    why_control: str = ""
    """Why the control runs where ``auto`` found no CockroachDB."""
    tell: Callable[[Mapping[str, Any]], None] | None = None
    """Hears what is said before there is a run directory."""
    required: "Sequence[Required]" = ()
    """What a suite requires to be decided."""
    seen: set[str] = field(default_factory=set)
    """Claims of which tests were found, those among them that pytest then leaves out (``-k``, a node id)."""
    _engines: dict[str, Engine] = field(default_factory=dict)

    @cached_property
    def catalogue(self) -> "Catalogue":
        """All claims: ours and the user's."""
        with without_collector():
            from plugin.catalogue import SHIPPED, load

            return load([*SHIPPED, *self.settings.catalogues])

    def take_suite(self) -> None:
        """Where claims are named and no suite is, take the first one that has a claim of each name."""
        every, patterns = self.catalogue.claims, self.settings.claims
        named = [[every[id_].suites for id_ in fnmatch.filter(every, pattern)] for pattern in patterns]
        if found := [one for one in AS_TAKEN if all(any(one in suites for suites in each) for each in named)]:
            self.settings = replace(self.settings, suite=found[0])

    @cached_property
    def chosen(self) -> frozenset[str]:
        """The ids of the claims to run and require: all, or those that ``--claim`` names. Raises ``BadInput``."""
        every, suite = self.catalogue.claims, self.settings.suite
        found = set[str]()
        for pattern in self.settings.claims:
            matching = fnmatch.filter(every, pattern)
            if not matching:
                raise BadInput(f"--claim {pattern}: no claim is called so; {suggestion(pattern, every)}")
            if not any(suite in every[id_].suites for id_ in matching):
                from plugin.claims import UNBUILT, Status

                has = ", ".join(dict.fromkeys(one for id_ in matching for one in every[id_].suites))
                built = any(every[id_].status is Status.READY for id_ in matching)
                way_out = f"not in the suite {suite}; give --suite, one of {has}" if built else UNBUILT
                raise BadInput(f"--claim {pattern}: is {way_out}")
            found.update(matching)
        return frozenset(id_ for id_ in found if suite in every[id_].suites) or frozenset(every)

    @property
    def of_other_suites(self) -> "list[Claim]":
        """Claims of a family that ``--claim`` names which the suite has not, and others have."""
        patterns, suite = self.settings.claims, self.settings.suite
        named = [claim for claim in self.catalogue if any(fnmatch.fnmatch(claim.id, pattern) for pattern in patterns)]
        return [claim for claim in named if claim.suites and suite not in claim.suites]

    @cached_property
    def objects(self) -> "Sequence[ObjectCheck]":
        """All checks of objects: ours and the user's. Raises ``BadInput``."""
        from fixtures.objects.catalogue import load

        return load(self.settings.objects)

    @cached_property
    def plan(self) -> "Given | None":
        """The plan that was given for changes of version; ``None``: each is drawn. Raises ``BadInput``."""
        if self.settings.plan is None:
            return None
        from fixtures.swapping.given import given, old_joins

        joins = partial(old_joins, self.kind)
        return given(self.settings.plan, self.settings.home, self.targets, joins, twice=self.changed)

    def parameters_for(self, claim: "Claim") -> Mapping[str, tuple[object, ...]]:
        """The values of each argument of the claim's test: the suite's, but for those of a plan that is given."""
        values = claim.parameters_for(self.settings.suite)
        if self.plan and claim.changes_versions:
            return {**values, **self.plan.instead(values)}
        return values

    @cached_property
    def profile(self) -> Profile:
        """The profile asked for. Raises ``BadInput``."""
        try:
            return profile_named(self.settings.profile)
        except BadInput as error:
            raise BadInput(f"--profile: {error}") from error

    @property
    def generators(self) -> int:
        """How many load generators each cluster is to have: as many as were asked for, else as the profile has."""
        if self.settings.substrate == LOCAL or SUBSTRATES[self.settings.substrate].generators is None:
            return 0
        asked = self.settings.generators
        return self.profile.generators.number if asked is None else asked

    @cached_property
    def wanted_generators(self) -> WantedGenerators | None:
        """What they are to be; ``None`` where there are none. Raises ``BadInput``."""
        if not self.generators:
            return None
        if self.settings.generator_image is None:
            whose = f"profile {self.profile.name}" if self.settings.generators is None else "--generators"
            raise BadInput(
                f"{whose}: {number_of(self.generators, 'load generators')} and no image for them; give "
                "--generator-image, one of this checkout (docs/ci.md builds one), or --generators 0 to have all load "
                "come from this machine"
            )
        from fixtures.workloads.relay import code

        return WantedGenerators(
            number=self.generators,
            image=self.settings.generator_image,
            cpus=self.profile.generators.cpus,
            memory_mib=self.profile.generators.memory_mib,
            code=code(),
        )

    def size(self, workload: Workload[S]) -> S:
        """The size of a workload's work in this run's suite: the profile's, or a catalogue's. Raises ``BadInput``.

        What is spread over processes has one at least for each load generator.
        """
        suite, declared = self.settings.suite, self.catalogue.sizes.get(self.profile.name, {}).get(workload.name)
        found: S = self.profile.size(workload, suite) if declared is None else declared.of(suite)
        return workload.spread(found, self.generators)

    def files_of(self, workload: Workload[Any]) -> tuple[Path, ...]:
        """What the user gave of files to a workload, by its option."""
        return self.settings.files.get(workload.name, ())

    @cached_property
    def topology(self) -> Topology:
        """The shape of a cluster whose test declares none: what was asked for, else one node. Raises ``BadInput``."""
        if self.settings.topology is None:
            return topology.of(nodes=1)
        try:
            return topology.load(self.settings.topology)
        except BadInput as error:
            raise BadInput(f"--topology: {error}") from error

    @cached_property
    def host(self) -> Host:
        """What this machine has."""
        return measure(self.settings.run_dir)

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of what is tested, one a version asked for; a repeated version gets a number (an A/A run)."""
        versions = self.settings.versions
        seen: Counter[str] = Counter()
        names = []
        for version in versions:
            seen[version] += 1
            names.append(f"{version}#{seen[version]}" if versions.count(version) > 1 else version)
        return tuple(names) or ("",)

    @property
    def changed(self) -> tuple[str, ...]:
        """What a cluster is given where its version changes: the targets; of a single one that one twice."""
        if len(self.targets) > 1:
            return self.targets
        return tuple(f"{self.targets[0] or self.settings.engine}#{number}" for number in (1, 2))

    def changes_of(self, claim: "Claim") -> int:
        """How many changes of version one trial of a claim makes, each of which takes its time; 1 where none."""
        return len(self.changed) - 1 if claim.changes_versions else 1

    def seconds_of(self, claim: "Claim") -> float | None:
        """How long one trial of a claim takes about in this suite; ``None`` where nothing is declared."""
        estimate = claim.estimate.get(self.settings.suite)
        return estimate.seconds * self.changes_of(claim) if estimate else None

    @property
    def kind(self) -> EngineKind:
        """The engine that was asked for; of ``auto`` the subject, which alone takes versions."""
        return ENGINES[SUBJECT if self.settings.engine == AUTO else self.settings.engine]

    @property
    def roots(self) -> tuple[int, ...]:
        """The processes below which everything of this run is: the controller's, and those below which nodes run.

        Raises ``BadInput`` where the latter are named, and are none.
        """
        own = os.getpid() if self.controller else os.getppid()
        return own, *SUBSTRATES[self.settings.substrate].run_below()

    @property
    def capacity(self) -> int:
        """How many of the machine's slots (its cores) a cluster of this profile takes: all that its hosts must have."""
        return max(1, min(int(self.profile.host.cores), int(self.host.cores)))

    def engine(self, target: str = "") -> Engine:
        """The database of a target. Raises ``BadInput`` when none can be had."""
        if target not in self._engines:
            self._engines[target] = self._find(target.partition("#")[0] or None)
        return self._engines[target]

    def _find(self, version: str | None) -> Engine:
        if self.settings.engine != AUTO:
            return self.named(self.settings.engine, version)
        named = self.settings.path or version or os.environ.get(ENGINES[SUBJECT].choice.variable)
        try:
            return self.named(SUBJECT, version, download_s=None if named else DOWNLOAD_S)
        except BadInput as error:
            if named:
                raise  # what is named and unusable is never passed over in silence
            self.why_control = str(error).splitlines()[0]
            return self.named(next(name for name, kind in ENGINES.items() if kind.embedded))

    def named(self, name: str, version: str | None = None, *, download_s: float | None = None) -> Engine:
        """The engine of that name, whichever this run is about: a sabotage may name its own. Raises ``BadInput``.

        ``download_s``: seconds that a download may take in all.
        """
        return ENGINES[name].find(
            Wanted(
                path=self.settings.path,
                version=version,
                download=not self.settings.at_hand_only,
                download_s=download_s,
                settings=self.settings.cluster_settings if ENGINES[name].choice.setting else {},
                say=self.say,
            )
        )

    @property
    def looks_early(self) -> bool:
        """Whether the databases are looked for before anything is collected: for a suite, or for a control."""
        if self.settings.engine == AUTO or is_control(self.settings.engine):
            return True
        return self.settings.strict_suite and not self.settings.dry_run

    @property
    def found(self) -> str:
        """The databases that were found so far, in full; nothing while none was looked for."""
        return ", ".join(map(named_in_full, self._engines.values()))

    @property
    def fingerprints(self) -> tuple[Mapping[str, object], ...]:
        """What identifies the databases that were found so far."""
        return tuple(engine.fingerprint for engine in self._engines.values())

    @property
    def tested(self) -> tuple[str, ...]:
        """The names of the engines that were found so far."""
        return tuple(dict.fromkeys(engine.kind.name for engine in self._engines.values()))

    @property
    def control_notice(self) -> str:
        """What is to be said of a run in which anything but the subject was tested; nothing of any other."""
        return "" if self.settings.dry_run else control_notice(self.tested)

    def seed_for(self, test: str) -> int:
        """The seed of one test, the same for every version and worker."""
        return int.from_bytes(hashlib.blake2b(f"{self.settings.seed}/{test}".encode(), digest_size=4).digest()) >> 1

    @property
    def progress_file(self) -> Path:
        """Where this process says what it is doing; the controller shows it."""
        return self.settings.run_dir / "progress" / f"{self.worker or 'main'}.jsonl"

    @property
    def claims_file(self) -> Path:
        """Where a worker says which test is of which claim, for its controller to know if it dies."""
        return self.settings.run_dir / "progress" / "claims.json"

    def say(
        self,
        stage: str,
        *,
        test: str = "",
        expect_s: float | None = None,
        trial: Path | None = None,
        phase: str = "",
        nodeid: str = "",
        ends: float | None = None,
        lines: Sequence[str] = (),
    ) -> None:
        """Say what is being done now and how long it may take; ``lines`` are shown with it, each of them.

        ``trial`` is where its evidence goes, ``phase`` what of it this is, ``nodeid`` whose it is; ``ends``: when it
        should be over, on the monotonic clock.
        """
        told = {"test": redacted(test), "stage": redacted(stage), "expect_s": expect_s, "trial": str(trial or "")}
        more = {"lines": [redacted(line) for line in lines]} if lines else {}
        self._tell({"at": time.monotonic(), **told, "phase": phase, "nodeid": nodeid, "ends": ends, **more})

    def takes(self, seconds: Mapping[str, float]) -> None:
        """Say how long tests will take, by their node ids."""
        self._tell({"planned": seconds})

    def _tell(self, said: Mapping[str, Any]) -> None:
        if self.progress_file.parent.is_dir():
            # It is shown and decides nothing: where the disk is full the evidence says so.
            with suppress(OSError), self.progress_file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(said) + "\n")
        elif self.tell:
            self.tell(said)

    def check(self) -> None:
        """Refuse, before anything starts, a run directory or a key that cannot be used. Raises ``BadInput``."""
        if self.begun:
            home = self.settings.run_dir
            raise BadInput(f"--run-dir {home}: holds the evidence of an earlier run; give an empty or new directory")
        if self.settings.sign and not self.settings.at_hand_only:
            from plugin.evidence.signature import check_key

            check_key(self.settings.sign)

    @property
    def begun(self) -> bool:
        """Whether the run directory is described already, by this process or another."""
        if not self.settings.run_dir.is_dir():
            return False
        from plugin.evidence.run_seal import RUN_FILE

        return (self.settings.run_dir / RUN_FILE).exists()

    def begin(self) -> None:
        """Make and describe the run directory, unless another process of this run has. Raises ``BadInput``."""
        from msgspec import to_builtins

        from plugin.evidence.records import SCHEMA
        from plugin.evidence.run_seal import RUN_FILE
        from plugin.evidence.store import make_run_directory, write_json

        directory = make_run_directory(self.settings.run_dir)
        (directory / "progress").mkdir(exist_ok=True)
        if self.begun:
            return
        about = {
            "schema": SCHEMA,
            "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "settings": asdict(self.settings),
            "host": {**asdict(self.host), "python": platform.python_version(), "system": platform.platform()},
            "required": to_builtins(self.required),
            "suite_revision": release(),
            "packages": _packages(),
        }
        write_json(directory / RUN_FILE, redacted_json(about))


def open_run(config: pytest.Config) -> Run:
    """The run of this process: made by the controller, joined by a worker. Raises ``BadInput``."""
    name = time.strftime("%Y%m%dT%H%M%S") + f"-{os.getpid()}"
    settings = read(config, name)
    given: Mapping[str, Any] | None = getattr(config, "workerinput", {}).get("roachproof")
    if given is None:
        return Run(settings=settings)
    settings = replace(settings, run_dir=Path(given["run_dir"]), seed=given["seed"])
    return Run(settings=settings, worker=config.workerinput["workerid"], controller=False)  # type: ignore[attr-defined]


def _packages() -> Mapping[str, str]:
    """Versions of what runs, drives and measures the databases from here."""
    from importlib import metadata

    from clusters.sql.pgwire import DRIVER

    found = {}
    engines = (name for kind in ENGINES.values() for name in kind.packages)
    for name in sorted({DRIVER, "hdrhistogram", "psutil", "pytest", "pytest-xdist", *engines}):
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def named_in_full(engine: Engine) -> str:
    """An engine with its version, where it comes from, and what is to be said where this build was never run."""
    told = engine.fingerprint
    build = " ".join(str(told[key])[:10] for key in ("date", "commit") if told.get(key))
    parts = (
        build and f" ({build})",
        told.get("origin") and f", {told['origin']}",
        (no := not_run(engine)) and f" ({no})",
    )
    return f"{engine.kind.name} {engine.version}" + "".join(filter(None, parts))


def not_run(engine: Engine) -> str:
    """What is to be said of a build that those who wrote this suite never ran; nothing of one that they did."""
    return str(engine.fingerprint.get("not_run", ""))


def refusal(error: BadInput | HarnessError) -> pytest.UsageError:
    """Bad input as what pytest ends with, without what looks like a secret: it names what was given."""
    return pytest.UsageError(redacted(str(error)))


def of(config: pytest.Config) -> Run:
    """The run of this session."""
    return config.stash[KEY]
