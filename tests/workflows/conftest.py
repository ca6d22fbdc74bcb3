"""A stage that most tests share, and one whose workflows have no patience."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.common import RetryPolicy
from temporalio.plugin import SimplePlugin
from temporalio.worker import UnsandboxedWorkflowRunner

from tests.workflows.stage import Stage, open_stage
from worker.plugin import watchbill_plugin
from workflows import options


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stage(
    temporal_address: str, tmp_path_factory: pytest.TempPathFactory, migrated_file: Path
) -> AsyncIterator[Stage]:
    """Workflows as they are in the product: sandboxed, with their own timeouts, and ticks that never come."""
    home = tmp_path_factory.mktemp("stage")
    shutil.copyfile(migrated_file, home / "graph.db")
    async with open_stage(temporal_address, home, f"sqlite:///{home}/graph.db", interval=3600, follow=3600) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def impatient(
    temporal_address: str, tmp_path_factory: pytest.TempPathFactory, migrated_file: Path
) -> AsyncIterator[Stage]:
    """The same with ticks that come and timeouts that are short, which the sandbox would not let us change."""
    home = tmp_path_factory.mktemp("impatient")
    shutil.copyfile(migrated_file, home / "graph.db")
    url = f"sqlite:///{home}/graph.db"
    with pytest.MonkeyPatch.context() as patch:
        _hurry(patch)
        async with open_stage(temporal_address, home, url, unsandboxed(), interval=1, follow=3600) as opened:
            yield opened


def unsandboxed() -> SimplePlugin:
    """The product's plugin with the one difference that workflows see what a test has patched."""

    plugin = watchbill_plugin()
    plugin.workflow_runner = lambda _: UnsandboxedWorkflowRunner()
    return plugin


def _hurry(patch: pytest.MonkeyPatch) -> None:
    second, moment = timedelta(seconds=1), timedelta(milliseconds=50)
    # Long enough that a busy machine is not taken for a dead one.
    sign_of_life = timedelta(seconds=3)
    for how in (options.GIT, options.RUN):
        patch.setitem(how, "schedule_to_start_timeout", second)
        patch.setitem(how, "heartbeat_timeout", sign_of_life)
    for how in (options.GIT, options.RUN, options.FORGE, options.STORE, options.BEAT):
        attempts = how["retry_policy"].maximum_attempts
        patch.setitem(how, "retry_policy", RetryPolicy(initial_interval=moment, maximum_attempts=attempts))
    patch.setattr(options, "HOST_PATIENCE", second)
    patch.setattr(options, "UNPUBLISHED_GRACE", second)
    patch.setattr(options, "LOOK_AFRESH", 0.2)
