"""A policy of the lineage has its checkpoint: one row of the chain, in the same transaction, named
by the policy's signed record.
"""

import json

import pytest
from service.tests.ledger.helpers import PRODUCT, coin, opened, published

from evenhand.canonical import canonical_digest
from evenhand.fairness.certificate import PROTOCOL_VERSION
from evenhand_service.ledger import Damaged, Refusal, StalePolicy, export, verify
from evenhand_service.ledger import standalone_verifier as verifier
from evenhand_service.ledger.database import CHECKPOINTS

STATE = {"sums": [1.5, 2.25], "rounds": 7}


def test_it_is_published_with_its_policy_and_found_again(where):
    with opened(where) as ledger:
        policy = ledger.publish(
            PRODUCT,
            coin(0.5),
            epoch=1,
            parent=None,
            checkpoint=STATE,
            info={"protocol_version": 7},  # what the caller says of it does not count
        )
        named = {"protocol_version": PROTOCOL_VERSION, "checkpoint": canonical_digest(STATE)}
        assert policy.info == named
        assert policy.checkpoint == named["checkpoint"]
        assert ledger.checkpoint(policy) == STATE
        assert ledger.policies(PRODUCT) == [policy]
        before = ledger.head()
        with pytest.raises(StalePolicy):
            ledger.publish(PRODUCT, coin(0.6), epoch=3, parent=policy.id, checkpoint=STATE)
        with pytest.raises(Refusal):
            ledger.publish(
                PRODUCT,
                coin(0.6),
                epoch=2,
                parent=policy.id,
                checkpoint={"x": float("nan")},
            )
        assert ledger.head() == before
        constant = ledger.register(PRODUCT, coin(1.0))
        assert constant.info == {"protocol_version": PROTOCOL_VERSION}
        assert (constant.checkpoint, constant.in_lineage) == (None, False)
        with pytest.raises(Damaged, match="no checkpoint"):
            ledger.checkpoint(constant)
        assert verify(ledger, deep=True).ok


def test_another_document_is_not_taken_for_it(ledger):
    published(ledger)
    first = ledger.policies(PRODUCT)[0]
    with ledger.store.writer.begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER checkpoints_keeps_UPDATE")
        body = json.dumps({"product": PRODUCT, "epoch": 1, "checkpoint": STATE, "digest": "x"})
        connection.execute(CHECKPOINTS.update().values(body=body))
    with pytest.raises(Damaged):
        ledger.checkpoint(first)
    assert not verify(ledger).ok


# what a hostile writer who holds the keyring could still get wrong


def chain(ledger, path):
    """The rows of a ledger with two epochs, to be changed; hashes are made to fit, so that the laws
    themselves must notice.
    """
    first = published(ledger)
    ledger.publish(
        PRODUCT,
        coin(0.6),
        epoch=2,
        parent=first,
        checkpoint=STATE,
        certificate={"limit": 0.1},
    )
    export(ledger, path)
    return list(verifier.read(path))


def relinked(rows):
    previous = bytes(32)
    for seq, row in enumerate(rows, 1):
        row["seq"] = seq
        previous = verifier.link(previous, row)
        row["hash"] = previous.hex()
    return rows


def of_kind(rows, kind):
    return [row for row in rows if row["kind"] == kind]


def changed_document(rows):
    of_kind(rows, "checkpoint")[1]["body"]["checkpoint"] = {"sums": [9.0]}
    return rows


def changed_with_its_digest(rows):
    body = of_kind(rows, "checkpoint")[1]["body"]
    body["checkpoint"] = {"sums": [9.0]}
    body["digest"] = canonical_digest(body["checkpoint"])
    return rows


def missing(rows):
    gone = of_kind(rows, "checkpoint")[1]
    return [row for row in rows if row is not gone]


def of_another_epoch(rows):
    of_kind(rows, "checkpoint")[1]["body"]["epoch"] = 3
    return rows


def after_its_policy(rows):
    late = of_kind(rows, "checkpoint")[1]
    return [*(row for row in rows if row is not late), late]


def of_another_protocol(rows):
    of_kind(rows, "policy")[1]["body"]["info"]["protocol_version"] = 2
    return rows


def of_no_protocol(rows):
    gone = of_kind(rows, "checkpoint")[1]
    del of_kind(rows, "policy")[1]["body"]["info"]["protocol_version"]
    return [row for row in rows if row is not gone]


@pytest.mark.parametrize(
    "change",
    [
        changed_document,
        changed_with_its_digest,
        missing,
        of_another_epoch,
        after_its_policy,
        of_another_protocol,
        of_no_protocol,
    ],
    ids=lambda change: change.__name__,
)
def test_the_stand_alone_verifier_misses_none(ledger, tmp_path, change):
    rows = chain(ledger, tmp_path / "export.jsonl")
    assert verifier.check(relinked(rows), {}).problems == []
    assert verifier.check(relinked(change(rows)), {}).problems != []


@pytest.mark.parametrize("change", [changed_document, changed_with_its_digest, of_another_epoch])
def test_the_project_s_verification_misses_none(path, tmp_path, change):
    """The same in place: everything but the keyring's seal of the head is made to fit, and the
    problem named is the checkpoint's.
    """
    from evenhand_service.ledger.chain import LOOKUPS, lookup_values
    from evenhand_service.ledger.database import KINDS

    with opened(path) as ledger:
        rows = relinked(change(chain(ledger, tmp_path / "export.jsonl")))
        with ledger.store.writer.begin() as connection:
            for row in rows:
                kind, table = row["kind"], KINDS[row["kind"]]
                connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {table.name}_keeps_UPDATE")
                columns = dict(zip(LOOKUPS[kind], lookup_values(kind, row["body"]), strict=True))
                values = {
                    **columns,
                    "body": verifier.canonical(row["body"]),
                    "hash": bytes.fromhex(row["hash"]),
                }
                connection.execute(table.update().where(table.c.seq == row["seq"]).values(values))
        assert any("checkpoint" in problem.what for problem in verify(ledger).problems)
