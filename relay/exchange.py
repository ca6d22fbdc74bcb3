"""One call at a provider: sent once, its answer passed back as it comes, and read as it goes by.

A caller that hangs up does not end what it has asked for: a provider works on and charges for it, so the
answer is read to its end, within bounds, and only then is known what it cost.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum

import aiohttp
import orjson
import structlog
from starlette.types import Message

from relay.answers import Refused
from relay.arrival import Arrival
from relay.metering import Meter
from relay.shapes.shape import Json, Shape, Wish
from relay.upstreams import Upstream, passed_back, request_of
from relay.usage import Usage

log = structlog.get_logger("relay")

FIRST_BYTE_SECONDS = 600.0
"""How long a provider may take to begin its answer: as long as its own clients wait."""
SILENCE_SECONDS = 300.0
"""How long it may say nothing in the middle of one."""
STALL_SECONDS = 120.0
"""How long a caller may take in nothing of what it is told before it counts as gone."""
LONGEST_ERROR = 1 << 20
"""Bytes of an error of a provider's: it is read as a whole before it is passed back."""
DRAIN_SECONDS = 120.0
DRAIN_BYTES = 16 << 20
"""How much longer, and how much more, is read for a caller that is gone."""


class End(StrEnum):
    """How a call ended, in one word for the ledger, the log and the metrics."""

    WHOLE = "whole"
    HUNG_UP = "hung_up"
    """The caller went, and the answer was read to its end."""
    BROKEN_OFF = "broken_off"
    """The answer did not come to its end."""
    REFUSED = "refused"
    """The provider answered with an error."""
    NO_CREDIT = "no_credit"
    """The provider answered that our account there is not paid."""
    UNREACHED = "unreached"
    """Nothing was sent: the provider could not be reached."""


@dataclass
class Ended:
    """`status` is the provider's, 0 where it gave none; `usage` None where it told none; `request` its own id of it."""

    end: End = End.BROKEN_OFF
    status: int = 0
    usage: Usage | None = None
    request: str = ""


