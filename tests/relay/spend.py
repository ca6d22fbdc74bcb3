"""`python -m tests.relay.spend URL SPENDER COUNT CENTS`: a relay process that does nothing but spend.

It says `ready`, waits for a line, asks for COUNT calls of CENTS each at once, and prints how many are held. With
a COUNT of 0 it goes on asking and settling, four at a time, until it is killed, and says `on` after the first.
"""

from __future__ import annotations

import asyncio
import json
import sys
from uuid import uuid4

from relay.bookkeeper import Bookkeeper
from store.database import open_store
from store.ledger import Held
from tests.store.spending import AT, LEASE, Spender, spent


async def at_once(books: Bookkeeper, spender: Spender, count: int, cents: float) -> None:
    boxes = len(spender.task_cents)
    asks = [spender.ask(cents, id=uuid4().hex, ordinal=n % boxes + 1) for n in range(count)]
    answers = await asyncio.gather(*(books.admit(ask) for ask in asks))
    print(sum(isinstance(answer, Held) for answer in answers), flush=True)


async def for_ever(books: Bookkeeper, spender: Spender, cents: float) -> None:
    async def one() -> None:
        while True:
            ask = spender.ask(cents, id=uuid4().hex, lease_until=AT + LEASE)
            if isinstance(await books.admit(ask), Held):
                await asyncio.sleep(0.002)
                books.settle(spent(ask.id, cents / 2))
            print("on", flush=True)

    await asyncio.gather(*(one() for _ in range(4)))


def main() -> None:
    url, spender, count, cents = sys.argv[1], Spender(**json.loads(sys.argv[2])), int(sys.argv[3]), float(sys.argv[4])
    store = open_store(url)
    books = Bookkeeper(store)
    books.start()
    print("ready", flush=True)
    sys.stdin.readline()
    asyncio.run(at_once(books, spender, count, cents) if count else for_ever(books, spender, cents))
    books.close()
    store.close()


if __name__ == "__main__":
    main()
