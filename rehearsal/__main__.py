"""`python -m rehearsal --folder DIR [--port N]`: the stand-in GitHub, and one for models, as a process of their own."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path

from rehearsal.server import Rehearsal
from rehearsal.state import FolderInUse


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m rehearsal", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where everything is kept")
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes a free one")
    parser.add_argument("--host", default="127.0.0.1", help="whoever reaches it can act on its pages")
    parser.add_argument("--webhook-url", default="", help="hears of every repository; DIR/webhook-secret signs")
    parser.add_argument("--address", default="", help="how clients reach us, when not by host and port")
    given = parser.parse_args()
    # Blocked before any thread starts, so that this one alone waits for them.
    ends = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    rehearsal = Rehearsal(
        given.folder, port=given.port, host=given.host, webhook_url=given.webhook_url, address=given.address
    )
    try:
        rehearsal.start()
    except (FolderInUse, OSError) as error:
        sys.stderr.write(f"rehearsal: {error}\n")
        return 1
    ready = {
        "address": rehearsal.url,
        "models": rehearsal.models_url,
        "setup_token_file": str(given.folder / "setup-token"),
        "webhook_secret_file": str(given.folder / "webhook-secret") if given.webhook_url else None,
        "pid": os.getpid(),
    }
    sys.stdout.write(json.dumps(ready) + "\n")
    sys.stdout.flush()
    signal.sigwait(ends)
    rehearsal.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
