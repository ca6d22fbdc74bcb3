"""One object that makes client, worker and replayer agree: converter, interceptor and sandbox."""

from __future__ import annotations

from temporalio.api.failure.v1 import Failure
from temporalio.contrib.pydantic import PydanticJSONPlainPayloadConverter
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultFailureConverter,
    DefaultPayloadConverter,
    JSONPlainPayloadConverter,
    PayloadConverter,
)
from temporalio.plugin import SimplePlugin
from temporalio.worker import WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from telemetry.secrets import without_secrets
from worker.errors import SaysWhetherToTryAgain

_ONCE = ("activities", "domain", "forge", "runtimes", "signing", "store", "workflows.options", "workflows.surface")
"""The rooms below the workflows, and what holds constants and words for them: imported once. Whatever decides
stays in the sandbox, which watches it and imports it anew for every workflow.
"""

_JSON = PydanticJSONPlainPayloadConverter()


class _Converter(CompositePayloadConverter):
    """The SDK's pydantic converter with one memory of types for the whole process.

    The SDK makes a converter for every workflow and every activation, and each would work out again how
    a dataclass is read: one part in fourteen of a worker's time when it was measured.
    """

    def __init__(self) -> None:
        standard = DefaultPayloadConverter.default_encoding_payload_converters
        super().__init__(*(_JSON if isinstance(each, JSONPlainPayloadConverter) else each for each in standard))


class _Discreet(DefaultFailureConverter):
    """Failures go into histories, which are kept and shown: no credential goes with them, whoever wrote the message."""

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        super().to_failure(exception, payload_converter, failure)
        failure.message = without_secrets(failure.message)
        failure.stack_trace = without_secrets(failure.stack_trace)


def sandbox(_: WorkflowRunner | None = None) -> SandboxedWorkflowRunner:
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*_ONCE, "sqlalchemy", "structlog")
    return SandboxedWorkflowRunner(restrictions=restrictions)


def watchbill_plugin() -> SimplePlugin:
    """Give this to every client, worker and replayer that touches Watchbill's workflows."""
    return SimplePlugin(
        "watchbill",
        data_converter=DataConverter(payload_converter_class=_Converter, failure_converter_class=_Discreet),
        interceptors=[SaysWhetherToTryAgain()],
        workflow_runner=sandbox,
    )
