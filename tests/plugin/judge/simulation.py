"""A store that keeps its promises, used by clients at random: histories that are lawful by construction.

Every operation takes effect at one moment between its invocation and its answer. An indeterminate write takes effect
before its client learns that it will not learn, at any time later (even after later writes of the row), or never.
"""

from dataclasses import dataclass, field
from random import Random

from plugin.evidence.records import FinalLine, FinalRow, HistoryEnd, Invoke, Ok, Op
from tests.plugin.judge.histories import Story, final, row


@dataclass
class Pending:
    op: int
    kind: Op
    keys: tuple[int, ...]
    version: int
    applied: bool = False
    possible: bool = True
    seen: tuple[int, ...] = ()


@dataclass
class Client:
    keys: list[int] = field(default_factory=list)
    current: Pending | None = None
    version: dict[int, int] = field(default_factory=dict)
    again: dict[int, Op] = field(default_factory=dict)
    """What certainly failed of a row's newest version, and may be tried once more."""
    unsure: set[int] = field(default_factory=set)
    """Rows with an indeterminate write; they are never inserted again."""


class Simulation:
    """Runs clients for some steps; then ``story`` has the history and ``rows`` what the store holds."""

    def __init__(self, random: Random, steps: int = 80, clients: int = 3) -> None:
        self.random = random
        self.story = Story()
        self.rows: dict[int, int] = {}
        self.pairs: list[tuple[int, int]] = []
        self.floating: list[Pending] = []
        self.clients = [Client() for _ in range(clients)]
        self.next_key = 0
        for _ in range(steps):
            self.step()
        for client in self.clients:
            if client.current and random.random() < 0.5:
                self.answer(client)
        for pending in [*self.floating, *(c.current for c in self.clients if c.current)]:
            # The final read comes when nothing is under way any more.
            if not pending.applied and random.random() < 0.5:
                self.apply(pending)
        self.story.lines.append(HistoryEnd(self.story.tick()))

    def step(self) -> None:
        client = self.random.choice(self.clients)
        if self.floating and self.random.random() < 0.15:
            self.apply(self.floating.pop(self.random.randrange(len(self.floating))))
        elif client.current is None:
            self.start(client)
        elif not client.current.applied and self.random.random() < 0.4:
            self.apply(client.current)
        else:
            self.answer(client)

    def new_key(self, client: Client) -> int:
        self.next_key += 1
        client.keys.append(self.next_key - 1)
        return self.next_key - 1

    def start(self, client: Client) -> None:
        kind = self.random.choice([*Op, Op.INSERT, Op.READ, Op.UPDATE])
        if kind is Op.READ_PAIR and self.pairs:
            self.begin(client, kind, *self.random.choice(self.pairs))
        elif kind is Op.READ and self.next_key:
            self.begin(client, kind, self.random.randrange(self.next_key))
        elif kind in (Op.UPDATE, Op.DELETE) and client.keys:
            self.write(client, kind, self.random.choice(client.keys))
        elif kind is Op.PAIR:
            keys = self.new_key(client), self.new_key(client)
            self.pairs.append(keys)
            self.write(client, kind, *keys)
        else:
            old = [key for key in client.keys if key not in client.unsure and key not in self.rows]
            again = old and self.random.random() < 0.5
            self.write(client, Op.INSERT, self.random.choice(old) if again else self.new_key(client))

    def write(self, client: Client, kind: Op, *keys: int) -> None:
        version = client.version.get(keys[0], 0) + 1
        if client.again.pop(keys[0], None) is kind and self.random.random() < 0.7:
            version -= 1
        for key in keys:
            client.version[key] = version
        self.begin(client, kind, *keys, version=version)

    def begin(self, client: Client, kind: Op, *keys: int, version: int = 0) -> None:
        client.current = Pending(self.story.begin(kind, *keys, version=version), kind, keys, version)

    def apply(self, pending: Pending) -> None:
        """The moment of effect."""
        pending.applied = True
        first = pending.keys[0]
        match pending.kind:
            case Op.READ | Op.READ_PAIR:
                pending.seen = tuple(self.rows.get(key, 0) for key in pending.keys)
            case Op.INSERT | Op.PAIR:
                pending.possible = not any(key in self.rows for key in pending.keys)
                if pending.possible:
                    self.rows.update(dict.fromkeys(pending.keys, pending.version))
            case Op.UPDATE:
                pending.possible = first in self.rows
                if pending.possible:
                    self.rows[first] = pending.version
            case Op.DELETE:
                self.rows.pop(first, None)

    def answer(self, client: Client) -> None:
        pending, client.current = client.current, None
        assert pending is not None
        fate = self.random.random()
        if fate < 0.2:
            self.story.unknown(pending.op)
            if pending.kind not in (Op.READ, Op.READ_PAIR):
                client.unsure.update(pending.keys)
                if not pending.applied:
                    self.floating.append(pending)
            return
        reads = pending.kind in (Op.READ, Op.READ_PAIR)
        if fate < 0.4 and (reads or not pending.applied):
            pending.possible = False
        elif not pending.applied:
            self.apply(pending)
        if pending.possible:
            self.story.ok(pending.op, *pending.seen)
        else:
            self.story.failed(pending.op)
            if not reads:
                client.again[pending.keys[0]] = pending.kind

    def final(self) -> list[FinalLine]:
        return final(self.final_rows())

    def final_rows(self) -> list[FinalRow]:
        return [row(key, version) for key, version in sorted(self.rows.items())]

    def coda(self) -> dict[str, int]:
        """A few operations of a client of its own at the end, in which a violation can be hidden; their keys by name."""
        story = self.story
        story.lines.pop()
        base = self.next_key
        names = ("kept", "updated", "deleted", "refused", "one", "other", "half", "whole")
        keys = {name: base + index for index, name in enumerate(names)}
        story.insert(keys["kept"], keys["updated"], keys["deleted"])
        story.update(keys["updated"], 2)
        story.delete(keys["deleted"], 2)
        story.failed(story.begin(Op.INSERT, keys["refused"]))
        story.pair(keys["one"], keys["other"])
        story.unknown(story.begin(Op.PAIR, keys["half"], keys["whole"]))
        for name, version in (("kept", 1), ("updated", 2), ("deleted", 0)):
            story.read(keys[name], version)
        story.ok(story.begin(Op.READ_PAIR, keys["one"], keys["other"]), 1, 1)
        self.rows |= {keys[name]: 1 for name in ("kept", "one", "other", "half", "whole")} | {keys["updated"]: 2}
        story.lines.append(HistoryEnd(story.tick()))
        return keys

    def rewrite(self, key: int, kind: Op, *seen: int) -> None:
        """Let the last read of this kind that began with ``key`` have seen something else."""
        op = next(
            line.op
            for line in reversed(self.story.lines)
            if isinstance(line, Invoke) and line.kind is kind and line.keys[0] == key
        )
        self.story.lines = [
            Ok(line.t, op, seen) if isinstance(line, Ok) and line.op == op else line for line in self.story.lines
        ]
