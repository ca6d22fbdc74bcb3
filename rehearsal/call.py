"""One API request on its way to the function that answers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from rehearsal import shapes
from rehearsal.answers import Answer, Json, Refused, not_supplied, page
from rehearsal.auth import Actor
from rehearsal.git import Bare
from rehearsal.repositories import bare
from rehearsal.state import Row, State


@dataclass(frozen=True)
class Call:
    """What an endpoint sees. `target` is the repository in the path, already checked against the caller.

    `path` holds the variables of the path; `url` is the request's address without the query; `version`
    is the API version that the caller asked for, if any.
    """

    state: State
    actor: Actor
    path: Mapping[str, str]
    url: str
    query: str
    accept: str
    version: str
    body: Mapping[str, Json]
    target: Row | None = None

    @property
    def repository(self) -> Row:
        assert self.target is not None, "this endpoint has no repository in its path"
        return self.target

    @property
    def git(self) -> Bare:
        return bare(self.state, self.repository)

    @property
    def repository_url(self) -> str:
        return shapes.repository_url(self.state, self.repository)

    @property
    def asked(self) -> dict[str, str]:
        """The query's fields."""
        return dict(parse_qsl(self.query))

    @property
    def path_name(self) -> str:
        """The request's path, as faults match it."""
        return "/" + self.url.removeprefix(self.state.address)

    def number(self, name: str) -> int:
        """A number in the path. Raises Refused 404 where it is none, as an unknown one would."""
        text = self.path[name]
        if not text.isdecimal() or len(text) > 18:
            raise Refused(404, "Not Found")
        return int(text)

    def text(self, name: str, default: str | None = None) -> str:
        """A string in the body; 422 when it is missing and has no default, or is something else."""
        value = self.body.get(name)
        if value is None:
            if default is None:
                raise not_supplied(name)
            return default
        if not isinstance(value, str):
            raise Refused(422, f"Invalid request.\n\nFor 'properties/{name}', {value!r} is not a string.")
        return value

    def texts(self, name: str) -> list[str]:
        """A list of strings in the body; 422 when it is missing or something else."""
        value = self.body.get(name)
        if value is None:
            raise not_supplied(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise Refused(422, f"Invalid request.\n\nFor 'properties/{name}', {value!r} is not an array.")
        return value

    def page(self, items: list[Any], wrap: str = "") -> Answer:
        return page(items, self.query, self.url, wrap)

    def commit(self, ref: str) -> str:
        """The sha of a branch, tag or commit. Raises Refused 422 as GitHub's commit endpoints do."""
        for candidate in (ref, f"refs/heads/{ref}", f"refs/tags/{ref}"):
            sha = self.git.resolve(candidate)
            if sha is not None:
                return sha
        raise Refused(422, f"No commit found for SHA: {ref}")


@dataclass(frozen=True)
class Endpoint:
    """A method and path, what the caller needs, and the function that answers.

    `needs` is an App permission and level (`pull_requests:write`; alternatives joined by `|`), which
    an installation token must carry; `person` is the role that a person needs instead, where it is
    another level. An endpoint without `needs` has no repository and checks its caller itself.
    """

    method: str
    path: str
    answer: Callable[[Call], Answer]
    needs: str = ""
    person: str = ""
