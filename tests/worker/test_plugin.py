"""What the plugin makes of failures on their way into a history."""

from __future__ import annotations

from temporalio.api.failure.v1 import Failure
from temporalio.converter import WithSerializationContext, WorkflowSerializationContext
from temporalio.exceptions import ApplicationError

from worker.plugin import watchbill_plugin

TOKEN = "ghs_" + "a1B2" * 12


def failure_of(error: BaseException) -> Failure:
    converter = watchbill_plugin().data_converter
    assert converter is not None
    failure = Failure()
    converter.failure_converter.to_failure(error, converter.payload_converter, failure)
    return failure


def test_no_credential_goes_into_a_history_with_a_failure_or_what_caused_it() -> None:
    def fetch(address: str) -> None:
        raise ValueError(f"cannot read {address}")

    try:
        try:
            fetch(f"https://x-access-token:{TOKEN}@github.com/acme/shop")
        except ValueError as cause:
            raise ApplicationError(f"Authorization: Bearer {TOKEN}", type="Odd") from cause
    except ApplicationError as error:
        failure = failure_of(error)
    assert TOKEN not in str(failure)
    assert failure.application_failure_info.type == "Odd"
    assert failure.cause.message == "cannot read https://[redacted]@github.com/acme/shop"
    assert "in fetch" in failure.cause.stack_trace


def test_nothing_of_the_converter_asks_where_a_payload_stands() -> None:
    """Whoever changes that has to let the SDK tell it: workflows of ours never do."""
    converter = watchbill_plugin().data_converter
    assert converter is not None
    ours = converter.payload_converter_class()
    assert ours.with_context(WorkflowSerializationContext(namespace="n", workflow_id="w")) is ours
    assert not isinstance(converter.failure_converter, WithSerializationContext)
    assert (converter.payload_codec, converter.external_storage) == (None, None)
