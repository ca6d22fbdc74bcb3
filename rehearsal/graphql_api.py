"""GitHub's GraphQL API, as far as REST cannot do the same: a draft that is made ready."""

from __future__ import annotations

from typing import Any

from graphql import GraphQLError, GraphQLResolveInfo, build_schema, graphql_sync

from rehearsal import pulls, shapes
from rehearsal.answers import Answer, Json, Refused
from rehearsal.auth import may, sees
from rehearsal.call import Call, Endpoint
from rehearsal.pull_shapes import html_url
from rehearsal.repositories import by_id

_SCHEMA = build_schema("""
type Query { viewer: Actor! }
type Actor { login: String! }
type Mutation {
  markPullRequestReadyForReview(input: MarkPullRequestReadyForReviewInput!): MarkPullRequestReadyForReviewPayload
}
input MarkPullRequestReadyForReviewInput { clientMutationId: String, pullRequestId: ID! }
type MarkPullRequestReadyForReviewPayload { clientMutationId: String, pullRequest: PullRequest }
type PullRequest { id: ID!, number: Int!, isDraft: Boolean!, state: String!, title: String!, url: String! }
""")


def answer(call: Call) -> Answer:
    """What the query asks for. What is wrong with it comes with status 200, as from GitHub."""
    if not call.actor.login and call.actor.app is None:
        raise Refused(401, "This endpoint requires you to be authenticated.")
    query, variables = call.body.get("query"), call.body.get("variables")
    if not isinstance(query, str):
        return Answer({"errors": [{"message": "A query attribute must be specified and must be a string."}]})
    done = graphql_sync(_SCHEMA, query, _Root(), call, variables if isinstance(variables, dict) else None)
    errors: list[Json] = [_told(error) for error in done.errors or ()]
    data: dict[str, Json] = {"data": done.data} if done.data is not None or not errors else {}
    return Answer(data | ({"errors": errors} if errors else {}))


class _Root:
    """The fields of a query's and a mutation's root, each a method."""

    def viewer(self, info: GraphQLResolveInfo[Call]) -> dict[str, str]:
        return {"login": info.context.actor.login}

    def markPullRequestReadyForReview(self, info: GraphQLResolveInfo[Call], input: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        call = info.context
        pull = pulls.with_node(call.state, input["pullRequestId"])
        repository = by_id(call.state, pull["repository"]) if pull is not None else None
        if pull is None or repository is None or not sees(call.state, call.actor, repository):
            raise _error("NOT_FOUND", f"Could not resolve to a node with the global id of '{input['pullRequestId']}'")
        own = call.actor.login.lower() == pull["author"].lower()
        if not own and not may(call.state, call.actor, repository, "pull_requests", "write"):
            raise _error("FORBIDDEN", "Resource not accessible by integration")
        if pull["state"] != "open":
            raise _error("UNPROCESSABLE", "Pull request is closed")
        pull = pulls.mark_ready(call.state, pull, call.actor.login)
        seen = {
            "id": shapes.node("PR", pull["issue"]),
            "number": pull["number"],
            "isDraft": bool(pull["draft"]),
            "state": pull["state"].upper(),
            "title": pull["title"],
            "url": html_url(call.state, repository, pull["number"]),
        }
        return {"clientMutationId": input.get("clientMutationId"), "pullRequest": seen}


def _error(kind: str, message: str) -> GraphQLError:
    return GraphQLError(message, extensions={"type": kind})


def _told(error: GraphQLError) -> dict[str, Any]:
    """GitHub says the type of an error beside its message, where the standard has extensions."""
    told: dict[str, Any] = dict(error.formatted)
    return {"type": kind, **told} if (kind := (told.pop("extensions", None) or {}).get("type")) else told


ENDPOINTS = (Endpoint("POST", "/graphql", answer),)
