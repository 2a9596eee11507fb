"""The micro benchmarks of a session: which tests are some, in which order they run, where their figures go.

A test is a micro benchmark when it asks for the fixture ``micro``. It is measured by pytest-benchmark, once a version
and turn; its records are kept in the run directory, and in pytest-benchmark's storage as the baseline of each version.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from clusters.errors import BadInput, HarnessError
from plugin import run as runs
from plugin import selection
from plugin.evidence.redaction import redacted_json
from plugin.host import carries
from plugin.options import TOX
from plugin.ours import BENCHMARK
from plugin.outcomes import KEY as SESSION
from plugin.outcomes import said_of, tell
from plugin.result import HARNESS, Result
from plugin.run import Run
from plugin.session import look_for_databases, refuse

NOT_EVALUATED = "not evaluated"
RECORD = "benchmarks.json"
COUNT = "roachproof-micro-count"
WAY_OUT = f"measure them in a run of their own: {TOX} -e micro"
ROWS = 10_000
"""Rows of the table that is read: more than fit in a few blocks, loaded in a second."""


@dataclass(kw_only=True)
class Measured:
    """What this process measured: records of pytest-benchmark; by target the tests ``wanted`` and ``ended``."""

    benchmarks: list[Any] = field(default_factory=list)
    wanted: dict[str, set[str]] = field(default_factory=dict)
    ended: dict[str, set[str]] = field(default_factory=dict)
    apart: str = ""
    """Why the versions were not measured in turns; empty where they were."""
    load: list[float] = field(default_factory=list)
    """The machine's load average before the first and after the last."""


KEY: pytest.StashKey[Measured] = pytest.StashKey()
PASSED: pytest.StashKey[bool] = pytest.StashKey()
"""Whether a test's body ended well, with its statement timed."""


def configure(config: pytest.Config) -> None:
    """Count what is not evaluated: of all workers, or here."""
    if not config.pluginmanager.hasplugin(COUNT):
        config.pluginmanager.register(NotEvaluated(), COUNT)


def is_benchmark(item: pytest.Item) -> bool:
    """Whether the test is a micro benchmark."""
    return BENCHMARK in getattr(item, "fixturenames", ())


def needs_engine(item: pytest.Item) -> bool:
    """Whether it will start the database that was asked for."""
    return is_benchmark(item) and item.get_closest_marker("skip") is None


def parametrize(metafunc: pytest.Metafunc) -> None:
    """One instance a turn and version asked for. What is marked as a claim, too, is left to ``select`` to refuse."""
    if BENCHMARK not in metafunc.fixturenames or _marked(metafunc.definition):
        return
    run = runs.of(metafunc.config)
    if len(run.targets) > 1:
        metafunc.parametrize("target", run.targets, indirect=True, scope="function")
    turns = range(1, metafunc.config.getoption("--micro-turns") + 1)
    metafunc.parametrize("turn", turns, indirect=True, scope="function", ids=[f"turn{n}" for n in turns])


