"""Topologies: how nodes are dealt over zones and regions, and what nonsense says."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.errors import BadInput
from clusters.topology import load, names, of


def test_shipped_topologies() -> None:
    assert names() == ("fifteen-in-three-regions", "nine-in-three-zones", "one", "three")
    assert {name: len(load(name).nodes) for name in names()} == {
        "fifteen-in-three-regions": 15,
        "nine-in-three-zones": 9,
        "one": 1,
        "three": 3,
    }
    assert all(load(name).name == name for name in names())


def test_nodes_are_dealt_round_robin() -> None:
    nodes = load("nine-in-three-zones").nodes
    assert [node.name for node in nodes] == [f"n{index}" for index in range(1, 10)]
    assert [node.zone for node in nodes] == ["zone-1", "zone-2", "zone-3"] * 3
    assert {node.region for node in nodes} == {"region-1"}


def test_regions_have_zones_of_their_own() -> None:
    nodes = load("fifteen-in-three-regions").nodes
    assert Counter(node.region for node in nodes) == {"region-1": 5, "region-2": 5, "region-3": 5}
    zones = Counter((node.region, node.zone) for node in nodes)
    assert sorted(zones.values()) == [1, 1, 1, 2, 2, 2, 2, 2, 2]
    assert len({zone for _, zone in zones}) == 9, "a zone's name alone says which one it is"


@given(regions=st.integers(1, 4), zones=st.integers(1, 4), more=st.integers(0, 30))
def test_shapes_are_even_and_grow(regions: int, zones: int, more: int) -> None:
    least = regions * zones
    shape = of(nodes=least + more, zones=zones, regions=regions)
    assert len(set(shape.names)) == least + more
    by_region = Counter(node.region for node in shape.nodes)
    assert (len(by_region), max(by_region.values()) - min(by_region.values()) <= 1) == (regions, True)
    assert len({node.zone for node in shape.nodes}) == least
    for region in by_region:
        by_zone = Counter(node.zone for node in shape.nodes if node.region == region)
        assert max(by_zone.values()) - min(by_zone.values()) <= 1
    assert of(nodes=least, zones=zones, regions=regions).nodes == shape.nodes[:least]


def test_names_tell_shapes_apart() -> None:
    assert [of(nodes=3).name, of(nodes=9, zones=3).name, of(nodes=9, zones=1, regions=3).name] == [
        "3",
        "9-3z",
        "9-3z-3r",
    ]


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"nodes": 0}, "topology: nodes: 0 must be a whole number from 1 to 100"),
        ({"nodes": -3}, "nodes: -3 must be"),
        ({"nodes": 101}, "nodes: 101 must be"),
        ({"nodes": 10**5000}, "nodes: this number must be"),
        ({"nodes": "3"}, "nodes: '3' must be"),
        ({"nodes": True}, "nodes: True must be"),
        ({"nodes": None}, "nodes: None must be"),
        ({"nodes": 3.5}, "nodes: 3.5 must be"),
        ({"nodes": 3, "zones": 0}, "zones: 0 must be"),
        ({"nodes": 3, "regions": 0}, "regions: 0 must be"),
        (
            {"nodes": 3, "zones": 4},
            "4 zones for 3 nodes leave some empty; give at least 4 nodes or fewer zones",
        ),
        ({"nodes": 8, "zones": 3, "regions": 3}, "9 zones of 3 in each of 3 regions for 8 nodes"),
    ],
)
def test_nonsense(counts: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=re.escape(said)):
        of(**counts)


def test_unknown_name_says_what_was_meant() -> None:
    with pytest.raises(BadInput, match=r"topology 'tree' is unknown; did you mean 'three'\?"):
        load("tree")
    with pytest.raises(BadInput, match=r"there are .*, three\. A file of your own is named with its \.toml ending\.$"):
        load("four-nodes-in-a-row")
    for name in ("", "../topologies/three", "three\0"):
        with pytest.raises(BadInput, match="is unknown"):
            load(name)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('sentence = "s"', "nodes: is missing; add it"),
        ("nodes = 3", "sentence: is missing; add it"),
        ('sentence = "s"\nnodes = 3\nzone = 1', r"zone: unknown key; did you mean 'zones'\?"),
        ('sentence = "s"\nnodes = "three"', "nodes: 'three' must be a whole number"),
        ('sentence = "s"\nnodes = 3\nzones = 5', "zones: 5 zones for 3 nodes leave some empty"),
        ("nodes =", "is not valid TOML: .*line 1"),
    ],
)
def test_bad_files(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(BadInput, match=said) as caught:
        load(str(path))
    assert str(caught.value).startswith(f"{path}: ")


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('sentence = "Five side by side."\nnodes = 5\n')
    assert (load(str(path)).name, load(str(path)).names) == ("mine", ("n1", "n2", "n3", "n4", "n5"))
    for bad in (tmp_path / "none.toml", Path("nul\0.toml")):
        with pytest.raises(BadInput, match="cannot be read"):
            load(str(bad))
