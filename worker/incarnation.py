"""Which Temporal this graph belongs to. A graph serves one at a time, and says so.

Every Temporal namespace has an id of its own, made with its database. The graph numbers those that
it has served; moves of an earlier one are refused, so a Temporal that comes back from a backup
cannot act beside the one that took over.
"""

from __future__ import annotations

from datetime import UTC, datetime

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client

from domain.errors import Superseded
from store import workers
from store.database import Store


async def namespace_id(client: Client) -> str:
    """The id of the client's namespace, made when the server's database was."""
    answer = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=client.namespace))
    return answer.namespace_info.id


async def incarnation(client: Client, store: Store, *, adopt: bool = False) -> int:
    """The number of this Temporal in the graph; the first one that comes is the first.

    Raises Superseded for a Temporal that the graph does not know while it serves another, unless told
    to adopt it, and for one that another has taken over from.
    """
    temporal = await namespace_id(client)
    with store.write() as connection:
        newest = workers.newest_incarnation(connection)
        if newest is not None and newest.temporal_id != temporal and not adopt:
            raise Superseded(
                "this Temporal is not the one that the work graph belongs to; if it replaces that one for good, "
                "say so with: watchbill rebuild"
            )
        number = workers.incarnation_of(connection, temporal, datetime.now(UTC))
    if newest is not None and number < newest.number:
        raise Superseded(
            f"this Temporal is incarnation {number} of the work graph, and {newest.number} has taken over from it; "
            "connect to that one"
        )
    return number
