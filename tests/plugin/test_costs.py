"""What a claim takes is said before it runs, and what does not fit on the machine ends the session before it starts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from clusters.engines import ENGINES
from clusters.errors import BadInput
from clusters.substrates import SUBSTRATES
from clusters.substrates.kubernetes.settings import VOLUME
from clusters.tenancy import Tenancy
from fixtures.workloads.tenants.workload import KIND as TENANTS
from plugin import costs
from plugin.catalogue import load
from plugin.claims import Claim
from plugin.costs import check_room, refuse_too_much, told
from plugin.profiles import profile_named, shipped
from plugin.suites import Suite
from plugin.workloads import Cost, Where, Workload
from tests.plugin.conftest import Gate
from tests.plugin.test_host import PLENTY

TENANCY = [claim for claim in load() if claim.id.startswith("tenancy")]
HEAVY = """
from dataclasses import dataclass
from clusters.declared import integer, record
from plugin.workloads import Cost, Workload

@dataclass(frozen=True, kw_only=True)
class Sizes:
    gib: int

def made(sizes, where):
    return Cost(
        what=f"{sizes.gib} stones on {where.nodes} nodes of {where.engine.name}", seconds=7200, count=sizes.gib,
        disk_mib=1024 * sizes.gib, memory_mib=1, processes=3, unit="stones",
    )

KIND = Workload(name="stones", title="stones", sizes=record(Sizes, gib=integer(minimum=1)), fixtures={},
    costs={"stones_made": made})
"""
CLAIM = """
[workloads]
stones = "heavy"

[profiles.laptop.stones]
gib = {gib}

[claims.stones]
sentence = "Stones are heavy."
nodes = 3
costs = ["stones_made"]
checks = [{{ metric = "stones", comparison = "==", limit = 1, recorded = true }}]
"""
TEST = """
import pytest

@pytest.mark.claim("stones")
@pytest.mark.topology(nodes=3)
async def test_stones(judge):
    judge.measure("stones", 1)
    assert judge.decide()
"""


def run(profile: str, *, files: Sequence[Path] = (), **host: Any) -> Any:
    """What is asked of a run; ``files`` are the user's templates of tenants."""
    found = profile_named(profile)

    def files_of(workload: Workload[Any]) -> Sequence[Path]:
        return files if workload.name == "tenants" else ()

    return SimpleNamespace(profile=found, size=found.size, host=replace(PLENTY, **host), files_of=files_of)


HERE = SUBSTRATES["processes"]


def where(nodes: int = 3, engine: str = "cockroach") -> Where:
    return Where(engine=ENGINES[engine], nodes=nodes)


@pytest.mark.parametrize("claim", TENANCY, ids=lambda claim: claim.id)
@pytest.mark.parametrize("engine", ["cockroach", "postgres"])
def test_all_of_tenancy_is_costed_on_every_profile(claim: Claim, engine: str) -> None:
    for profile in shipped():
        total, *each = told(claim, run(profile), where(engine=engine))
        assert len(each) == len(claim.costs) > 0
        assert re.match(r"about .*, .* of disk, ", total), total
        assert total.endswith(f"(declared figures of {ENGINES[engine].title}, profile {profile})")
        assert all(": about " in one for one in each), each


@pytest.mark.parametrize("profile", shipped())
def test_what_a_profile_asks_for_fits_on_its_hardware(profile: str) -> None:
    """Of CockroachDB, on as many nodes as the profile is for: its host's figures are an answer to its sizes."""
    node = profile_named(profile)
    nodes = round(node.host.disk_gib / node.host_a_node.disk_gib)
    needs = node.needs(nodes)
    for claim in TENANCY:
        check_room(claim, run(profile, disk_gib=needs.disk_gib, memory_gib=needs.memory_gib), where(nodes), HERE)


def test_the_articles_size_is_costed() -> None:
    total, made, load_, *_ = told(load().claim("tenancy"), run("tenancy-9"), where(9))
    assert "2 processes of load generators" in total
    assert made.startswith("22500 tenants (21808 × tpcc, 692 × tables-150) with 300072 tables, in 3 copies: about ")
    assert re.search(r", 1,\d{3} GiB of disk, \d+ GiB of memory beside the nodes' caches; the time assumes ", made), (
        made
    )
    assert load_ == "loads of 500, 750, 1000 tenants (tpcc): about 3.2 h"
    _, _, both, *_ = told(load().claim("tenancy"), run("small"), where())
    assert both.startswith("loads of 10, 15, 20 tenants (key_value) and of 10, 15, 20 tenants (tpcc): about ")


