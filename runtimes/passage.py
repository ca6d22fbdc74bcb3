"""The way out of a cell: one address in there, carried to one address out here.

A cell has a network of its own, with nothing in it. Its first process opens a listening socket there and
hands it out, so that whatever connects to it arrives in the supervisor. Bytes are passed on as they come.
"""

from __future__ import annotations

import socket
import time
from threading import Semaphore, Thread

_CHUNK = 1 << 16
_MOST_CONNECTIONS = 64
"""What an agent may have open at once; more wait."""

_CONNECT_SECONDS = 30.0
_PAUSE_SECONDS = 0.2


class Carrier:
    """The supervisor's end. `theirs` is the descriptor that the cell's first process inherits."""

    def __init__(self, outside: tuple[str, int]) -> None:
        self._outside = outside
        self._ours, self._theirs = socket.socketpair()
        self._room = Semaphore(_MOST_CONNECTIONS)

    @property
    def theirs(self) -> int:
        return self._theirs.fileno()

    def begin(self) -> None:
        """Carry whatever comes, until this process ends; to be called once the cell has its end."""
        self._theirs.close()
        Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        _, handed, _, _ = socket.recv_fds(self._ours, 1, 1)
        self._ours.close()
        if not handed:
            return
        with socket.socket(fileno=handed[0]) as door:
            while True:
                self._room.acquire()
                if not self._admit(door):
                    self._room.release()
                    time.sleep(_PAUSE_SECONDS)

    def _admit(self, door: socket.socket) -> bool:
        """Carry the next caller, unless this process is out of descriptors or threads, of which some will come free."""
        try:
            caller, _ = door.accept()
        except OSError:
            return False
        try:
            Thread(target=self._carry, args=(caller,), daemon=True).start()
        except RuntimeError:
            caller.close()
            return False
        return True

    def _carry(self, caller: socket.socket) -> None:
        try:
            with caller, socket.create_connection(self._outside, timeout=_CONNECT_SECONDS) as called:
                called.settimeout(None)
                for end in (caller, called):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                back = Thread(target=_pass_on, args=(called, caller), daemon=True)
                back.start()
                _pass_on(caller, called)
                back.join()
        except (OSError, RuntimeError):
            # Nobody answers out there, or there is no thread for the way back: the caller sees its connection closed.
            pass
        finally:
            self._room.release()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    """Pass on what comes, to its end; where one side breaks, both are broken off."""
    try:
        while data := source.recv(_CHUNK):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


def hand_out(channel: int, address: tuple[str, int]) -> None:
    """Listen at this address, in the cell, and hand the socket out over a descriptor, which is then closed."""
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    door = socket.create_server(address, family=family, backlog=_MOST_CONNECTIONS)
    with door, socket.socket(fileno=channel) as out:
        socket.send_fds(out, [b"!"], [door.fileno()])
