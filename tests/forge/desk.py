"""A remote repository with a person who works in it, and our mirror of it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from forge.collect import Work
from forge.mirror import Mirror

TASK = "plan-0123abcd-1"
BRANCH = f"watchbill/{TASK}"
NOBODY = 65534
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def plain_git(directory: Path, *args: str, **env: str) -> str:
    """git as a person or an agent runs it: with the repository's own configuration and hooks."""
    identity = {
        f"GIT_{role}_{key}": "person@example.org" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")
    }
    surroundings = {
        "PATH": os.environ["PATH"],
        "HOME": str(directory),
        "GIT_CONFIG_NOSYSTEM": "1",
        **identity,
        **env,
    }
    done = subprocess.run(["git", *args], cwd=directory, env=surroundings, capture_output=True, check=True)
    return done.stdout.decode().strip()


def write(directory: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def nest(directory: Path, depth: int, name: str) -> None:
    """Folders within each other, deeper than a path can name."""
    descriptor = os.open(directory, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=descriptor)
        inner = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@dataclass
class Remote:
    """The repository on the forge (`path`, bare) and a person's clone of it (`clone`)."""

    path: Path
    clone: Path

    @property
    def url(self) -> str:
        return self.path.as_uri()

    def commit(self, branch: str, files: dict[str, str], *, base: str = "main") -> str:
        """What a person commits and pushes to a branch, which starts at `base` where it is new."""
        plain_git(self.clone, "fetch", "--quiet", "origin")
        start = f"origin/{branch}" if self.head(branch) else f"origin/{base}"
        plain_git(self.clone, "checkout", "--quiet", "-B", branch, start)
        write(self.clone, files)
        plain_git(self.clone, "add", "--all")
        plain_git(self.clone, "commit", "--quiet", "--message", f"change {', '.join(files)}")
        plain_git(self.clone, "push", "--quiet", "origin", branch)
        return plain_git(self.clone, "rev-parse", "HEAD")

    def head(self, branch: str) -> str | None:
        return plain_git(self.path, "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}") or None

    def show(self, sha: str, path: str) -> str:
        return plain_git(self.path, "show", f"{sha}:{path}")


@dataclass
class Desk:
    """A task's mirror and workspace, cut from main."""

    mirror: Mirror
    remote: Remote
    workspace: Path
    base_sha: str

    def collect(
        self, run: str = "run-1", *, task: str = TASK, start: str = "", base_sha: str = "", message: str = "Work"
    ) -> Work:
        return self.mirror.collect(
            self.workspace,
            task_id=task,
            run_id=run,
            start=start or self.base_sha,
            base_sha=base_sha or self.base_sha,
            message=message,
            at=AT,
        )

    def listed(self, sha: str) -> list[str]:
        """The paths in a commit of ours."""
        return plain_git(self.mirror.path, "ls-tree", "-r", "-z", "--name-only", sha).strip("\0").split("\0")

    def content(self, sha: str, path: str) -> str:
        return plain_git(self.mirror.path, "show", f"{sha}:{path}")


@dataclass
class Unprivileged:
    """A folder, and Python run in it by a user whom file permissions bind."""

    folder: Path

    def run(self, program: str) -> str:
        """What a program prints; it has `folder`, `Mirror` and `remove`."""
        # Imported before the rights are given up: the interpreter may live where only root may look.
        text = f"""
import os, subprocess, sys
from datetime import UTC, datetime
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from forge.mirror import Mirror
from forge.aside import remove
folder = Path({str(self.folder)!r})
if os.getuid() == 0:
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
"""
        text += textwrap.dedent(program)
        command = [sys.executable, "-c", text]
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        done = subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout
