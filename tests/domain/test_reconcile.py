"""What a beat decides from what is wanted and what is: within the gates, in order, and fairly."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.reconcile import Action, Begin, Block, Grant, PlanStatus, Room, TaskStatus, reconcile
from domain.task import ENDED, SLOTTED, SUCCEEDED, TaskState

some = settings(max_examples=40)
UNSUCCESSFUL = [state for state in ENDED if state not in SUCCEEDED]


@st.composite
def plan_statuses(draw: st.DrawFn, name: str) -> PlanStatus:
    """A plan as the graph may hold it: slots are held by tasks under way, or by ones that were about to begin."""
    tasks: list[TaskStatus] = []
    for ordinal in range(1, draw(st.integers(1, 5)) + 1):
        after = tuple(draw(st.lists(st.sampled_from(range(1, ordinal)), unique=True))) if ordinal > 1 else ()
        state, waived = draw(st.sampled_from(TaskState)), draw(st.booleans())
        task = TaskStatus(f"{name}-{ordinal}", ordinal, state, after=after, after_waived=waived)
        may_hold = state in SLOTTED or (state is TaskState.PENDING and unmet(tasks, task) == set())
        tasks.append(replace(task, has_slot=may_hold and draw(st.booleans())))
    return PlanStatus(name, draw(st.integers(1, 4)), draw(st.booleans()), tuple(tasks))


owners_plans = st.integers(0, 3).flatmap(
    lambda count: st.tuples(*(plan_statuses(f"plan-{chr(97 + n)}") for n in range(count)))
)
rooms = st.builds(Room, st.integers(0, 8), st.booleans())


def unmet(tasks: list[TaskStatus], task: TaskStatus) -> set[int]:
    """The predecessors that keep this task from beginning."""
    if task.after_waived:
        return set()
    return {other.ordinal for other in tasks if other.ordinal in task.after and other.state not in SUCCEEDED}


def carried_out(plans: tuple[PlanStatus, ...], actions: tuple[Action, ...]) -> tuple[PlanStatus, ...]:
    """The plans once these actions were carried out."""

    def after(task: TaskStatus) -> TaskStatus:
        for action in actions:
            if action.task_id == task.id:
                match action:
                    case Begin():
                        return replace(task, state=TaskState.WORKING, has_slot=True)
                    case Grant():
                        return replace(task, has_slot=True)
                    case Block():
                        return replace(task, state=TaskState.PAUSED)
        return task

    return tuple(replace(plan, tasks=tuple(map(after, plan.tasks))) for plan in plans)


def new_slots(plans: tuple[PlanStatus, ...], actions: tuple[Action, ...]) -> Counter[str]:
    """How many slots each plan gets that it does not hold yet."""
    holding = {task.id for plan in plans for task in plan.tasks if task.has_slot}
    return Counter(
        action.plan_id for action in actions if isinstance(action, Begin | Grant) and action.task_id not in holding
    )


def held(plan: PlanStatus) -> int:
    return sum(task.has_slot for task in plan.tasks)


def waiting(*states: TaskState) -> tuple[TaskStatus, ...]:
    return tuple(TaskStatus(f"t{n}", n, state) for n, state in enumerate(states, start=1))


@some
@given(owners_plans, rooms)
def test_no_more_slots_are_granted_than_there_is_room_for(plans: tuple[PlanStatus, ...], room: Room) -> None:
    assert new_slots(plans, reconcile(plans, room)).total() <= room.slots


@some
@given(owners_plans, rooms)
def test_no_plan_gets_more_slots_than_its_concurrency(plans: tuple[PlanStatus, ...], room: Room) -> None:
    granted = new_slots(plans, reconcile(plans, room))
    assert all(not granted[plan.id] or held(plan) + granted[plan.id] <= plan.concurrency for plan in plans)


@some
@given(owners_plans, rooms)
def test_no_task_begins_before_what_it_comes_after_has_succeeded(plans: tuple[PlanStatus, ...], room: Room) -> None:
    begun = {action.task_id for action in reconcile(plans, room) if isinstance(action, Begin)}
    for plan in plans:
        for task in plan.tasks:
            assert task.id not in begun or not unmet(list(plan.tasks), task)


@some
@given(owners_plans, rooms)
def test_a_task_is_begun_only_from_the_start_and_granted_a_slot_only_under_way(
    plans: tuple[PlanStatus, ...], room: Room
) -> None:
    tasks = {task.id: task for plan in plans for task in plan.tasks}
    for action in reconcile(plans, room):
        match action:
            case Begin() | Block():
                assert tasks[action.task_id].state is TaskState.PENDING
            case Grant():
                assert tasks[action.task_id].state in SLOTTED
                assert not tasks[action.task_id].has_slot


@some
@given(owners_plans, rooms)
def test_each_task_gets_at_most_one_action(plans: tuple[PlanStatus, ...], room: Room) -> None:
    acted_on = [action.task_id for action in reconcile(plans, room)]
    assert len(acted_on) == len(set(acted_on))


@some
@given(owners_plans, rooms)
def test_a_paused_plan_is_left_alone(plans: tuple[PlanStatus, ...], room: Room) -> None:
    paused = {plan.id for plan in plans if plan.paused}
    assert not paused & {action.plan_id for action in reconcile(plans, room)}


@some
@given(owners_plans, st.integers(0, 8))
def test_a_paused_owner_gets_no_new_slot(plans: tuple[PlanStatus, ...], slots: int) -> None:
    assert not new_slots(plans, reconcile(plans, Room(slots, paused=True)))


@some
@given(owners_plans, rooms)
def test_the_same_facts_give_the_same_actions(plans: tuple[PlanStatus, ...], room: Room) -> None:
    assert reconcile(plans, room) == reconcile(plans, room)


@some
@given(owners_plans, rooms)
def test_in_which_order_the_plans_are_listed_decides_nothing(plans: tuple[PlanStatus, ...], room: Room) -> None:
    assert set(reconcile(plans, room)) == set(reconcile(reversed(plans), room))


@some
@given(owners_plans, rooms)
def test_what_was_carried_out_is_not_asked_for_again(plans: tuple[PlanStatus, ...], room: Room) -> None:
    actions = reconcile(plans, room)
    left = Room(room.slots - new_slots(plans, actions).total(), room.paused)
    again = {action.task_id for action in reconcile(carried_out(plans, actions), left)}
    assert not again & {action.task_id for action in actions}


@some
@given(owners_plans, st.integers(0, 8))
def test_no_slot_stays_free_while_something_may_use_it(plans: tuple[PlanStatus, ...], slots: int) -> None:
    actions = reconcile(plans, Room(slots))
    left = slots - new_slots(plans, actions).total()
    assert left == 0 or not reconcile(carried_out(plans, actions), Room(left))


@some
@given(owners_plans, st.integers(0, 8))
def test_no_plan_gets_a_slot_while_another_that_wants_one_holds_fewer(
    plans: tuple[PlanStatus, ...], slots: int
) -> None:
    actions = reconcile(plans, Room(slots))
    granted = new_slots(plans, actions)
    then = carried_out(plans, actions)
    still_wanting = {action.plan_id for action in reconcile(then, Room(len(plans))) if not isinstance(action, Block)}
    after = {plan.id: held(plan) for plan in then}
    for poor in still_wanting:
        assert all(after[rich] <= after[poor] + 1 for rich in granted), (poor, granted)


@some
@given(st.integers(1, 3))
def test_a_large_plan_does_not_keep_a_small_one_waiting_until_it_is_done(slots: int) -> None:
    """Every task takes one beat; the small plan comes last by name."""
    large = PlanStatus("a", slots, paused=False, tasks=waiting(*[TaskState.PENDING] * 30))
    small = PlanStatus("z", 1, paused=False, tasks=(TaskStatus("small", 1, TaskState.PENDING),))
    plans: tuple[PlanStatus, ...] = (large, small)
    for _ in range(3):
        plans = carried_out(plans, reconcile(plans, Room(slots)))
        if plans[1].tasks[0].state is TaskState.WORKING:
            return
        plans = tuple(
            replace(
                plan,
                tasks=tuple(
                    replace(task, state=TaskState.MERGED, has_slot=False) if task.has_slot else task
                    for task in plan.tasks
                ),
            )
            for plan in plans
        )
    raise AssertionError("the small plan waits on")


def test_work_under_way_comes_before_work_not_yet_begun() -> None:
    plan = PlanStatus("a", 2, paused=False, tasks=waiting(TaskState.PENDING, TaskState.CHECKING))
    assert reconcile([plan], Room(1)) == (Grant("a", "t2"),)


def test_a_task_that_was_granted_its_slot_by_a_beat_that_died_begins_without_another() -> None:
    half_begun = TaskStatus("t1", 1, TaskState.PENDING, has_slot=True)
    assert reconcile([PlanStatus("a", 1, False, (half_begun,))], Room(0)) == (Begin("a", "t1"),)


def test_a_task_whose_predecessor_ended_without_success_asks_a_person_at_once() -> None:
    for state in UNSUCCESSFUL:
        first, second = waiting(state, TaskState.PENDING)
        plan = PlanStatus("a", 1, paused=False, tasks=(first, replace(second, after=(1,))))
        assert reconcile([plan], Room(0)) == (Block("a", "t2", 1, state),)


def test_a_task_waits_while_its_predecessor_is_still_under_way() -> None:
    for state in (state for state in TaskState if state not in ENDED):
        first, second = waiting(state, TaskState.PENDING)
        plan = PlanStatus("a", 2, paused=False, tasks=(first, replace(second, after=(1,))))
        assert all(action.task_id != "t2" for action in reconcile([plan], Room(4)))


def test_a_person_may_let_a_task_begin_without_its_predecessor() -> None:
    first, second = waiting(TaskState.CLOSED, TaskState.PENDING)
    plan = PlanStatus("a", 1, paused=False, tasks=(first, replace(second, after=(1,), after_waived=True)))
    assert reconcile([plan], Room(1)) == (Begin("a", "t2"),)


def test_a_box_that_was_checked_from_the_start_holds_nobody_up() -> None:
    (second,) = waiting(TaskState.PENDING)
    plan = PlanStatus("a", 1, paused=False, tasks=(replace(second, ordinal=2, after=(1,)),))
    assert reconcile([plan], Room(1)) == (Begin("a", "t1"),)


def test_a_task_in_review_holds_no_slot_and_lets_the_next_one_begin() -> None:
    plan = PlanStatus("a", 1, paused=False, tasks=waiting(TaskState.IN_REVIEW, TaskState.PENDING))
    assert reconcile([plan], Room(1)) == (Begin("a", "t2"),)