def _marked(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in ("claim", "sabotage"))


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the micro benchmarks in order, and skip them, saying why, where they can measure nothing."""
    found = [item for item in items if is_benchmark(item)]
    if found:
        try:
            _select(config, items, found)
        except BadInput as error:
            refuse(config, items, error)


def prepare(collected: pytest.Session) -> None:
    """Look for every database that the collected benchmarks will need, before any cluster starts."""
    found = [item for item in collected.items if is_benchmark(item)]
    look_for_databases(collected, found, needs_engine=needs_engine)


def _select(config: pytest.Config, items: list[pytest.Item], found: list[pytest.Item]) -> None:
    if marked := next(filter(_marked, found), None):
        way_out = "leave out one of the two"
        raise BadInput(f"{marked.nodeid}: the fixture {BENCHMARK} is for benchmarks, which decide no claim; {way_out}")
    if not config.pluginmanager.hasplugin("benchmark"):
        raise BadInput(f"{found[0].nodeid}: needs pytest-benchmark, which is not at hand; {WAY_OUT}")
    configure(config)
    run = runs.of(config)
    in_turns(items, run)
    if config.option.collectonly:
        return
    if reason := switched_off(config) or carries(run.profile, run.host, len(run.topology.nodes)):
        for item in found:
            # First of all, or pytest-benchmark's own reason would be the one that is shown.
            item.add_marker(pytest.mark.skip(reason=f"{NOT_EVALUATED}: {reason}"), append=False)
    else:
        config.stash[KEY] = measured = Measured(apart=not_side_by_side(run))
        for item in found:
            measured.wanted.setdefault(target_of(item, run), set()).add(item.nodeid)
        config.pluginmanager.register(Hooks(), "roachproof-micro")


def in_turns(items: list[pytest.Item], run: Run) -> None:
    """Order each file's micro benchmarks, in the places they have among its tests.

    Turn by turn, in each a statement on all versions back to back, every other time in the opposite order. Where the
    clusters cannot be up side by side, version by version.
    """
    apart = bool(not_side_by_side(run))
    for path in dict.fromkeys(item.path for item in items if is_benchmark(item)):
        places = [at for at, item in enumerate(items) if item.path == path and is_benchmark(item)]
        mine = [items[at] for at in places]
        tests = list(dict.fromkeys(getattr(item, "originalname", item.name) for item in mine))

        def key(item: pytest.Item, tests: Sequence[str] = tests) -> tuple[int, int, int]:
            turn = int(item.callspec.params["turn"])  # type: ignore[attr-defined]
            test = tests.index(getattr(item, "originalname", item.name))
            version = run.targets.index(target_of(item, run))
            if apart:
                return version, turn, test
            return turn, test, version if (turn + test) % 2 else -version

        for at, item in zip(places, sorted(mine, key=key), strict=True):
            items[at] = item


def target_of(item: pytest.Item, run: Run) -> str:
    """The target that the test is measured on."""
    return selection.target_of(item) or run.targets[0]


def not_side_by_side(run: Run) -> str:
    """Why the clusters of all versions cannot be up at once; empty where they can."""
    nodes = len(run.topology.nodes) * len(run.targets)
    return carries(run.profile, run.host, nodes) or ""


def switched_off(config: pytest.Config) -> str:
    """What keeps pytest-benchmark from measuring, and the way out; empty where nothing does."""
    option = config.option
    if hasattr(config, "workerinput") or getattr(option, "dist", "no") != "no":
        return f"with pytest-xdist (-n) pytest-benchmark measures nothing; {WAY_OUT}, without -n"
    if option.benchmark_skip and not option.benchmark_only:
        return "--benchmark-skip was given; leave it out to measure"
    if option.benchmark_disable and not option.benchmark_enable:
        return "--benchmark-disable was given, and nothing would be timed; leave it out to measure"
    return ""


def classify(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Say in the report how a micro benchmark came out, as ``plugin.outcomes`` asks of a test without a claim."""
    if not is_benchmark(item):
        return
    micro = getattr(item, "funcargs", {}).get(BENCHMARK)
    if report.when == "call" and report.passed:
        if micro is not None and micro.measured:
            item.stash[PASSED] = True
        else:
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid}: nothing was timed; give micro.measure the statement and its operation"
    elif call.excinfo is not None and call.excinfo.errisinstance(HarnessError):
        tell(report, "", Result(outcome=HARNESS, why=""))
    elif report.skipped and _reason(report).startswith(f"{NOT_EVALUATED}: "):
        why = _reason(report).removeprefix(f"{NOT_EVALUATED}: ")
        tell(report, "", Result(outcome=NOT_EVALUATED, why=why))


def _reason(report: pytest.TestReport) -> str:
    """Why a test was skipped."""
    told = report.longrepr
    return str(told[2]).removeprefix("Skipped: ") if isinstance(told, tuple) else ""


def print_plan(planned: pytest.Session) -> None:
    """What the micro benchmarks would start and measure, where that is asked for."""
    run = runs.of(planned.config)
    if run.settings.dry_run and (number := sum(map(is_benchmark, planned.items))):
        named = ", ".join(filter(None, run.targets)) or run.settings.engine
        place = f"a cluster of {run.topology.name} each" + (", one after the other" * bool(not_side_by_side(run)))
        print(f"micro benchmarks: {number} measurements on {named}, {place}; nothing is disturbed and nothing judged")


class NotEvaluated:
    """Counts what was not measured, by the reports of all workers."""

    def __init__(self) -> None:
        self._reasons: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a benchmark that was not evaluated, by its reason."""
        said = said_of(report)
        if said and not said["claim"] and said["outcome"] == NOT_EVALUATED:
            self._reasons[said["why"]] += 1

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        """Say what was not measured, with the reason and the way out."""
        if not self._reasons:
            return
        from plugin.reports.text import wrapped

        terminalreporter.write_sep("=", "micro benchmarks")
        for reason, number in self._reasons.items():
            terminalreporter.write_line("\n".join(wrapped(f"{number} not evaluated: {reason}", "")), yellow=True)
        if config.stash[SESSION].nothing_decided:
            terminalreporter.write_line("NOTHING WAS MEASURED", yellow=True, bold=True)


class Hooks:
    """Hears a session that measures micro benchmarks; only there it is registered."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def pytest_benchmark_update_machine_info(self, config: pytest.Config, machine_info: dict[str, Any]) -> None:
        """Say by what settings figures of this machine can be compared."""
        machine_info["roachproof"] = settings(runs.of(config))
        machine_info["roachproof_load"] = list(config.stash[KEY].load)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Keep what was measured: in the run directory, and as the baseline of each version."""
        config, measured = session.config, session.config.stash[KEY]
        if not measured.benchmarks:
            return
        measured.load.append(round(os.getloadavg()[0], 2))
        benchmarks: Any = config.pluginmanager.get_plugin("pytest-benchmark")
        commit = config.hook.pytest_benchmark_generate_commit_info(config=config)
        record = {"machine_info": benchmarks.get_machine_info(), "commit_info": commit}
        try:
            self._lines = keep(config, measured, benchmarks.storage, record)
        except OSError as error:
            config.stash[SESSION].plain["harness"] += 1
            self._lines = [f"What was measured could not be written: {error.strerror}: {error.filename}"]

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the table of versions."""
        if self._lines:
            terminalreporter.write_sep("=", "micro benchmarks, version against version")
            terminalreporter.write_line("\n".join(self._lines))


