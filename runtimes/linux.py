"""The Linux calls that owning processes takes and that the standard library lacks or makes dear.

Every run pays for its supervisor's start-up, so the supervisor's modules import next to nothing:
`json`, `typing`, `pathlib` or `subprocess` would each cost as much as the bare interpreter, `signal` and
its enums two thirds of it.
Signal numbers are the kernel's (the same on every architecture that runs current Linux but MIPS).
Sources: prctl(2), signalfd(2), pidfd_send_signal(2), getrlimit(2), keyctl(2).
"""

from __future__ import annotations

import ctypes
import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGCHLD = 1, 2, 9, 15, 17

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_SIG_SETMASK = 2
_SFD_CLOEXEC = 0o2000000
_SFD_NONBLOCK = 0o4000
_SIGINFO_BYTES = 128
_SYS_PIDFD_SEND_SIGNAL = 424
_LAST_SIGNAL = 64
KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "loongarch64": 219, "ppc64le": 271, "s390x": 280}
"""The number of the system call, which each architecture has for itself."""

_KEYCTL_JOIN_SESSION_KEYRING = 1

_libc = ctypes.CDLL(None, use_errno=True)
_libc.strsignal.restype = ctypes.c_char_p
_WORD = 8 * ctypes.sizeof(ctypes.c_ulong)
_SignalSet = ctypes.c_ulong * (1024 // _WORD)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends: none can leave the tree below us."""
    _call("prctl", _PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1))


def die_with_parent() -> None:
    """Be killed by the kernel when the parent dies; the caller then checks that it has not yet."""
    _call("prctl", _PR_SET_PDEATHSIG, ctypes.c_ulong(SIGKILL))


def hide_memory() -> None:
    """Let no process of the same user look into this one or steer it, unless it may do so to any."""
    _call("prctl", _PR_SET_DUMPABLE, ctypes.c_ulong(0))


def leave_keyring() -> None:
    """Have a session keyring of one's own, empty: what others put into the one that was inherited is not seen.

    Where these calls are not known, or denied to all that this process could start, there is none to see.
    """
    number = KEYCTL.get(os.uname().machine)
    if number is None:
        return
    try:
        _call("syscall", ctypes.c_long(number), _KEYCTL_JOIN_SESSION_KEYRING, None)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM):
            raise


def signals_as_file(signals: Iterable[int]) -> int:
    """Block these signals and answer a non-blocking descriptor from which they are read."""
    wanted = _signal_set(signals)
    _call("sigprocmask", _SIG_SETMASK, ctypes.byref(wanted), None)
    return _call("signalfd", -1, ctypes.byref(wanted), _SFD_CLOEXEC | _SFD_NONBLOCK)


def read_signals(descriptor: int) -> list[int]:
    """The signals that arrived since the last call."""
    try:
        data = os.read(descriptor, 16 * _SIGINFO_BYTES)
    except BlockingIOError:
        return []
    starts = range(0, len(data), _SIGINFO_BYTES)
    return [ctypes.c_uint32.from_buffer_copy(data, start).value for start in starts]


def reset_signals() -> None:
    """Give every signal its default action and block none, as a program expects at its start."""
    for number in range(1, _LAST_SIGNAL + 1):
        _libc.signal(number, None)
    _call("sigprocmask", _SIG_SETMASK, ctypes.byref(_signal_set(())), None)


def signal_name(number: int) -> str:
    text: bytes | None = _libc.strsignal(number)
    return f"signal {number} ({text.decode()})" if text else f"signal {number}"


def send_signal(pidfd: int, number: int) -> None:
    """Signal the process that a pidfd stands for, whatever has become of its pid; OSError if gone."""
    _call("syscall", ctypes.c_long(_SYS_PIDFD_SEND_SIGNAL), pidfd, number, None, 0)


def _signal_set(signals: Iterable[int]) -> ctypes.Array[ctypes.c_ulong]:
    made = _SignalSet()
    for number in signals:
        made[(number - 1) // _WORD] |= 1 << (number - 1) % _WORD
    return made


def _call(name: str, *arguments: object) -> int:
    answer = int(getattr(_libc, name)(*arguments))
    if answer == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return answer
