"""The backstop over everything: starts what a lost message or a lost Temporal left without a workflow."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.dispatch import Dispatch
    from activities.facts import Facts
    from domain.publication import PlanRef
    from workflows import options
    from workflows.calls import facts


@workflow.defn
class SweepWorkflow:
    """One sweep. A Temporal Schedule runs it; a sweep that is missed is made up for by the next."""

    @workflow.run
    async def run(self) -> int:
        await facts(Facts.lose_lapsed_runs, None)
        if workflow.patched("expire-reservations"):
            await facts(Facts.expire_reservations, None)
        owners: list[str] = await facts(Facts.owners_with_work, None)
        for owner in owners:
            await workflow.execute_activity_method(Dispatch.ensure_heartbeat, owner, **options.BEAT)
        # A heartbeat sees to the plans that were confirmed; those that wait for it are nobody else's to start.
        waiting: list[PlanRef] = await facts(Facts.plans_awaiting, None)
        if waiting:
            await workflow.execute_activity_method(Dispatch.ensure_plans, waiting, **options.BEAT)
        return len(owners)
