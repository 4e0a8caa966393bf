"""Fitted models are rows of the chain: each once, named by the hash of its bytes, before the policy
that refers to it.
"""

import base64
import hashlib
import json
import sqlite3

import pytest
from service.tests.ledger.helpers import PRODUCT, coin, opened

from evenhand_service.ledger import Damaged, Invalid, export, verify
from evenhand_service.ledger import standalone_verifier as verifier


def stored(data=b"bytes of a model"):
    sha256 = hashlib.sha256(data).hexdigest()
    model = {"format": "skops", "types": [], "data": base64.b64encode(data).decode()}
    return sha256, {**model, "sha256": sha256}


def referring(sha256):
    """A document with a reference deep inside."""
    return coin(0.5) | {"inner": [{"model": {"format": "skops", "sha256": sha256, "types": []}}]}


def publish(ledger, sha256, models, *, epoch=1, parent=None, checkpoint=None):
    return ledger.publish(
        PRODUCT, referring(sha256), epoch=epoch, parent=parent,
        checkpoint={} if checkpoint is None else checkpoint, models=models,
    )  # fmt: skip


def test_each_is_stored_once_and_found_by_whatever_refers_to_it(where):
    (name, model), (other, second) = stored(), stored(b"another")
    with opened(where) as ledger:
        first = publish(ledger, name, {name: model})
        rows = ledger.head().seq
        both = {name: model, other: second}
        publish(ledger, other, both, epoch=2, parent=first.id, checkpoint=referring(name))
        assert ledger.head().seq - rows == 3  # one model, the checkpoint, the policy
        assert ledger.models(referring(name)) == {name: model}
        assert ledger.models({"a": [referring(name), referring(other)]}) == both
        assert ledger.models(coin(0.5)) == {}
        with pytest.raises(Damaged, match="0" * 64):
            ledger.models(referring("0" * 64))
        assert verify(ledger).ok


def test_a_model_under_another_name_is_refused_before_anything_is_written(ledger):
    name, model = stored()
    before = ledger.head()
    with pytest.raises(Invalid, match="hash"):
        publish(ledger, name, {name: model | {"data": stored(b"x")[1]["data"]}})
    with pytest.raises(Invalid, match="hash"):
        publish(ledger, name, {name: {"format": "skops", "data": "no base64!"}})
    assert ledger.head() == before


def test_a_policy_whose_model_is_not_in_the_chain_before_it_is_found(ledger, tmp_path):
    """By both verifiers; also a checkpoint is looked at."""
    name, model = stored()
    first = publish(ledger, name, {})
    found = verify(ledger).problems
    assert [(one.seq, "is not in the chain" in one.what) for one in found] == [(first.seq, True)]
    publish(ledger, name, {}, epoch=2, parent=first.id, checkpoint=referring("1" * 64))
    assert len(verify(ledger).problems) == 3
    publish(ledger, name, {name: model}, epoch=3, parent=first.id)
    export(ledger, tmp_path / "ledger.jsonl")
    again = verifier.check(verifier.read(tmp_path / "ledger.jsonl"), {}).problems
    assert [one.what for one in again] == [one.what for one in verify(ledger).problems]


def test_other_bytes_under_the_same_name_are_found(path, tmp_path):
    """Even by somebody who writes the chain's hashes anew: the name is the hash of the bytes."""
    name, model = stored()
    with opened(path) as ledger:
        publish(ledger, name, {name: model})
        assert verify(ledger).ok
        with (
            ledger.store.writer.begin() as connection,
            pytest.raises(Exception, match="append-only"),
        ):
            connection.exec_driver_sql("DELETE FROM models")
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER models_keeps_UPDATE")
        body = json.loads(connection.execute("SELECT body FROM models").fetchone()[0])
        body["model"]["data"] = stored(b"a model that likes friends")[1]["data"]
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        connection.execute("UPDATE models SET body = ?", [text])
    connection.close()
    with opened(path) as ledger:
        told = [problem.what for problem in verify(ledger).problems]
        assert "the model's name is not the hash of its bytes" in told
        with pytest.raises(Damaged, match="another hash"):
            ledger.models(referring(name))