@pytest.mark.parametrize(
    ("claim", "profile", "engine", "assumed"),
    [
        (
            "tenancy",
            "tenancy-9",
            "cockroach",
            "29 to 52 ms a table, as measured on laptop with up to 32700, and with more one may take longer "
            "(tenancy-growth); 4 s for the rows of a tpcc",
        ),
        ("tenancy", "laptop", "cockroach", "29 to 29.3 ms a table, as measured on laptop with up to 32700"),
        (
            "tenancy-growth",
            "tenancy-9",
            "postgres",
            "2.9 to 1.8 ms a table, as measured on laptop with up to 156450, and with more one may take longer "
            "(tenancy-growth)",
        ),
        ("tenancy-growth", "laptop", "cockroach", ""),
    ],
    ids=["the article's size", "few tables", "a curve", "a curve that time ends"],
)
def test_what_a_time_was_worked_out_from_is_said_with_it(claim: str, profile: str, engine: str, assumed: str) -> None:
    _, made, *_ = told(load().claim(claim), run(profile), where(9, engine))
    assert made.partition("; the time assumes ")[2] == assumed


@pytest.mark.parametrize(
    ("profile", "engine", "assumed"),
    [
        ("laptop", "cockroach", "0.29 to 0.31 s each"),
        ("tenancy-9", "cockroach", "2.6 s each, and with more tables one may take longer"),
        ("tenancy-9", "postgres", "0.3 s each, and with more tables one may take longer"),
    ],
)
def test_questions_take_longer_among_more_tables(profile: str, engine: str, assumed: str) -> None:
    (asked,) = (one for one in told(load().claim("tenancy"), run(profile), where(9, engine)) if "questions" in one)
    assert asked.partition("; the time assumes ")[2] == assumed


def test_a_change_that_a_fault_cuts_short_is_made_three_times() -> None:
    claims = [load().claim(claim) for claim in ("tenancy", "tenancy-schema-change")]
    one, cut = ([part for part in told(claim, run("tenancy-9"), where(9)) if "schema" in part] for claim in claims)
    assert one[0].startswith("a change of schema in 22500 tenants: about 6.2 h")
    assert cut[0].startswith("a change of schema in 22500 tenants, 3 times: about 18.8 h")


@pytest.mark.parametrize(("tables", "seconds"), [(0, 0.0), (500, 1.25), (1000, 3.0), (3000, 11.0)])
def test_costs_of_tables_go_in_a_line_as_far_as_they_were_timed_and_stay_at_the_last(
    tables: int, seconds: float
) -> None:
    """An old build's grew with their number: the first one's for all of them would be far too little."""
    assert Tenancy(ms_a_table=(2.0, 4.0), tables_timed=1000).tables_s(tables) == pytest.approx(seconds)


def test_tenants_that_only_loads_of_each_mix_need_are_costed_where_they_are_made() -> None:
    asked = run("laptop")
    asked.size = partial(asked.profile.size, suite=Suite.NIGHTLY)
    tenants = sum(asked.size(TENANTS).mix.values())
    for claim, more in (("tenancy", 4), ("tenancy-drop", 0), ("tenancy-schema-change", 0)):
        _, made, *others = told(load().claim(claim), asked, where())
        assert made.startswith(f"{tenants + more} tenants ("), made
        assert ("4 × tpcc" in made) is bool(more)
        changed = [one for one in others if one.startswith("a change of schema")]
        assert all(one.startswith(f"a change of schema in {tenants + more} tenants") for one in changed)


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ("cockroach", "2 loads of 16 tenants in 12 windows: "),
        ("postgres", "7 loads of 16 tenants in 12 windows, and the last third of all dropped and made again 3 times: "),
    ],
)
def test_what_is_dropped_and_made_again_between_windows_is_costed(engine: str, said: str) -> None:
    """Where it is gone at once: there the two sizes alternate."""
    *_, loaded = told(load().claim("tenancy-larger-not-slower"), run("laptop"), where(engine=engine))
    assert loaded.startswith(said)
    _, loads = costs.costs_of(load().claim("tenancy-larger-not-slower"), run("laptop"), where(engine=engine))
    windows_s = 12 * 10 + int(said[0]) * (3 + 16 / 20)
    assert (loads.seconds > windows_s + 3 * 9) if engine == "postgres" else (loads.seconds == windows_s)


