"""Model calls: who calls, what it may cost, whether that is there, and then what it did cost.

The whole of the way of a call is `_think`. A call that has been admitted is settled or released exactly
once, whatever happens to it; where nobody can tell what it cost, all that was set aside for it is spent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import aiohttp
import structlog
from starlette.types import Receive, Scope, Send

from domain.errors import Unavailable
from pricing.prices import Price, Prices
from relay.answers import Refused, final, headers_of
from relay.arrival import Arrival
from relay.asking import LEASE, ask_of, require_metered, require_model, shrink
from relay.bookkeeping import Bookkeeping
from relay.callers import Caller, Callers
from relay.exchange import End, Exchange
from relay.metrics import Metrics
from relay.room import ROOM, Room
from relay.shapes import SHAPES
from relay.shapes.shape import Shape, Wish, judged
from relay.shortage import told
from relay.upstreams import Upstream, session
from relay.waiting import Gone, admitted, unless_gone
from store.ledger import Ask, Held, Short, Spent, Void

log = structlog.get_logger("relay")

CANCELLED_SECONDS = 5.0
"""How long calls that a closing door has broken off may take to end."""

RENEWED_EVERY = LEASE.total_seconds() / 3


@dataclass(frozen=True)
class Limits:
    """`body` is the bytes of the largest request, `output` the tokens of an answer whose request names no cap.

    `patience` is the seconds for which a call waits for money that is held for others.
    """

    body: int
    output: int = 16_384
    patience: float = 0


@dataclass
class _Call:
    """A call, as far as it has come."""

    arrival: Arrival
    shape: Shape
    named: str
    began: float
    caller: Caller | None = None
    model: str = ""
    ask: Ask | None = None
    held: int = 0
    outcome: str = ""
    status: int = 0
    nano_usd: int | None = None


class Models:
    """The ASGI app below `/models/`. `upstreams` by provider; one that is not there has no address."""

    def __init__(
        self,
        callers: Callers,
        books: Bookkeeping,
        prices: Prices,
        upstreams: Mapping[str, Upstream],
        limits: Limits,
        metrics: Metrics,
    ) -> None:
        self._callers, self._books, self._prices = callers, books, prices
        self._upstreams, self._limits, self._metrics = upstreams, limits, metrics
        self._room = Room(max(ROOM, limits.body))
        self._under_way: dict[Exchange, str] = {}
        self._calls: set[asyncio.Task[Any]] = set()
        self._session: aiohttp.ClientSession

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        arrival = Arrival(scope, receive, send)
        shape, named = _shape_of(arrival.path)
        call = _Call(arrival, shape, named, time.monotonic())
        task = asyncio.current_task()
        assert task is not None
        self._calls.add(task)
        self._metrics.under_way += 1
        try:
            await self._think(call)
        except Refused as refused:
            await _say_no(call, refused)
        except Gone:
            call.outcome = "left"
        except asyncio.CancelledError:
            call.outcome = call.outcome or "cancelled"
            raise
        except Unavailable as error:
            log.warning("the store is away", error=str(error))
            call.outcome = call.outcome or "unavailable"
            await _say_no(call, Refused(503, "the store did not answer; try again"))
        except Exception:
            log.exception("a model call failed", endpoint=shape.endpoint)
            call.outcome = call.outcome or "failed"
            if arrival.begun:
                raise
            await _say_no(call, Refused(500, "the relay failed at this; its log says why"))
        finally:
            arrival.close()
            self._calls.discard(task)
            self._note(call)
            self._metrics.under_way -= 1

    async def _think(self, call: _Call) -> None:
        arrival, shape = call.arrival, call.shape
        caller = call.caller = await self._caller(arrival, shape)
        require_metered(caller)
        if _is_list(arrival):
            await self._callers.require_live(caller)
            call.outcome, call.status = "listed", 200
            await arrival.whole(200, shape.listing(caller.grant.model_id))
            return
        target = _target(call)
        upstream = self._upstream(shape)
        wish = judged(shape, await arrival.json(self._limits.body, self._room), call.named, self._limits.output)
        call.model = wish.model
        require_model(wish, caller)
        if shape.free:
            await self._callers.require_live(caller)
            await self._carried(call, wish, upstream, target)
            return
        price = self._price(shape, wish)
        ask = call.ask = ask_of(caller, shape, wish, price)
        call.held = await self._held(ask, call)
        if call.held < ask.most:
            shrink(shape, wish, price, call.held)
        await self._carried(call, wish, upstream, target, price)

    async def _carried(
        self, call: _Call, wish: Wish, upstream: Upstream, target: str, price: Price | None = None
    ) -> None:
        """There and back. It is settled before the caller is told that it is over: its next call comes after that."""
        assert call.caller is not None
        exchange = Exchange(call.arrival, call.shape, wish)
        self._under_way[exchange] = call.ask.id if call.ask else ""
        try:
            await exchange.carry(self._session, upstream, target, call.caller.grant.run)
        finally:
            del self._under_way[exchange]
            self._settle(call, exchange, price)
        await exchange.finish()

    def _settle(self, call: _Call, exchange: Exchange, price: Price | None) -> None:
        ended, ask = exchange.ended, call.ask
        call.outcome, call.status = ended.end, ended.status
        if ask is None or price is None:
            return
        nothing = ended.end is End.UNREACHED or (
            ended.end in (End.REFUSED, End.NO_CREDIT) and ended.usage is None and not call.shape.charges(ended.status)
        )
        if nothing:
            self._books.release(ask.id)
            return
        tokens = ended.usage.as_tokens() if ended.usage else {}
        call.nano_usd = price.cost(ended.usage) if ended.usage else None
        if call.nano_usd is not None:
            self._metrics.used(ask.owner, ask.model, call.nano_usd, tokens)
            if call.nano_usd > call.held:
                log.error("a model call cost more than was thought possible", call=ask.id, nano_usd=call.nano_usd)
        end, at = ended.end, datetime.now(UTC)
        spent = Spent(ask.id, call.nano_usd, tokens, price.version, at, end, ended.status, ended.request)
        self._books.settle(spent)

    async def _caller(self, arrival: Arrival, shape: Shape) -> Caller:
        try:
            return await self._callers.caller(arrival.headers, api_key=True)
        except Refused as refused:
            # Claude tries eleven times for three minutes before it believes a 401.
            shown = any(name in arrival.headers for name in ("authorization", "x-api-key"))
            if refused.status == 401 and shown and shape.provider == "anthropic":
                raise Refused(403, str(refused)) from refused
            raise

    def _upstream(self, shape: Shape) -> Upstream:
        found = self._upstreams.get(shape.provider)
        if found is None:
            key = f"WATCHBILL_{shape.provider.upper()}_KEY_FILE"
            raise Refused(403, f"this relay has no model provider for {shape.provider}; set {key} or WATCHBILL_MODELS")
        return found

    def _price(self, shape: Shape, wish: Wish) -> Price:
        price = self._prices.of(shape.prices, wish.model, datetime.now(UTC))
        if price is None:
            raise Refused(400, f"what {wish.model[:100]!r} costs is not known; set WATCHBILL_PRICES to tell it")
        return price

    async def _held(self, ask: Ask, call: _Call) -> int:
        """The nano-dollars that are set aside for it. Raises Refused where there are too few, or none at all."""
        with unless_gone(call.arrival):
            answer = await admitted(self._books, ask, self._limits.patience)
        match answer:
            case Held(nano_usd=nano_usd):
                return nano_usd
            case Short() as short:
                call.outcome = f"short_{short.ceiling}"
                raise Refused(402, told(short, ask))
            case Void(why=why):
                call.outcome = "void"
                raise Refused(403, why)

    def _note(self, call: _Call) -> None:
        seconds = time.monotonic() - call.began
        grant = call.caller.grant if call.caller else None
        if grant:
            self._metrics.call(grant.owner, grant.model_id, call.shape.endpoint, call.outcome, seconds)
        log.info(
            "a model call",
            call=call.ask.id if call.ask else None,
            run=grant.run if grant else None,
            capability=call.caller.fingerprint if call.caller else None,
            endpoint=call.shape.endpoint,
            model=call.model[:100],
            status=call.status,
            outcome=call.outcome,
            nano_usd=call.nano_usd,
            seconds=round(seconds, 3),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """With connections to providers, and somebody who watches over what is under way."""
        async with session() as self._session:
            watching = asyncio.create_task(self._watch())
            try:
                yield
            finally:
                if self._calls:
                    # The server has cancelled them, and does not wait until they have told what they came to.
                    await asyncio.wait(self._calls, timeout=CANCELLED_SECONDS)
                watching.cancel()

    async def _watch(self) -> None:
        renewed = time.monotonic()
        while True:
            await asyncio.sleep(1)
            now = asyncio.get_running_loop().time()
            for exchange in tuple(self._under_way):
                exchange.tick(now)
            if time.monotonic() - renewed > RENEWED_EVERY:
                renewed = time.monotonic()
                until = datetime.now(UTC) + LEASE
                for id in filter(None, self._under_way.values()):
                    self._books.renew(id, until)


def _shape_of(path: str) -> tuple[Shape, str]:
    """The API that a path is of, and the model that it names; for another path, the one to be told so by."""
    for shape in SHAPES:
        named = shape.matches(path)
        if named is not None:
            return shape, named
    provider = path.partition("/")[0]
    return next((shape for shape in SHAPES if shape.provider == provider), SHAPES[0]), ""


def _is_list(arrival: Arrival) -> bool:
    return arrival.method == "GET" and arrival.path in LISTS


LISTS = frozenset({"anthropic/v1/models", "openai/v1/models", "gemini/v1beta/models"})


def _target(call: _Call) -> str:
    arrival, shape = call.arrival, call.shape
    if shape.matches(arrival.path) is None:
        raise Refused(404, f"no model is asked at {arrival.path[:200]!r} here")
    if "upgrade" in arrival.headers:
        raise Refused(426, "there are no WebSockets here; send it with POST")
    if arrival.method != "POST":
        raise Refused(405, "a model is asked with POST")
    return shape.target(arrival.path, arrival.query)


async def _say_no(call: _Call, refused: Refused) -> None:
    call.status, call.outcome = refused.status, call.outcome or "turned_away"
    content = call.shape.refusal(refused.status, final(str(refused)) if refused.status < 500 else str(refused))
    await call.arrival.whole(refused.status, content, headers_of(refused.status))