def settings(run: Run) -> Mapping[str, Any]:
    """Everything besides the machine and the version that moves a figure; baselines of others are not compared with."""
    from importlib import metadata

    from clusters.sql.pgwire import DRIVER

    return {
        "substrate": run.settings.substrate,
        "profile": run.profile.name,
        "nodes": len(run.topology.nodes),
        "topology": run.topology.name,
        "cores": run.host.cores,
        "rows": ROWS,
        DRIVER: metadata.version(DRIVER),
    }


def keep(config: pytest.Config, measured: Measured, storage: Any, about: Mapping[str, Any]) -> list[str]:
    """Write the records of what was measured; returns the lines of the table."""
    from plugin.evidence.store import write_json
    from plugin.micro.table import newest, table, turns

    def record(benchmarks: Sequence[Any], *, data: bool) -> dict[str, Any]:
        made = config.hook.pytest_benchmark_generate_json(
            config=config, benchmarks=benchmarks, include_data=data, **about
        )
        config.hook.pytest_benchmark_update_json(config=config, benchmarks=benchmarks, output_json=made)
        return {**made, "machine_info": redacted_json(made["machine_info"])}

    directory = runs.of(config).settings.run_dir / "micro"
    whole = record(measured.benchmarks, data=True)
    directory.mkdir(exist_ok=True)
    write_json(directory / RECORD, whole)
    now = list(turns(whole))
    stored, left = baselines(storage.load(), whole["machine_info"])
    versions = {each.version for each in now}
    others = newest(each for each in stored if each.engine == now[0].engine and each.version not in versions)
    notes = [
        f"{left} stored run{'s' * (left > 1)} of another machine or with other settings: not compared with."
    ] * bool(left)
    cores, (before, *_, after) = runs.of(config).host.cores, measured.load
    busy = " It was busy with other work: measure again when it is quiet." * (before > cores / 2)
    notes.append(f"Load average of this machine of {cores:g} cores: {before:.1f} before, {after:.1f} at the end.{busy}")
    for version in sorted(versions):
        notes.append(_save(measured, version, storage, record, keep_data=config.option.benchmark_save_data))
    notes.append(f"Every round: {directory / RECORD}")
    alone = len({each.column for each in now}) == 1
    return table(now, others if alone else [], apart=measured.apart, notes=notes)


def baselines(stored: Iterator[tuple[Any, Mapping[str, Any]]], machine: Mapping[str, Any]) -> tuple[list[Any], int]:
    """The turns that are stored of this machine with these settings, and how many stored runs are of others."""
    from plugin.micro.table import turns

    found, left = [], 0
    for place, record in stored:
        mine = list(turns(record, file=str(place)))
        if mine and _place(record.get("machine_info", {})) == _place(machine):
            found += mine
        else:
            left += bool(mine)
    return found, left


def _place(machine: Mapping[str, Any]) -> tuple[object, ...]:
    cpu = machine.get("cpu") or {}
    own = (machine.get(name) for name in ("node", "machine", "python_version", "roachproof"))
    return (*own, cpu.get("brand_raw"), cpu.get("count"))


def _save(measured: Measured, version: str, storage: Any, record: Any, *, keep_data: bool) -> str:
    """Store a version's figures under its name, if all its tests were measured. Returns the line that says so."""
    mine = [each for each in measured.benchmarks if each.extra_info["roachproof"]["version"] == version]
    targets = {each.extra_info["roachproof"]["target"] for each in mine}
    missing = sum(len(measured.wanted[name] - measured.ended.get(name, set())) for name in targets)
    if missing:
        return f"{version} is not stored as a baseline: {missing} of its benchmarks failed or were not run."
    from plugin.evidence.store import slug

    name = slug(f"{mine[0].extra_info['roachproof']['engine']}-{version}")
    try:
        storage.save(record(mine, data=keep_data), name)
    except Exception as error:  # whatever a storage raises, the figures were measured and are shown
        why = f"{type(error).__name__} {error}"
        return (
            f"{version} could not be stored as a baseline in {storage}: {why}; name another with --benchmark-storage."
        )
    return f"{version} is stored as a baseline, named {name}, in {Path(str(storage))}."