def test_a_claim_that_loads_tenants_says_so() -> None:
    """Also where the load lasts as long as something else: the machine needs the processes that drive it."""
    loaded = [one.id for one in TENANCY if any(cost.endswith("_loaded") for cost in one.costs)]
    said = {claim: told(load().claim(claim), run("laptop"), where()) for claim in loaded}
    assert len(said) == 4
    for claim, (total, *each) in said.items():
        assert "no load generator" not in total, claim
        assert any(re.match(r"(\d )?(a )?loads? of [\d, ]+ tenants", one) for one in each), claim


@pytest.mark.parametrize("claim", TENANCY, ids=lambda claim: claim.id)
def test_a_claim_of_the_articles_size_is_said_to_take_its_parts_and_not_ten_times_as_much(claim: Claim) -> None:
    """A test takes the cluster's start and more; both figures stand in a dry run."""
    said, parts = claim.estimate[Suite.PAPER], costs.costs_of(claim, run("tenancy-9"), where(9))
    assert sum(one.seconds for one in parts) < said.seconds
    disk_mib = sum(one.disk_mib for one in parts)
    assert disk_mib < said.disk_mib < 10 * disk_mib


def test_a_part_of_the_tenants_costs_as_many_as_it_makes() -> None:
    """Those that are made first of the plan, of which each template has its share."""
    part = replace(where(), parameters={"part": 0.125})
    _, made, dropped = told(load().claim("tenancy-drop"), run("laptop"), part)
    assert made.startswith("3 tenants (2 × key-value, 1 × tpcc-schema) with 1"), made
    assert dropped == "dropping them, and giving back, at the most: about 3 min; the time assumes 1 s a tenant"
    assert costs.costs_of(load().claim("tenancy-drop"), run("laptop"), part)[1].seconds == 183
    assert told(load().claim("tenancy-drop"), run("laptop"), where())[1].startswith("26 tenants (18 × key-value, 6")


def test_no_more_copies_are_made_than_there_are_nodes() -> None:
    claim = load().claim("tenancy-drop")
    small, large = (costs.costs_of(claim, run("laptop"), where(nodes))[0].disk_mib for nodes in (1, 9))
    assert large == pytest.approx(3 * small)
    one, nine = (costs.costs_of(claim, run("laptop"), where(nodes, "postgres"))[0].disk_mib for nodes in (1, 9))
    assert nine == pytest.approx(9 * one), "each node of the control has all of it"


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ({"disk_gib": 1000.0}, r"take about [\d,]+ MiB of disk, and 1,024,000 MiB are free; choose a smaller profile"),
        ({"memory_gib": 150.0}, r"MiB of memory, and 6,144 MiB are available beside the nodes' caches"),
        ({"memory_gib": 10.0}, r"MiB of memory, and 0 MiB are available beside the nodes' caches"),
    ],
)
def test_too_many_for_disk_or_memory_is_said_with_figures(host: Mapping[str, float], why: str) -> None:
    asked = run("tenancy-9", files=(), **{"disk_gib": 1e6, "memory_gib": 1e6, **host})
    with pytest.raises(BadInput, match=rf"claim tenancy on profile tenancy-9: 22500 tenants .*{why}"):
        check_room(load().claim("tenancy"), asked, where(9), HERE)
    check_room(load().claim("tenancy-growth"), asked, where(9), HERE)


