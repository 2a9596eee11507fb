"""What engines put into nodes whose paths and addresses are not those of the harness, on a substrate in memory."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clusters.engines import Deployment
from clusters.engines.cockroach.deployment import CockroachDeployment
from clusters.engines.cockroach.installed import Installed
from clusters.engines.postgres.binaries import Binaries
from clusters.engines.postgres.engine import Postgres
from clusters.errors import BadInput
from clusters.model import Completed, NodeSpec
from tests.clusters.fake import RESOURCES, FakeSubstrate

NODES = [NodeSpec(name="n1"), NodeSpec(name="n2")]


class Certifying(FakeSubstrate):
    """Makes the files that ``cockroach cert`` makes, with the command that made them as their content."""

    def __init__(self, scratch: Path) -> None:
        super().__init__()
        self.scratch = scratch

    async def run(self, argv: Sequence[str], **_: Any) -> Completed:
        made = {"create-ca": ["ca.crt"], "create-node": ["node.crt", "node.key"]}
        for name in made.get(argv[2], ["client.root.crt"]):
            (self.scratch / "certs" / name).write_text(" ".join(argv))
        return Completed(code=0, out="", err="")


class Printing(FakeSubstrate):
    """Programs print this when they are run, and end with this exit code."""

    def __init__(self, printed: str, code: int = 0) -> None:
        super().__init__()
        self.printed, self.code = printed, code
        self.ran: list[tuple[str | None, *tuple[str, ...]]] = []

    async def run(self, argv: Sequence[str], *, node: str | None = None, **_: Any) -> Completed:
        self.ran.append((node, *argv))
        return Completed(code=self.code, out=self.printed, err="")


def reached_by(deployment: Deployment) -> set[str]:
    return {host.address for endpoint in deployment.endpoints for host in endpoint.hosts}


async def test_cockroach_is_told_what_holds_in_its_node(tmp_path: Path) -> None:
    substrate = Certifying(tmp_path)
    deployment = CockroachDeployment(
        build=Installed(binary=Path("/here/cockroach"), tag="v26.1.0"),
        resources=RESOURCES,
        tuned=False,
    )
    placements = await substrate.place(NODES)
    await deployment.prepare(placements, substrate)
    (added,) = await substrate.place([NodeSpec(name="n3")])
    await deployment.place(added)
    for at in (*placements, added):
        name = at.node.name
        spec = deployment.process(name)
        assert spec.argv[0] == "/programs/cockroach"
        flags = dict(word.removeprefix("--").split("=", 1) for word in spec.argv[2:])
        assert flags["listen-addr"] == flags["advertise-addr"] == f"{name}.nodes:26257"
        assert flags["join"] == "n1.nodes:26257,n2.nodes:26257"
        assert flags["store"] == str(at.store)
        certificate = substrate.files[at.home / "certs" / "node.crt"].decode()
        assert f" {name}.nodes " in certificate
        assert f" {name}.clients " in certificate
        assert flags["certs-dir"] == str(at.home / "certs")
        assert {path.name for path in substrate.files if at.home in path.parents} == {
            "ca.crt",
            "node.crt",
            "node.key",
        }
        assert not any(str(tmp_path) in word for word in (*spec.argv, *spec.env.values()))
    assert reached_by(deployment) == {"n1.clients", "n2.clients", "n3.clients"}


BINARIES = Binaries(
    bin_dir=Path("/here/pg/bin"),
    postgres_version="18.4",
    etcd=Path("/here/etcd"),
    etcd_version="3.5.1",
    patroni_version="4.1.5",
)
OTHER = Postgres(binaries=replace(BINARIES, bin_dir=Path("/here/older/bin"), postgres_version="18.1"))


async def test_the_control_is_told_what_holds_in_its_node() -> None:
    substrate = FakeSubstrate()
    deployment = Postgres(binaries=BINARIES).deploy(NODES, resources=RESOURCES, tuned=False)
    placements = await substrate.place(NODES)
    await deployment.prepare(placements, substrate)
    for at in placements:
        settings = json.loads(substrate.files[at.home / "patroni.yml"])
        assert settings["postgresql"]["listen"].startswith(f"{at.node.name}.nodes:")
        assert settings["restapi"]["connect_address"].startswith(f"{at.node.name}.nodes:")
        assert settings["postgresql"]["bin_dir"] == "/programs/pg/bin"
        assert settings["postgresql"]["data_dir"] == str(at.store / "pgdata")
        assert settings["etcd3"]["hosts"] == ["etcd.nodes:2379"]
        assert settings["postgresql"]["pg_hba"][1] == "host all all all scram-sha-256"
        spec = deployment.process(at.node.name)
        assert spec.argv[0].startswith("/programs/")
        assert spec.argv[-1] == str(at.home / "patroni.yml")
    (etcd,) = deployment.services
    assert etcd.argv[0] == "/programs/etcd"
    assert reached_by(deployment) == {"n1.clients", "n2.clients"}
    await deployment.give("n2", replace(RESOURCES, cache_mib=77))
    given = json.loads(substrate.files[placements[1].home / "patroni.yml"])
    assert given["postgresql"]["parameters"]["shared_buffers"] == "77MB"


async def test_the_control_has_a_version_of_its_own_in_each_node() -> None:
    substrate = Printing("postgres (PostgreSQL) 18.1\n")
    deployment = Postgres(binaries=BINARIES).deploy(NODES, resources=RESOURCES, tuned=False)
    placements = await substrate.place(NODES)
    await deployment.prepare(placements, substrate)
    await deployment.install("n2", OTHER)
    assert substrate.ran == [("n2", "/programs/older/bin/postgres", "--version")]
    await deployment.give("n2", replace(RESOURCES, cache_mib=77))
    for at, where in zip(placements, ("pg", "older"), strict=True):
        settings = json.loads(substrate.files[at.home / "patroni.yml"])
        assert settings["postgresql"]["bin_dir"] == f"/programs/{where}/bin"
        assert deployment.process(at.node.name).env["PATH"].startswith(f"/programs/{where}/bin:")


@pytest.mark.parametrize(
    ("printed", "code", "version", "why"),
    [
        ("", 0, "18.1", "n2: /programs/older/bin/postgres is no PostgreSQL v18.1 .* exit code 0 and said nothing"),
        ("usage: postgres\n", 0, "18.1", "is no PostgreSQL v18.1 .* exit code 0 and said usage: postgres"),
        ("postgres (PostgreSQL) 18.1\n", 1, "18.1", "is no PostgreSQL v18.1 .* exit code 1"),
        ("postgres (PostgreSQL) 18.2\n", 0, "18.1", "is not PostgreSQL v18.1 .*, but says postgres .* 18.2"),
        ("postgres (PostgreSQL) 16.2\n", 0, "16.2", "n2: PostgreSQL v16.2 .* cannot start with the data of 18.4"),
    ],
)
async def test_what_the_control_cannot_run_is_not_installed(printed: str, code: int, version: str, why: str) -> None:
    substrate = Printing(printed, code)
    deployment = Postgres(binaries=BINARIES).deploy(NODES, resources=RESOURCES, tuned=False)
    await deployment.prepare(await substrate.place(NODES), substrate)
    before, process = dict(substrate.files), deployment.process("n2")
    with pytest.raises(BadInput, match=why):
        await deployment.install("n2", replace(OTHER, binaries=replace(OTHER.binaries, postgres_version=version)))
    assert substrate.files == before
    assert deployment.process("n2") == process
