"""The policy hook: `python -I -S hook.py CLI POLICYFILE SECONDS`, asked by an agent's CLI about what it is to do.

The question comes as a JSON object on standard input, in the form that Claude Code and Codex share and
our plugin for OpenCode uses too; the answer goes to standard output. Exit status 2 refuses, and is what
every failure in here comes to. After SECONDS the kernel ends it: a CLI would stop waiting soon after, and let
the tool pass. Whatever goes wrong before a line of this runs is turned into a refusal
by the command that starts it (runtimes.hooks).
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` would cost two thirds of an interpreter's start
import os
import sys

# Last, so that nothing beside this package can stand in for a standard module.
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

_REFUSED = 2


def main() -> int:
    try:
        _signal.signal(_signal.SIGALRM, _signal.SIG_DFL)
        _signal.alarm(int(sys.argv[3]))
        from runtimes.gate import answer

        chunks = []
        while chunk := os.read(0, 1 << 16):
            chunks.append(chunk)
        os.write(1, answer(sys.argv[1], sys.argv[2], b"".join(chunks)))
    except BaseException as error:  # noqa: BLE001 - what cannot be judged is refused
        os.write(2, f"This cannot be checked against the policy, so it is refused: {error}.".encode(errors="replace"))
        return _REFUSED
    return 0


# Nothing is buffered, and taking an interpreter apart costs as much as the judgement.
os._exit(main())
