"""As much of GitHub's payloads as a hint needs. Everything else in them is ignored, whatever it is."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

_Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
"""Text that may be missing or null."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Repository(_Part):
    full_name: _Text = ""


class _Ref(_Part):
    ref: _Text = ""
    repo: _Repository | None = None


class _PullRequest(_Part):
    number: int | None = None
    head: _Ref = _Ref()


class _Branch(_Part):
    head_branch: str | None = None


class Payload(_Part):
    """Which repository, and which branch or pull request in it, a delivery is about."""

    action: _Text = ""
    ref: _Text = ""
    repository: _Repository | None = None
    pull_request: _PullRequest | None = None
    check_run: _CheckRun | None = None
    check_suite: _Branch | None = None

    @property
    def repository_name(self) -> str:
        return self.repository.full_name if self.repository else ""

    @property
    def branch(self) -> str:
        """The branch in this very repository; empty when the delivery names none, or one of a fork's."""
        if self.pull_request:
            home = self.pull_request.head.repo
            return self.pull_request.head.ref if home and home.full_name == self.repository_name else ""
        if self.check_run and self.check_run.check_suite:
            return self.check_run.check_suite.head_branch or ""
        if self.check_suite:
            return self.check_suite.head_branch or ""
        return self.ref.removeprefix("refs/heads/") if self.ref.startswith("refs/heads/") else ""


class _CheckRun(_Part):
    check_suite: _Branch | None = None


Payload.model_rebuild()
