"""Temporal, as far as a person's commands need it: publish, decide, look, and list.

Workflows are called by name, so that no command imports what they are made of. What is exchanged with
them are dataclasses of texts and numbers, which Temporal's own converter spells as the worker's pydantic
does; it saves every command the import of pydantic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeNamespaceRequest,
    DescribeTaskQueueRequest,
    DescribeWorkflowExecutionRequest,
)
from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import SearchAttributeKey, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError

from domain.errors import Unavailable
from domain.identity import TASK_QUEUE, heartbeat_workflow_id, plan_workflow_id, task_workflow_id
from domain.view import PlanView
from doors.temporal import DEFAULT_ADDRESS, connection
from starter.lines import PlanLine
from starter.nearby import no_temporal
from starter.settings import Settings
from starter.unanswered import (
    NOBODY_ANSWERED,
    NoWorker,
    ended_meanwhile,
    failure_of,
    no_answer,
    no_worker,
    refusal_of,
)

CONNECT = 5.0
"""Seconds to wait for Temporal."""

LOOK = 5.0
"""Seconds to wait for a worker's answer to a question."""

GLANCE = 2.0
"""Seconds to wait for what is good to know and no more."""

ANSWER = 60.0
"""Seconds to wait until a worker has carried out what a person said; the forge may be asked meanwhile."""

NOBODY_THERE = 5.0
"""Seconds after which it is worth asking whether there is a worker at all."""

PLAN = SearchAttributeKey.for_keyword("WatchbillPlan")
STATE = SearchAttributeKey.for_keyword("WatchbillState")
NEEDS_PERSON = SearchAttributeKey.for_bool("WatchbillNeedsPerson")

T = TypeVar("T")

if TYPE_CHECKING:
    from temporalio.api.workflow.v1 import PendingActivityInfo

    from domain.decision import Decision, Reply
    from domain.notes import EditContext
    from domain.publication import Publish
    from domain.raising import SetDay


