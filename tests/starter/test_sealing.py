"""A chain that was rewritten from end to end agrees with itself, and not with its seals."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Connection, delete, update

from domain.identity import plan_id
from domain.lifecycle import GENESIS, receipt_hash
from domain.run import EvidenceKind
from signing.keys import Signer, open_or_make
from signing.seals import Head, seal
from starter.sealing import audit_seals
from store.audit import audit
from store.database import Store, open_store
from store.evidence import Observation, record
from store.keys import SEAL, keep_key, retire
from store.moves import move
from store.receipts import head_of, receipts_of
from store.seals import keep_seal
from store.tables import artifacts, chains, plans, public_keys, receipts, revisions, seals
from tests.store.conftest import AT

PLAN = plan_id("local", "faster")


@pytest.fixture
def store(published_graph: str) -> Store:
    return open_store(published_graph)


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return open_or_make(tmp_path / "seal.pem")


@pytest.fixture
def sealed(store: Store, signer: Signer) -> str:
    """The plan's head, sealed and kept."""
    with store.write() as connection:
        keep_key(connection, signer.kid, signer.public, SEAL, AT)
        head = Head(PLAN, *head_of(connection, PLAN))
        keep_seal(connection, PLAN, head.seq, seal(signer, head))
        return seal(signer, head)


def rewrite(connection: Connection) -> None:
    """What somebody with the database's password can do: another past, with hashes that fit."""
    link = GENESIS
    for receipt in receipts_of(connection, PLAN):
        said = {name: getattr(receipt, name) for name in vars(receipt) if name != "hash"}
        said |= {"cause": "published by mallory", "previous": link}
        link = receipt_hash(**said)
        change = update(receipts).where(receipts.c.chain == PLAN, receipts.c.seq == receipt.seq)
        connection.execute(change.values(cause=said["cause"], previous=said["previous"], hash=link))
        for table in (plans, revisions):
            connection.execute(update(table).where(table.c.receipt_seq == receipt.seq).values(receipt_hash=link))
    connection.execute(update(chains).where(chains.c.chain == PLAN).values(hash=link))


def test_seals_that_hold_are_counted(store: Store, sealed: str) -> None:
    with store.read() as connection:
        assert audit_seals(connection, PLAN, []) == ([], 1)
        assert audit_seals(connection, None, [sealed]) == ([], 1)
        assert audit_seals(connection, "another", []) == ([], 0)


def test_a_rewritten_chain_is_found_by_its_seal_alone(store: Store, sealed: str) -> None:
    with store.write() as connection:
        rewrite(connection)
    with store.read() as connection:
        assert audit(connection, PLAN) == ()
        (finding,), held = audit_seals(connection, PLAN, [])
    assert (held, finding.chain, finding.seq) == (0, PLAN, 2)
    assert "was sealed as" in finding.message


def test_the_seal_in_a_pull_request_remains_when_the_kept_ones_are_wiped(
    store: Store, sealed: str, published_graph: str, watchbill, write
) -> None:
    with store.write() as connection:
        rewrite(connection)
        connection.execute(delete(seals))
    settings = {"WATCHBILL_STORE_URL": published_graph}
    assert watchbill("audit", **settings).returncode == 0
    body = write("body.md", f"## Evidence\n\n<!-- watchbill seal={sealed} -->\n")
    done = watchbill("audit", "--seal", body, "--json", **settings)
    assert done.returncode == 1
    assert [one["chain"] for one in json.loads(done.stdout)["findings"]] == [PLAN]


def test_one_audit_names_damaged_evidence_and_a_seal_whose_signature_does_not_hold(
    store: Store, sealed: str, published_graph: str, watchbill
) -> None:
    seen = Observation(plan_id=PLAN, kind=EvidenceKind.DIFF, content=b"+ one line", seen_by="worker-1")
    with store.write() as connection:
        wish = record(connection, seen, "a test", AT)
        assert not move(connection, wish)[0].refused
    settings = {"WATCHBILL_STORE_URL": published_graph}
    assert watchbill("audit", **settings).returncode == 0
    head, body, signature = sealed.split(".")
    other = ".".join((head, body, "".join(reversed(signature))))
    with store.write() as connection:
        connection.execute(update(artifacts).where(artifacts.c.digest == wish.facts["digest"]).values(content=b"-"))
        connection.execute(update(seals).values(token=other))
    done = watchbill("audit", "--json", **settings)
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert [one["message"].partition(":")[0] for one in told["findings"]] == [
        f"the content of evidence {wish.subject} does not hold",
        "a seal does not hold",
    ]
    assert told["seals"] == 0


def test_without_its_key_a_seal_says_so(store: Store, sealed: str) -> None:
    with store.write() as connection:
        connection.execute(delete(public_keys))
    with store.read() as connection:
        (finding,), held = audit_seals(connection, PLAN, [])
    assert held == 0
    assert "no key" in finding.message


def test_what_a_key_sealed_before_it_was_retired_stays_good_and_what_it_seals_afterwards_is_named(
    store: Store, signer: Signer, sealed: str
) -> None:
    with store.read() as connection:
        at = [receipt.at for receipt in receipts_of(connection, PLAN)]
    with store.write() as connection:
        retire(connection, signer.kid, at[-1])
    with store.read() as connection:
        assert audit_seals(connection, PLAN, []) == ([], 1)
    with store.write() as connection:
        # As if it had been retired long before.
        connection.execute(update(public_keys).values(retired_at=at[-1] - timedelta(minutes=1)))
    with store.read() as connection:
        (finding,), held = audit_seals(connection, PLAN, [])
    assert (held, finding.chain, finding.seq) == (0, PLAN, len(at))
    assert f"was sealed with key {signer.kid}, which had been retired at" in finding.message


def test_keys_are_listed_and_one_is_retired_by_the_beginning_of_its_name(
    store: Store, signer: Signer, sealed: str, published_graph: str, watchbill
) -> None:
    settings = {"WATCHBILL_STORE_URL": published_graph}
    said = watchbill("keys", **settings).stdout
    assert said == f"{signer.kid}  seal, since {AT.isoformat(timespec='seconds')}\n"
    for named in (signer.kid[:7], "0" * 32):
        done = watchbill("keys", "--retire", named, **settings)
        assert (done.returncode, done.stderr.count("there is no key")) == (4, 1), done.stderr
    first = json.loads(watchbill("keys", "--retire", signer.kid[:8], "--json", **settings).stdout)
    again = json.loads(watchbill("keys", "--retire", signer.kid, "--json", **settings).stdout)
    assert first == again == json.loads(watchbill("keys", "--json", **settings).stdout)[0]
    assert (first["kid"], first["use"], bool(first["retired_at"])) == (signer.kid, "seal", True)


def test_a_text_without_a_seal_is_refused(published_graph: str, watchbill, write) -> None:
    done = watchbill("audit", "--seal", write("body.md", "nothing"), WATCHBILL_STORE_URL=published_graph)
    assert (done.returncode, done.stderr.count("no seal in")) == (4, 1), done.stderr
