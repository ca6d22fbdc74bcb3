"""The audit finds and names whatever was changed behind the moves' back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, NullPool, create_engine, delete, insert, make_url, select, text, update

from domain.confinement import Confinement
from domain.lifecycle import canonical, receipt_hash
from domain.run import EvidenceKind
from store import audit as audit_module
from store.audit import Finding, audit
from store.contents import folder_beside
from store.database import Store
from store.evidence import Observation, record
from store.moves import move
from store.receipts import receipts_of
from store.runs import Keeper, spawned
from store.tables import artifacts, briefs, chains, evidence, plans, receipts, runs, tasks
from store.tasks import load_run
from store.words import Brief, put_brief

pytestmark = pytest.mark.usefixtures("nothing_is_small")


@pytest.fixture
def worked(store: Store, confirmed: Any) -> Any:
    """A plan with everything in it: tasks, a run, evidence, a question, a refusal."""
    confirmed.go(store, confirmed.make("task", confirmed.task, "begin", facts={"round": 2}), confirmed.run())
    with store.write() as connection:
        seen = Observation(
            plan_id=confirmed.plan, task_id=confirmed.task, kind=EvidenceKind.DIFF, content=b"+ one line"
        )
        move(connection, record(connection, seen, "a test", confirmed.at))
    confirmed.go(store, confirmed.make("task", confirmed.task, "published"))
    confirmed.go(
        store,
        confirmed.make("task", confirmed.task, "pause", facts={"question_id": f"{confirmed.task}-q1"}),
        confirmed.ask(),
    )
    return confirmed


@contextmanager
def by_hand(store: Store) -> Iterator[Connection]:
    """Somebody with the file or the password and with none of our settings: no foreign key stops them."""
    engine = create_engine(store.url, poolclass=NullPool)
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL session_replication_role = replica"))
        yield connection


def findings(store: Store, chain: str | None = None) -> list[Finding]:
    with store.read() as connection:
        return list(audit(connection, chain))


def messages(store: Store) -> list[str]:
    return [finding.message for finding in findings(store)]


def test_a_graph_that_only_moves_have_changed_has_no_findings(store: Store, worked: Any) -> None:
    assert findings(store) == []
    assert findings(store, worked.plan) == []


def test_an_empty_graph_has_no_findings(store: Store) -> None:
    assert findings(store) == []
    assert findings(store, "no-plan-00000000") == []


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("state", "merged"),
        ("merged_sha", "f00"),
        ("round", 7),
        ("pull_number", 12),
        ("after_waived", True),
        ("after", [2]),
        ("receipt_seq", 3),
        ("receipt_hash", "0" * 64),
    ],
)
def test_a_column_changed_by_hand_is_named(store: Store, worked: Any, column: str, value: Any) -> None:
    with by_hand(store) as connection:
        connection.execute(update(tasks).where(tasks.c.id == worked.task).values({column: value}))

    (finding,) = findings(store)

    assert (finding.chain, finding.subject, finding.column) == (worked.plan, worked.task, column)
    assert finding.message.startswith(f"{column} of task {worked.task} is ")
    assert "but its receipts say" in finding.message


def test_a_list_that_is_no_list_any_more_is_named(store: Store, worked: Any) -> None:
    with by_hand(store) as connection:
        connection.execute(text("UPDATE plans SET checks = '[broken'"))

    assert messages(store) == [f"checks of plan {worked.plan} is '[broken', but its receipts say '[\"make test\"]'"]


def test_a_row_inserted_by_hand_is_named(store: Store, worked: Any) -> None:
    with by_hand(store) as connection:
        row = connection.execute(select(tasks).where(tasks.c.id == worked.task)).mappings().one()
        connection.execute(insert(tasks), {**row, "id": f"{worked.plan}-9", "ordinal": 9})

    assert findings(store) == [
        Finding(worked.plan, f"task {worked.plan}-9 has no receipt that made it", None, f"{worked.plan}-9")
    ]


def test_a_plan_inserted_by_hand_is_named_though_it_has_no_chain(store: Store, worked: Any) -> None:
    with by_hand(store) as connection:
        row = connection.execute(select(plans)).mappings().one()
        connection.execute(insert(plans), {**row, "id": "sly-00000000", "slug": "sly"})

    assert messages(store) == ["plan sly-00000000 has no receipt that made it"]


def test_a_row_deleted_by_hand_is_named(store: Store, worked: Any) -> None:
    with by_hand(store) as connection:
        connection.execute(delete(runs))

    run = f"{worked.task}-author-1"
    assert findings(store) == [Finding(worked.plan, f"run {run} has receipts but no row", 8, run)]


def test_a_row_carried_to_another_plan_is_missed_here_and_named_there(store: Store, worked: Any) -> None:
    with by_hand(store) as connection:
        row = connection.execute(select(plans)).mappings().one()
        connection.execute(insert(plans), {**row, "id": "sly-00000000", "slug": "sly"})
        moved = update(tasks).where(tasks.c.id == worked.other_task).values(plan_id="sly-00000000")
        connection.execute(moved)

    assert messages(store) == [
        f"task {worked.other_task} has receipts but no row",
        "plan sly-00000000 has no receipt that made it",
        f"task {worked.other_task} has no receipt that made it",
    ]


def test_a_deleted_receipt_is_named(store: Store, worked: Any) -> None:
    with by_hand(store) as connection:
        connection.execute(delete(receipts).where(receipts.c.seq == 10))

    assert findings(store) == [Finding(worked.plan, "receipt 10 is missing", 10)]


def test_a_deleted_receipt_is_missed_in_the_rows_too(store: Store, worked: Any) -> None:
    with by_hand(store) as connection:
        connection.execute(delete(receipts).where(receipts.c.seq.in_([5, 6, 7])))

    said = messages(store)
    assert said[0] == "receipts 5 to 7 are missing"
    assert f"task {worked.other_task} has no receipt that made it" in said


def test_a_chain_whose_end_was_cut_off_does_not_reach_its_head(store: Store, worked: Any) -> None:
    with by_hand(store) as connection:
        last = connection.execute(select(receipts).order_by(receipts.c.seq.desc()).limit(1)).one()
        connection.execute(delete(receipts).where(receipts.c.seq == last.seq))

    said = messages(store)
    assert said[0].startswith(f"the chain's head names receipt {last.seq} ({last.hash[:12]}), but its last")
    assert said[1:] == [f"question {worked.task}-q1 has no receipt that made it"]


def test_a_chain_that_was_deleted_whole_is_missed(store: Store, worked: Any) -> None:
    with by_hand(store) as connection:
        connection.execute(delete(receipts))
        connection.execute(delete(chains))

    assert f"plan {worked.plan} has no receipt that made it" in messages(store)


def test_a_head_changed_by_hand_is_named(store: Store, worked: Any) -> None:
    with by_hand(store) as connection:
        connection.execute(update(chains).values(hash="0" * 64))

    (finding,) = findings(store)

    assert finding.message.startswith("the chain's head names receipt 12 (000000000000)")


@pytest.mark.parametrize(("column", "value"), [("cause", "somebody else"), ("key", "k"), ("refused", "no")])
def test_an_edited_receipt_is_named(store: Store, worked: Any, column: str, value: str) -> None:
    with by_hand(store) as connection:
        connection.execute(update(receipts).where(receipts.c.seq == 9).values({column: value}))

    found = findings(store)

    assert found[0].message == "receipt 9 was changed: its hash is not that of what it says"
    assert (found[0].chain, found[0].seq) == (worked.plan, 9)


def test_a_receipt_edited_to_nonsense_is_named(store: Store, worked: Any) -> None:
    with by_hand(store) as connection:
        connection.execute(text("UPDATE receipts SET facts = '[1' WHERE seq = 9"))
        connection.execute(text("UPDATE receipts SET at = 'yesterday' WHERE seq = 10"))

    said = messages(store)

    assert said[0].startswith("receipt 9 cannot be read")
    assert said[1].startswith("receipt 10 cannot be read")


def rewrite(connection: Connection, seq: int, **changes: Any) -> str:
    """Change a receipt and give it the hash of what it now says."""
    chain = connection.scalar(select(receipts.c.chain).limit(1))
    (receipt,) = receipts_of(connection, chain or "", after=seq - 1, limit=1)
    said = {**vars(receipt), **changes}
    del said["hash"]
    new = {**changes, "hash": receipt_hash(**said)}
    if "facts" in new:
        new["facts"] = canonical(new["facts"])
    connection.execute(update(receipts).where(receipts.c.seq == seq).values(new))
    return str(new["hash"])


def test_a_receipt_edited_and_hashed_again_breaks_the_link_behind_it(store: Store, worked: Any) -> None:
    with by_hand(store) as connection:
        rewrite(connection, 9, cause="somebody else")

    said = messages(store)

    assert said[0] == "receipt 10 does not follow from receipt 9: its link is broken"
    assert any(message.startswith("receipt_hash of evidence ") for message in said[1:])


def test_a_last_receipt_edited_and_hashed_again_differs_from_head_and_row(store: Store, worked: Any) -> None:
    with by_hand(store) as connection:
        rewrite(connection, 12, cause="somebody else")

    said = messages(store)

    assert said[0].startswith("the chain's head names receipt 12 ")
    assert said[1].startswith(f"receipt_hash of question {worked.task}-q1 is ")


def test_a_receipt_of_a_move_that_is_not_allowed_is_named(store: Store, worked: Any) -> None:
    with by_hand(store) as connection:
        rewrite(connection, 11, event="approved")

    said = messages(store)

    assert "receipt 11 cannot have been made: a task that is working cannot approved" in said


def test_a_receipt_that_leads_elsewhere_than_the_lifecycle_is_named(store: Store, worked: Any) -> None:
    with by_hand(store) as connection:
        rewrite(connection, 11, after="merged")

    assert "receipt 11 leads to merged, the lifecycle to paused" in messages(store)


def test_a_receipt_that_does_not_take_up_where_the_last_one_ended_is_named(store: Store, worked: Any) -> None:
    with by_hand(store) as connection:
        rewrite(connection, 11, before="in_review")

    assert "receipt 11 finds its task in_review, but the receipts before it leave it working" in messages(store)


def test_a_receipt_about_a_thing_that_nobody_knows_is_named(store: Store, worked: Any) -> None:
    with by_hand(store) as connection:
        rewrite(connection, 12, kind="ghost")

    assert "receipt 12 is about a ghost, which nothing here is" in messages(store)


def kept(store: Store) -> tuple[str, Path | None]:
    """The id of the evidence, and the file of its content where that is one."""
    with store.read() as connection:
        id, name = connection.execute(select(evidence.c.id, evidence.c.digest)).one()
    graph = make_url(store.url).database
    return id, folder_beside(graph) / name[:2] / name if store.url.startswith("sqlite") else None


def tamper(store: Store, content: bytes) -> None:
    """Put other bytes in the place of what was seen."""
    _, file = kept(store)
    if file is not None:
        file.write_bytes(content)
        return
    with by_hand(store) as connection:
        connection.execute(update(artifacts).values(content=content))


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"+ another line", "is not what was seen"), (b"+ one", "is not what was seen, and has 5 of its 10 bytes")],
    ids=["changed", "truncated"],
)
def test_content_that_is_not_what_was_seen_is_named(store: Store, worked: Any, content: bytes, why: str) -> None:
    tamper(store, content)
    (said,) = messages(store)
    assert said.startswith(f"the content of evidence {kept(store)[0]} does not hold: ")
    assert said.endswith(why)


def test_content_whose_file_is_gone_is_named(store: Store, worked: Any) -> None:
    id, file = kept(store)
    if file is None:
        pytest.skip("the content is in the graph")
    file.unlink()
    assert messages(store) == [f"the content of evidence {id} is gone"]


def test_content_that_is_gone_is_named(store: Store, worked: Any) -> None:
    with store.read() as connection:
        kept = connection.scalar(select(evidence.c.id))
    with by_hand(store) as connection:
        connection.execute(delete(artifacts))

    assert messages(store) == [f"the content of evidence {kept} is gone"]


@pytest.mark.parametrize(
    ("by", "said"),
    [
        (update(briefs).values(text="Push to main."), "is not what it was told"),
        (update(briefs).values(schema=True, digest="d"), "is not what it was told"),
        (delete(briefs), "is gone"),
    ],
    ids=["text", "schema", "deleted"],
)
def test_a_brief_that_is_not_the_one_that_the_run_was_told_is_named(
    store: Store, confirmed: Any, by: Any, said: str
) -> None:
    confirmed.go(store, confirmed.make("task", confirmed.task, "begin"), confirmed.run())
    run = f"{confirmed.task}-author-1"
    with store.write() as connection:
        put_brief(connection, Brief(run, "Do it.", {"type": "object"}, 1))
        keeper = Keeper("worker-1", "", "boot-1", timedelta(minutes=1))
        spawned(connection, load_run(connection, run), keeper, Confinement.UNCONFINED, confirmed.at, 1)
    assert findings(store) == []
    with by_hand(store) as connection:
        connection.execute(by)
    assert messages(store) == [f"the brief of run {run} {said}"]


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        ("UPDATE artifacts SET content = 'text', place = 'graph'", "its evidence"),
        ("UPDATE receipts SET seq = 'abc' WHERE seq = 2", "its receipts"),
        ("UPDATE receipts SET cause = x'00ff' WHERE seq = 2", "its receipts"),
        ("UPDATE chains SET seq = 'abc'", "its head"),
    ],
)
def test_what_is_of_no_kind_that_belongs_there_is_named_and_hides_nothing(
    store: Store, worked: Any, edit: str, named: str
) -> None:
    if store.url.startswith("postgresql"):
        pytest.skip("PostgreSQL lets nobody put a text into a column of numbers")
    with by_hand(store) as connection:
        connection.exec_driver_sql("UPDATE plans SET title = 'Another'")
        connection.exec_driver_sql(edit)
    assert any(named in message for message in messages(store)), messages(store)
    assert any(finding.column == "title" for finding in findings(store)), findings(store)


def test_one_chain_can_be_looked_at_alone(store: Store, worked: Any) -> None:
    with by_hand(store) as connection:
        row = connection.execute(select(plans)).mappings().one()
        connection.execute(insert(plans), {**row, "id": "sly-00000000", "slug": "sly"})

    assert findings(store, worked.plan) == []
    assert len(findings(store, "sly-00000000")) == 1


def test_long_chains_are_read_page_by_page(store: Store, worked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_module, "_PAGE", 3)
    assert findings(store) == []
    with by_hand(store) as connection:
        connection.execute(update(receipts).where(receipts.c.seq == 11).values(cause="somebody else"))
    assert [finding.seq for finding in findings(store)] == [11]
