"""A node for the tests of links, that talks to its like. Usage: peer.py ADDRESS.

It takes lines on TCP port 7000 and answers each: ``ping TOKEN`` with ``pong TOKEN``; ``new ADDRESS SECONDS`` and
``kept ADDRESS SECONDS`` by what came of a ping to that peer, on a new connection or on one that is opened once and
kept: ``pong``, ``silent`` after so many seconds, or the error's name; ``tell ADDRESS WORD`` after sending a datagram
with that word; ``heard`` with all words that came so.
"""

import asyncio
import secrets
import sys

PORT = 7000
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

kept: dict[str, Streams] = {}
heard: list[str] = []


class Ear(asyncio.DatagramProtocol):
    def datagram_received(self, data: bytes, _addr: object) -> None:
        heard.append(data.decode())


async def ping(streams: Streams) -> str:
    reader, writer = streams
    token = secrets.token_hex(4)
    writer.write(f"ping {token}\n".encode())
    while line := (await reader.readline()).decode().split():
        if line == ["pong", token]:
            return "pong"
    return "closed"


async def new(address: str) -> str:
    streams = await asyncio.open_connection(address, PORT)
    try:
        return await ping(streams)
    finally:
        streams[1].transport.abort()


async def on_kept(address: str) -> str:
    if address not in kept:
        kept[address] = await asyncio.open_connection(address, PORT)
    return await ping(kept[address])


async def answer(words: list[str], ear: asyncio.DatagramTransport) -> str:
    match words:
        case ["ping", token]:
            return f"pong {token}"
        case ["heard"]:
            return " ".join(heard)
        case ["tell", address, word]:
            ear.sendto(word.encode(), (address, PORT))
            return "told"
        case [how, address, seconds]:
            try:
                return await asyncio.wait_for((new if how == "new" else on_kept)(address), float(seconds))
            except TimeoutError:
                return "silent"
            except OSError as error:
                return type(error).__name__ if error.errno is None else f"errno {error.errno}"
    return "what?"


async def main() -> None:
    ear, _ = await asyncio.get_running_loop().create_datagram_endpoint(Ear, local_addr=(sys.argv[1], PORT))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(f"{await answer(line.decode().split(), ear)}\n".encode())

    async with await asyncio.start_server(serve, sys.argv[1], PORT) as server:
        await server.serve_forever()


asyncio.run(main())
