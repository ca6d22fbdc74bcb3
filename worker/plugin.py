"""One object that makes client, worker and replayer agree: converter, interceptor and sandbox."""

from __future__ import annotations

from dataclasses import dataclass

from temporalio.api.failure.v1 import Failure
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.contrib.pydantic import PydanticJSONPlainPayloadConverter
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultFailureConverter,
    DefaultPayloadConverter,
    JSONPlainPayloadConverter,
    PayloadConverter,
    StorageDriverStoreContext,
)
from temporalio.plugin import SimplePlugin
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.workflow import Info, in_workflow, unsafe

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


class _Alike(WorkflowInstance):
    """A workflow whose payloads are read alike, whatever command they belong to.

    The SDK enters the sandbox several times for every payload, to tell a converter where it stands: one part in
    five of a worker's time when it was measured. Ours does not ask, and no payload is kept outside of histories.
    """

    def __init__(self, sandboxed: WorkflowInstance) -> None:
        self._sandboxed = sandboxed

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        return self._sandboxed.activate(act)

    def get_info(self) -> Info:
        return self._sandboxed.get_info()

    def get_thread_id(self) -> int | None:
        return self._sandboxed.get_thread_id()

    def get_serialization_context(self, command_info: object) -> None:
        return None

    def get_external_store_context(self, command_info: object) -> StorageDriverStoreContext:
        return _NOWHERE_ELSE


_NOWHERE_ELSE = StorageDriverStoreContext(target=None)


@dataclass(frozen=True)
class _Sandbox(SandboxedWorkflowRunner):
    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return _Alike(super().create_instance(det))


def first_time(_: object) -> bool:
    """Whether what a workflow says is said for the first time, and not in a replay."""
    return not (in_workflow() and unsafe.is_replaying_history_events())


def sandbox(_: WorkflowRunner | None = None) -> SandboxedWorkflowRunner:
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*_ONCE, "sqlalchemy", "structlog")
    return _Sandbox(restrictions=restrictions)


def watchbill_plugin() -> SimplePlugin:
    """Give this to every client, worker and replayer that touches Watchbill's workflows."""
    return SimplePlugin(
        "watchbill",
        data_converter=DataConverter(payload_converter_class=_Converter, failure_converter_class=_Discreet),
        interceptors=[SaysWhetherToTryAgain()],
        workflow_runner=sandbox,
    )
