"""One object that makes client, worker and replayer agree: converter, interceptor and sandbox."""

from __future__ import annotations

from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.plugin import SimplePlugin
from temporalio.worker import WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from worker.errors import SaysWhetherToTryAgain

_OURS = ("activities", "domain", "forge", "runtimes", "store")
"""Rooms below the workflows: imported once. Workflows themselves stay in the sandbox, which watches them."""


def sandbox(_: WorkflowRunner | None = None) -> SandboxedWorkflowRunner:
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*_OURS, "sqlalchemy", "structlog")
    return SandboxedWorkflowRunner(restrictions=restrictions)


def watchbill_plugin() -> SimplePlugin:
    """Give this to every client, worker and replayer that touches Watchbill's workflows."""
    return SimplePlugin(
        "watchbill",
        data_converter=pydantic_data_converter,
        interceptors=[SaysWhetherToTryAgain()],
        workflow_runner=sandbox,
    )