class Temporal:
    """A connection, and the few things that commands ask through it."""

    def __init__(self, client: Client, address: str) -> None:
        self._client = client
        self.address = address

    @classmethod
    async def connect(cls, settings: Settings) -> Temporal:
        """Raises Unavailable when the home's is down, or none answers within `CONNECT` seconds."""
        options = _options(settings)
        address = options["target_host"]
        try:
            # The client's core would log to standard output, between the lines of JSON.
            silent = Runtime(telemetry=TelemetryConfig(logging=None))
            async with asyncio.timeout(CONNECT):
                return cls(await Client.connect(**options, runtime=silent), address)
        except (RuntimeError, TimeoutError, RPCError) as error:
            raise no_temporal(address) from error

    @property
    def client(self) -> Client:
        return self._client

    async def publish(self, plan_id: str, publish: Publish) -> Reply:
        """Publish a document; raises CommandFailed with what a worker found wrong."""
        return await self._update("publish", publish, plan_id, publish.owner)

    async def decide(self, decision: Decision, owner: str) -> Reply:
        """Hand a person's decision over and wait for what it came to."""
        update = "confirm" if decision.kind == "confirm" else "decide"
        return await self._update(update, decision, decision.plan_id, owner)

    async def set_day(self, order: SetDay) -> Reply:
        """Hand a person's word on their days over to their heartbeat, and wait for what it came to."""
        from domain.publication import OwnerRef

        workflow = ("HeartbeatWorkflow", OwnerRef(order.owner), heartbeat_workflow_id(order.owner))
        return await self._update_with_start("budget", order, *workflow)

    async def edit_context(self, order: EditContext) -> Reply:
        """Hand a person's changes to what is known over, and wait for what they came to."""
        from domain.publication import OwnerRef

        if order.plan_id:
            return await self._update("edit_context", order, order.plan_id, order.owner)
        workflow = ("HeartbeatWorkflow", OwnerRef(order.owner), heartbeat_workflow_id(order.owner))
        return await self._update_with_start("edit_context", order, *workflow)

    async def view(self, plan_id: str) -> PlanView | None:
        """The plan as its workflow saw it last; None when it has seen none.

        Raises NotFound without a workflow, NoWorker when nobody answers, Unavailable without Temporal.
        """
        handle = self._client.get_workflow_handle(plan_workflow_id(plan_id))
        try:
            # Not wait_for: in Python 3.11 it may swallow a Ctrl-C that comes together with the answer.
            async with asyncio.timeout(LOOK):
                answer: PlanView | None = await handle.query(
                    "view",
                    result_type=PlanView | None,  # type: ignore[arg-type]  # a union is no `type` for mypy
                    rpc_timeout=timedelta(seconds=LOOK),
                )
        except TimeoutError as error:
            raise no_worker(self.address) from error
        except (WorkflowQueryFailedError, WorkflowQueryRejectedError) as error:
            raise NoWorker(f"the plan's workflow cannot answer: {error}") from error
        except RPCError as error:
            if error.status in NOBODY_ANSWERED:
                raise no_worker(self.address) from error
            raise self._refusal(error) from error
        return answer

    async def plans(self, owner: str, limit: int = 1000) -> list[PlanLine]:
        """The owner's plans, the newest first. Raises Unavailable without Temporal."""
        query = f"WorkflowType = 'PlanWorkflow' AND WatchbillOwner = '{owner}'"
        found: dict[str, PlanLine] = {}
        try:
            async for execution in self._client.list_workflows(query, limit=limit):
                attributes = execution.typed_search_attributes
                plan = attributes.get(PLAN) or execution.id.removeprefix("plan-")
                # A plan that was looked at again after its end has several runs; the first is the newest.
                found.setdefault(
                    plan,
                    PlanLine(
                        plan,
                        attributes.get(STATE) or "unknown",
                        bool(attributes.get(NEEDS_PERSON)),
                        in_temporal_since=execution.start_time.isoformat(timespec="seconds"),
                    ),
                )
        except RPCError as error:
            raise self._refusal(error) from error
        return list(found.values())

    async def pending_activities(self, task_id: str) -> Sequence[PendingActivityInfo]:
        """What a task's workflow is about, with attempts and last failures. Raises NotFound and Unavailable."""
        request = DescribeWorkflowExecutionRequest(
            namespace=self._client.namespace,
            execution=WorkflowExecution(workflow_id=task_workflow_id(task_id)),
        )
        service = self._client.workflow_service
        try:
            answer = await service.describe_workflow_execution(request, timeout=timedelta(seconds=GLANCE))
        except RPCError as error:
            raise self._refusal(error) from error
        return answer.pending_activities

    async def workers(self, queue: str = TASK_QUEUE) -> list[str]:
        """Who has polled this queue for workflows in the last minutes."""
        request = DescribeTaskQueueRequest(
            namespace=self._client.namespace,
            task_queue=TaskQueue(name=queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        )
        try:
            answer = await self._client.workflow_service.describe_task_queue(request, timeout=timedelta(seconds=LOOK))
        except RPCError as error:
            raise self._refusal(error) from error
        return [poller.identity for poller in answer.pollers]

    async def search_attributes(self) -> set[str]:
        """The names of the namespace's own search attributes. Raises Unavailable."""
        request = ListSearchAttributesRequest(namespace=self._client.namespace)
        try:
            answer = await self._client.operator_service.list_search_attributes(
                request, timeout=timedelta(seconds=LOOK)
            )
        except RPCError as error:
            raise self._refusal(error) from error
        return set(answer.custom_attributes)

    async def namespace_id(self) -> str:
        """The id of the namespace, made with the server's database: it tells Temporals apart."""
        request = DescribeNamespaceRequest(namespace=self._client.namespace)
        try:
            answer = await self._client.workflow_service.describe_namespace(request, timeout=timedelta(seconds=LOOK))
        except RPCError as error:
            raise self._refusal(error) from error
        return answer.namespace_info.id

    async def _update(self, update: str, argument: Publish | Decision | EditContext, plan_id: str, owner: str) -> Reply:
        from domain.publication import PlanRef

        workflow = ("PlanWorkflow", PlanRef(plan_id, owner), plan_workflow_id(plan_id))
        return await self._update_with_start(update, argument, *workflow)

    async def _update_with_start(self, update: str, argument: Any, workflow: str, ref: object, id: str) -> Reply:
        """Update-with-start: it does not matter whether the workflow lives, ended or is forgotten."""
        from domain.decision import Reply

        def call() -> Awaitable[Reply]:
            start: WithStartWorkflowOperation[Any, Any] = WithStartWorkflowOperation(
                workflow,
                ref,
                id=id,
                task_queue=TASK_QUEUE,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            )
            return self._client.execute_update_with_start_workflow(
                update, argument, start_workflow_operation=start, result_type=Reply
            )

        try:
            return await self._answered(call)
        except WorkflowUpdateFailedError as error:
            raise failure_of(error) from error
        except WorkflowUpdateRPCTimeoutOrCancelledError as error:
            raise no_answer(ANSWER) from error
        except RPCError as error:
            raise self._refusal(error) from error

    async def _answered(self, call: Callable[[], Awaitable[T]]) -> T:
        """A worker's answer to a call, which is repeated where the workflow ended meanwhile."""
        for _ in range(3):
            calling = asyncio.ensure_future(call())
            try:
                await asyncio.wait({calling}, timeout=NOBODY_THERE)
                if not calling.done() and not await self.workers():
                    raise no_worker(self.address)
                async with asyncio.timeout(ANSWER - NOBODY_THERE):
                    return await calling
            except TimeoutError as error:
                raise no_answer(ANSWER) from error
            except (WorkflowUpdateFailedError, RPCError) as error:
                if not ended_meanwhile(error):
                    raise
            finally:
                calling.cancel()
        raise no_answer(ANSWER)

    def _refusal(self, error: RPCError) -> Exception:
        return refusal_of(error, self.address, self._client.namespace)


def _options(settings: Settings) -> dict[str, Any]:
    """The arguments of `Client.connect`.

    Raises Unavailable when nobody names an address and the home's own Temporal is down.
    """
    otherwise = "" if settings.down else DEFAULT_ADDRESS
    options = connection(settings.environment, settings.temporal_address, settings.temporal_namespace, otherwise)
    if not options["target_host"]:
        raise Unavailable(settings.down)
    return options