@pytest.mark.parametrize("profile", shipped())
def test_what_a_profile_asks_for_fits_on_the_volumes_of_its_nodes(
    profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Kubernetes each node has one, and this host's disk is nobody's; one that is too small is told."""
    monkeypatch.delenv(VOLUME, raising=False)
    nodes = 9 if profile == "tenancy-9" else 3
    asked = run(profile, disk_gib=0.0, memory_gib=0.0)
    for claim in TENANCY:
        check_room(claim, asked, where(nodes), SUBSTRATES["kubernetes"])
    monkeypatch.setenv(VOLUME, "64")
    if profile != "laptop":
        with pytest.raises(BadInput, match=rf"MiB of disk, and {64 * nodes} MiB are free"):
            check_room(load().claim("tenancy"), asked, where(nodes), SUBSTRATES["kubernetes"])


def test_tenants_of_ones_own_take_room_beside_the_profiles(tmp_path: Path) -> None:
    (tmp_path / "mine.sql").write_text("CREATE TABLE one (id INT8 PRIMARY KEY); CREATE TABLE two (id INT8 PRIMARY KEY)")
    mine = tmp_path / "mine.toml"
    mine.write_text('[templates.mine]\nwhat = "ours"\nfile = "mine.sql"\ntenants = 90000\n')
    asked = run("laptop", files=[mine], disk_gib=20.0)
    with pytest.raises(BadInput, match=r"90026 tenants \(.*, 90000 × mine\) with 180\d+ tables.* MiB of disk, and"):
        check_room(load().claim("tenancy"), asked, where(), HERE)
    assert "a change of schema in 90026 tenants" in " ".join(told(load().claim("tenancy"), asked, where()))
    check_room(load().claim("tenancy-isolation"), asked, where(), HERE)  # which has the profile's alone


def test_how_many_fit_is_told() -> None:
    made = Cost(what="10 stones", disk_mib=100, count=10, unit="stones")
    refuse_too_much([made], disk_mib=100, memory_mib=0, named="it")
    with pytest.raises(BadInput, match=r"it: 10 stones take about 110 MiB of disk, and 55 .* \(about 5 stones fit\)"):
        refuse_too_much([Cost(what="b", disk_mib=10), made], disk_mib=55, memory_mib=0, named="it")


def test_a_claim_without_costs_takes_none() -> None:
    claim = load().claim("survivability")
    assert told(claim, run("laptop"), where()) == []
    check_room(claim, run("laptop", disk_gib=0.0, memory_gib=0.0), where(), HERE)


def test_costs_are_printed_and_what_does_not_fit_ends_the_session(gate: Gate) -> None:
    (gate.path / "heavy.py").write_text(HEAVY)
    (gate.path / "test_claims.py").write_text(TEST)
    (gate.path / "claims.toml").write_text(CLAIM.format(gib=1))
    ran = gate("--dry-run")
    assert ran.status == 0, ran.text
    text = " ".join(ran.text.split())
    assert (
        "would take: about 2.0 h, 1,024 MiB of disk, 1 MiB of memory beside the nodes' caches, 3 processes of load "
        "generators (declared figures of CockroachDB, profile laptop)"
    ) in text
    assert "1 stones on 3 nodes of cockroach: about 2.0 h, 1,024 MiB of disk" in text
    (gate.path / "claims.toml").write_text(CLAIM.format(gib=900_000))
    for more in ((), ("--dry-run",), ("-n", "2")):
        ran = gate(*more)
        assert ran.status == 4, ran.text
        assert re.search(
            r"claim stones on profile laptop: 900000 stones on 3 nodes of cockroach take about 921,600,000 MiB of disk",
            " ".join(ran.text.split()),
        ), ran.text
        assert not (gate.path / ".roachproof").exists()


def test_the_articles_size_is_planned_where_it_cannot_run(gate: Gate) -> None:
    (gate.path / "test_claims.py").write_text(
        "import pytest\n@pytest.mark.claim('tenancy')\n@pytest.mark.topology(nodes='nodes')\n"
        "async def test_it(engine, judge, nodes): raise SystemExit('started')\n"
    )
    ran = gate("--dry-run", "--profile", "tenancy-9", "--suite", "paper")
    assert ran.status == 0, ran.text
    text = " ".join(ran.text.split())
    assert "this host cannot carry 9 nodes of profile tenancy-9" in text
    assert "22500 tenants (21808 × tpcc, 692 × tables-150) with 300072 tables, in 3 copies: about" in text


def test_an_unknown_cost_is_refused(gate: Gate) -> None:
    gate.edit("claims.toml", 'steps = ["think"', 'costs = ["tenants_maid"]\nsteps = ["think"')
    ran = gate(*gate.tests("passes"))
    assert ran.status == 4
    assert "tenants_maid" in ran.text
    assert "tenants_made" in ran.text


def test_the_growth_curve_is_in_no_suite_that_is_not_asked_for() -> None:
    claims = load()
    assert [claim.id for claim in claims if Suite.CURVE in claim.suites] == ["tenancy-growth"]
    assert claims.claim("tenancy-growth").suites == (Suite.CURVE, Suite.PAPER)