class Exchange:
    """A call under way. `ended` is filled in as it goes on, so that it holds however that breaks off."""

    def __init__(self, arrival: Arrival, shape: Shape, wish: Wish) -> None:
        self.ended = Ended()
        self._arrival, self._shape, self._wish = arrival, shape, wish
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._gone = self._given_up = self._stalled = self._saying = False
        self._draining: asyncio.TimerHandle | None = None
        self._patience, self._since = FIRST_BYTE_SECONDS, self._loop.time()
        self._rest = b""

    async def carry(self, session: aiohttp.ClientSession, upstream: Upstream, target: str, run: str) -> None:
        """Ask, and pass the answer back but for its last message, which `finish` sends.

        Raises Refused where the caller can still be answered otherwise.
        """
        leaving = self._arrival.leaving()
        leaving.add_done_callback(self._left)
        headers = upstream.headers(self._arrival.headers, run)
        url = f"{upstream.url}/{target}"
        try:
            async with session.post(url, data=self._wish.encoded, headers=headers, allow_redirects=False) as answer:
                self.ended.status, self.ended.request = answer.status, request_of(answer)
                await (self._pass_back(answer) if answer.status < 300 else self._refuse(answer, upstream))
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            # No connection, so nothing was asked. One that breaks later may have carried it there.
            self.ended.end = End.UNREACHED
            self._broken(error)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            self._broken(error)
        except asyncio.CancelledError as error:
            if not self._given_up:
                raise
            self._go_on()
            self._broken(error)
        finally:
            leaving.remove_done_callback(self._left)
            if self._draining is not None:
                self._draining.cancel()

    async def finish(self) -> None:
        """The last message. Without it the server breaks the connection off, and the caller sees that."""
        if not self._gone and self.ended.end in (End.WHOLE, End.REFUSED):
            await self._arrival.end(self._rest)

    def tick(self, now: float) -> None:
        """Give up on whoever has kept us waiting for too long. To be called about once a second."""
        if now - self._since > self._patience and not self._given_up:
            self._give_up()

    async def _pass_back(self, answer: aiohttp.ClientResponse) -> None:
        _require_plain(answer)
        streamed = answer.content_type == "text/event-stream"
        meter = Meter(self._shape, self._wish, streamed=streamed)
        headers = passed_back(answer)
        if answer.content_length is not None and not streamed:
            headers["content-length"] = str(answer.content_length)
        await self._say(self._arrival.head(answer.status, headers))
        try:
            await self._pump(answer, meter, streamed=streamed)
        except BaseException:
            self.ended.usage = meter.used(whole=False)
            raise
        self.ended.usage = meter.used(whole=True)
        self.ended.request = self.ended.request or meter.named
        self.ended.end = End.HUNG_UP if self._gone else End.WHOLE
        self._rest += meter.rest()

    async def _refuse(self, answer: aiohttp.ClientResponse, upstream: Upstream) -> None:
        """Pass an error back, unless it is about our key: what providers say of that may hold the key itself."""
        if answer.status in (401, 403) or answer.status < 400:
            self.ended.end = End.REFUSED
            raise _misled(answer)
        _require_plain(answer)
        meter = Meter(self._shape, self._wish, streamed=answer.content_type == "text/event-stream")
        self._wait(SILENCE_SECONDS)
        body = bytearray()
        async for piece in answer.content.iter_any():
            body += piece
            if len(body) > LONGEST_ERROR:
                raise ValueError("the provider's error is too long to be read")
            meter.look(piece)
            self._wait(SILENCE_SECONDS)
        self.ended.usage, self.ended.end = meter.used(whole=True), End.REFUSED
        if upstream.is_told_in(body):
            log.error("the model provider told our key in an error", status=answer.status)
            raise Refused(502, f"the model provider answered with an error {answer.status} about this relay's key")
        if self._shape.is_out_of_credit(answer.status, _error_in(body)):
            self.ended.end = End.NO_CREDIT
            log.error("the account at the model provider is out of credit", url=str(answer.url.origin()))
            raise Refused(402, _NO_CREDIT)
        headers = {**passed_back(answer), "content-length": str(len(body))}
        await self._say(self._arrival.head(answer.status, headers))
        self._rest = bytes(body)

    async def _pump(self, answer: aiohttp.ClientResponse, meter: Meter, *, streamed: bool) -> None:
        """Piece for piece: nothing is read from the provider while the caller has not taken in what there was.

        Of what is no stream the last piece is left to `finish`: nobody can do anything with less than the whole.
        """
        drained = 0
        self._wait(SILENCE_SECONDS)
        async for piece in answer.content.iter_any():
            passing = meter.passing(piece)
            if not streamed:
                passing, self._rest = self._rest, passing
            if self._gone:
                drained += len(piece)
                if drained > DRAIN_BYTES:
                    raise ValueError("the rest of the answer is too long to be read for nobody")
            elif passing:
                await self._say({"type": "http.response.body", "body": passing, "more_body": True})
            meter.look(piece)
            self._wait(SILENCE_SECONDS)

    async def _say(self, message: Message) -> None:
        self._wait(STALL_SECONDS)
        self._saying = True
        try:
            await self._arrival.send(message)
        except asyncio.CancelledError:
            if not self._stalled:
                raise
            self._go_on()
            self._left()
        finally:
            self._saying = False

    def _wait(self, patience: float) -> None:
        self._patience, self._since = patience, self._loop.time()

    def _left(self, _: object = None) -> None:
        """The caller has gone: what it asked for is read on for a while."""
        self._gone = True
        self._draining = self._draining or self._loop.call_later(DRAIN_SECONDS, self._give_up)

    def _give_up(self) -> None:
        if self._saying:
            self._stalled = True
        else:
            self._given_up = True
        if self._task is not None:
            self._task.cancel()

    def _go_on(self) -> None:
        if self._task is not None:
            self._task.uncancel()

    def _broken(self, error: BaseException) -> None:
        """Raises Refused unless an answer has begun."""
        why = str(error) or type(error).__name__
        log.warning("a model call broke off", end=self.ended.end, status=self.ended.status, why=why[:300])
        if not self._arrival.begun:
            raise Refused(502, "the model provider did not answer") from error


_NO_CREDIT = (
    "the account at the model provider is out of credit: whoever pays for it adds some there, then resumes the task; "
    "no budget of Watchbill's is used up, and raising one mends nothing"
)


def _error_in(body: bytes | bytearray) -> Json:
    """What an answer tells under `error`; empty where nothing can be read. Gemini's streams tell it in a list."""
    try:
        told = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    if isinstance(told, list) and told:
        told = told[0]
    error = told.get("error") if isinstance(told, dict) else None
    return error if isinstance(error, dict) else {}


def _require_plain(answer: aiohttp.ClientResponse) -> None:
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise ValueError("the answer is compressed although it was asked not to be")


def _misled(answer: aiohttp.ClientResponse) -> Refused:
    """What a provider says about our key, or about another address, is not the caller's to read."""
    if answer.status in (401, 403):
        log.error("the model provider does not take our key", url=str(answer.url.origin()), status=answer.status)
        return Refused(403, "the model provider does not take this relay's key, or not for this model; see its log")
    return Refused(502, "the model provider leads elsewhere, and the relay does not follow")
