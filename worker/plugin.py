"""One object that makes client, worker and replayer agree: converter, interceptor and sandbox."""

from __future__ import annotations

from temporalio.contrib.pydantic import PydanticJSONPlainPayloadConverter
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultPayloadConverter,
    JSONPlainPayloadConverter,
)
from temporalio.plugin import SimplePlugin
from temporalio.worker import WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from worker.errors import SaysWhetherToTryAgain

_OURS = ("activities", "domain", "forge", "runtimes", "store")
"""Rooms below the workflows: imported once. Workflows themselves stay in the sandbox, which watches them."""


_JSON = PydanticJSONPlainPayloadConverter()


class _Converter(CompositePayloadConverter):
    """The SDK's pydantic converter with one memory of types for the whole process.

    The SDK makes a converter for every workflow and every activation, and each would work out again how
    a dataclass is read: one part in fourteen of a worker's time when it was measured.
    """

    def __init__(self) -> None:
        standard = DefaultPayloadConverter.default_encoding_payload_converters
        super().__init__(*(_JSON if isinstance(each, JSONPlainPayloadConverter) else each for each in standard))


def sandbox(_: WorkflowRunner | None = None) -> SandboxedWorkflowRunner:
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*_OURS, "sqlalchemy", "structlog")
    return SandboxedWorkflowRunner(restrictions=restrictions)


def watchbill_plugin() -> SimplePlugin:
    """Give this to every client, worker and replayer that touches Watchbill's workflows."""
    return SimplePlugin(
        "watchbill",
        data_converter=DataConverter(payload_converter_class=_Converter),
        interceptors=[SaysWhetherToTryAgain()],
        workflow_runner=sandbox,
    )
