"""How we run git: from an environment made from scratch, with errors in the words of the domain.

Nothing of the user's or the machine's configuration, no hook, no prompt and no trace variable reaches
a git command of ours, and credentials travel in its environment only: arguments are public, and an
address ends up in logs.
"""

from __future__ import annotations

import base64
import os
import re
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from domain.errors import NotFound, Unauthorized, Unavailable, WatchbillError
from forge.redact import redact

LOCAL_SECONDS = 120.0
REMOTE_SECONDS = 900.0

_IDENTITY = {"NAME": "Watchbill", "EMAIL": "noreply@watchbill.invalid"}

_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    # No ~/.netrc, no ~/.config/git/attributes, no ssh keys.
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    **{f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in _IDENTITY.items()},
}

_CONFIG = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    # What we preserve must outlive a power cut as well, since the store will rely on it.
    "core.fsync": "committed,loose-object",
    "core.fsyncMethod": "batch",
    # What is fetched stays the pack that it came as (Mirror._tidy).
    "fetch.unpackLimit": "1",
    # A ref that another process of ours is writing is worth a short wait.
    "core.filesRefLockTimeout": "500",
    # The token is for the host it was made for, wherever that host would send us.
    "http.followRedirects": "false",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
}


@dataclass(frozen=True)
class Auth:
    """Credentials for git over HTTP, shown to nobody: the value of the Authorization header."""

    header: str = field(repr=False)

    @classmethod
    def with_token(cls, token: str) -> Auth:
        """GitHub takes any kind of token as the password of this user."""
        return cls("Basic " + base64.b64encode(f"x-access-token:{token}".encode()).decode())

    def config(self, url: str) -> dict[str, str]:
        """The git configuration that sends the header to this address and to no other."""
        return {f"http.{url}.extraheader": f"Authorization: {self.header}"}


class Contended(Unavailable):
    """Another git process is at work on the same ref or file, or left its lock behind when it died."""


_MEANINGS: tuple[tuple[type[WatchbillError], re.Pattern[str]], ...] = (
    (
        Contended,
        re.compile(
            r"unable to create '.*\.lock': file exists"
            r"|unable to create file .*packed-refs\.new: file exists"
            r"|cannot lock ref .*(but expected|reference already exists)",
            re.IGNORECASE,
        ),
    ),
    (
        Unauthorized,
        re.compile(
            r"authentication failed|could not read (username|password)|returned error: 40[13]\b",
            re.IGNORECASE,
        ),
    ),
    (
        NotFound,
        re.compile(
            r"repository '.*' (not found|does not exist)|does not appear to be a git repository"
            r"|returned error: (404|410)\b|bad object|not a valid object name|must point to a commit"
            r"|failed to unpack tree object|bad revision|does not match any|did not match any",
            re.IGNORECASE,
        ),
    ),
    (
        Unavailable,
        re.compile(
            r"returned error: (408|429|5\d\d)\b|could not resolve host|failed to connect|couldn't connect"
            r"|connection (timed out|reset|refused|was closed)|timed out|too slow|early eof"
            r"|hung up unexpectedly|unexpected disconnect|couldn't find remote ref|not our ref|rpc failed"
            r"|empty reply|ssl_|gnutls_|could not read from remote repository",
            re.IGNORECASE,
        ),
    ),
)
"""What git's messages mean, in the C locale of git 2.39: it says what went wrong there and nowhere else.

Its exit status is 128 for nearly everything. The sentences are those of its http.c, remote-curl.c,
connect.c, fetch-pack.c, lockfile.c and refs/files-backend.c.
"""


def run(
    git_dir: Path,
    *args: str,
    env: Mapping[str, str] | None = None,
    config: Mapping[str, str] | None = None,
    input: bytes = b"",
    timeout: float = LOCAL_SECONDS,
    held: tuple[int, ...] = (),
    accept: tuple[int, ...] = (0,),
) -> bytes:
    """Run one git command on a repository of ours and answer what it printed.

    `config` are settings for this command alone, `held` the descriptors of locks that it keeps alive
    (forge.lock), `accept` the exit statuses that are answers. Raises NotFound, Unauthorized,
    Unavailable, or WatchbillError for what git cannot do at all; the message is one redacted sentence.
    """
    process = subprocess.Popen(
        ["git", *args],
        cwd=git_dir,
        env=_environment(git_dir, env or {}, config or {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=held,
        process_group=0,
    )
    try:
        output, errors = process.communicate(input, timeout)
    except BaseException as error:
        # With its children: they hold the pipes and, over HTTP, the connection.
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise Unavailable(f"git {args[0]} did not end within {timeout:.0f} seconds") from None
        raise
    if process.returncode not in accept:
        raise _failure(args[0], process.returncode, errors.decode("utf-8", "replace"))
    return output


def refs(git_dir: Path, lock: int, *which: str) -> dict[str, str]:
    """The refs that `git for-each-ref` finds for these arguments, with the objects they name."""
    listed = run(git_dir, "for-each-ref", "--format=%(objectname) %(refname)", *which, held=(lock,))
    return {name: sha for sha, name in (line.split(" ", 1) for line in lines(listed))}


def exists(git_dir: Path, lock: int, sha: str) -> bool:
    """Whether this repository has the commit."""
    answer = run(git_dir, "cat-file", "--batch-check", input=f"{sha}\n".encode(), held=(lock,))
    return b" commit " in answer


def is_ancestor(git_dir: Path, lock: int, ancestor: str, sha: str) -> bool:
    """Whether `ancestor` is in the history of `sha`; both are there."""
    return not run(git_dir, "rev-list", "--max-count=1", ancestor, f"^{sha}", held=(lock,))


def lines(output: bytes) -> list[str]:
    return output.decode("utf-8", "surrogateescape").split("\n")[:-1]


def push_refusal(branch: str, reasons: list[str]) -> WatchbillError:
    """The error for a branch that the other side would not set although nobody had moved it."""
    reason = redact("; ".join(reasons))[:500]
    if re.search(r"declined|refus|deny|prohibited|protected", reason):
        return WatchbillError(f"the forge does not take the commit on {branch}: {reason}")
    return Unavailable(f"the forge did not take the push to {branch}: {reason or 'it gave no reason'}")


def refuse_credentials(url: str) -> None:
    """WatchbillError for an address that carries a password: it would show in process lists and logs."""
    if urlsplit(url).password is not None:
        raise WatchbillError(f"the address {redact(url)} carries credentials; configure a token instead")


def _environment(git_dir: Path, env: Mapping[str, str], config: Mapping[str, str]) -> dict[str, str]:
    settings = {**_CONFIG, **config}
    numbered = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        numbered |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    # PATH is how programs are found; it configures nothing.
    path = {"PATH": os.environ.get("PATH", os.defpath)}
    return {**_ENVIRONMENT, **path, "GIT_DIR": str(git_dir), **numbered, **env}


def _failure(command: str, status: int, errors: str) -> WatchbillError:
    """The error for what git wrote. Lines that begin with `remote:` are the peer's and decide nothing."""
    if status < 0:
        return Unavailable(f"git {command} was ended by signal {-status}")
    written = [line for line in errors.splitlines() if line.strip()] or [f"exit status {status}"]
    said = [line.split(":", 1)[1].strip() for line in written if line.startswith(("fatal:", "error:"))]
    meanings = (kind for line in said for kind, pattern in _MEANINGS if pattern.search(line))
    kind = next(meanings, WatchbillError)
    return kind(f"git {command} failed: {redact([*said, written[-1]][0])[:500]}")
