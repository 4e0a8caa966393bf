"""What an auditor takes away: tables, and exports that `evenhand evaluate` reads."""

import csv
import dataclasses
import hashlib
import json
import shutil
import subprocess
import sys

import pytest
from tests.service.bank import LOAN as OURS
from tests.service.bank import OTHER as THEIRS
from tests.service.bank import application

from evenhand.errors import InvalidInput
from evenhand.evaluation import read_log
from evenhand.ledger import Keyring, Row, standalone_verifier, verify_signature
from evenhand.service.audit_pack import (
    DECISION_COLUMNS,
    Period,
    _decision,
    _write_csv,
    export_decisions,
    pack,
    selection,
)
from evenhand.service.settings import Product

LOAN = Product(tenant="bank", name="loan", features=("score",), limit=0.1)


def row(seq, accept, acceptance, label=0, features=(1.5,), group="a"):
    return Row(
        seq, 1e9 + seq, "w0", features, group, None, 0.5, accept, acceptance, False, 1.0, "hash",
        1, label, "known" if label else "open",
        features is None,
    )  # fmt: skip


ROWS = [
    row(1, True, 0.3, 1),
    row(2, False, 0.1),
    row(3, True, 0.9, -1, group=None),
    row(4, True, 1.0),
    row(5, False, 0.0),
    row(6, True, 0.5, 1, None),
]


@pytest.mark.parametrize(
    ("kind", "name"), [("obp", "log.npz"), ("dsjson", "log.dsjson"), ("parquet", "log.parquet")]
)
def test_an_export_is_a_log(tmp_path, kind, name):
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    (tmp_path / name).touch(mode=0o644)  # a file that was there before
    assert export_decisions(ROWS, LOAN, tmp_path / name, kind) == 5
    assert export_decisions(ROWS, LOAN, tmp_path / f"new-{name}", kind) == 5
    for file in (name, f"new-{name}"):
        assert (tmp_path / file).stat().st_mode & 0o777 == 0o600
    log = read_log(tmp_path / name)
    assert log.ids == ["1", "2", "3", "4", "5"]
    assert log.names == ("score",)
    assert log.acceptance.tolist() == [0.3, 0.1, 0.9, 1.0, 0.0]
    assert log.accept.tolist() == [True, False, True, True, False]
    assert log.label.tolist() == [1, 0, -1, 0, 0]
    assert log.group.tolist() == ["a", "a", None, "a", "a"]


def test_nobody_left_to_export(tmp_path):
    with pytest.raises(InvalidInput, match="no decision to export"):
        export_decisions([ROWS[-1]], LOAN, tmp_path / "log.npz", "obp")


def test_the_four_fifths_table():
    from types import SimpleNamespace as Row

    rows = [Row(group="a", accept=i < 8) for i in range(10)] + [
        Row(group="b", accept=i < 6) for i in range(10)
    ]
    assert [line[3:] for line in selection(rows)] == [
        ("0.800000", "1.0000", "yes"),
        ("0.600000", "0.7500", "no"),
    ]


def test_a_decision_has_its_key_and_no_cell_is_a_formula(tmp_path):
    """The key leads from the table to the explanation; whoever is erased has none."""
    keys = ("k1", None, "=1+1", "+cmd|' /C calc'!A0", "-2+3", "-17")
    rows = [dataclasses.replace(one, key=key) for one, key in zip(ROWS, keys, strict=True)]
    _write_csv(tmp_path / "decisions.csv", DECISION_COLUMNS, map(_decision, rows))
    with (tmp_path / "decisions.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    assert [line["row"] for line in read] == ["1", "2", "3", "4", "5", "6"]
    assert [line["key"] for line in read] == [
        "k1", "", "'=1+1", "'+cmd|' /C calc'!A0", "'-2+3", "-17",
    ]  # fmt: skip


# one tenant's pack


@pytest.fixture
def two_tenants(bank):
    """Two banks whose products have one name, and whose customers have telling ones."""
    for number in range(12):
        for tenant, token in (("bank", bank.all), ("rival", bank.rival)):
            told = application(f"{tenant}-k{number}", person=f"{tenant}-p{number}", group="g")
            assert bank.post("/v1/decisions", told, token).status_code == 200
            told = {"key": f"{tenant}-k{number}", "label": 1}
            bank.post("/v1/outcomes", told, token)
            told = {"key": f"{tenant}-k{number}", "accept": True, "by": f"{tenant}-clerk"}
            bank.post("/v1/overrides", told, token)
    bank.post("/v1/erasures", {"person": "rival-p3", "by": "rival-clerk"}, bank.rival)
    return bank


def verified(target, verifier="verifier.py"):
    """Whether the stand-alone verifier of a pack, and nothing else, finds it sound."""
    words = [sys.executable, "-I", "-S", str(verifier), "ledger.jsonl"]
    words += ["--secrets", "secrets.json", "--head", "head.json", "--pack", "pack.json"]
    return subprocess.run(words, cwd=target, capture_output=True, text=True, check=False)


def test_a_pack_holds_one_tenant_in_the_clear_and_others_by_their_hashes(two_tenants, tmp_path):
    for product, other in ((OURS, "rival"), (THEIRS, "bank")):
        target = pack(two_tenants.ledger, product, Period(0.0, 1e12), tmp_path / product.tenant)
        texts = {file.name: file.read_text() for file in target.iterdir()}
        assert [name for name, text in texts.items() if f"{other}-" in text] == []
        assert f"{product.tenant}-p5" in texts["ledger.jsonl"]
        assert {file.stat().st_mode & 0o777 for file in target.iterdir()} == {0o600}
        assert target.stat().st_mode & 0o777 == 0o700
        found = verified(target)
        assert found.returncode == 0, found.stdout
        assert "of others, by their hash alone" in found.stdout
        signed = json.loads(texts["pack.json"])
        signature = signed.pop("signature")
        verify_signature(signed["public_key"], signed, signature)


def test_a_row_that_was_changed_before_a_hidden_one_is_found(two_tenants, tmp_path):
    """The chain alone would not tell: the hash of a hidden row cannot be computed again."""
    target = pack(two_tenants.ledger, OURS, Period(0.0, 1e12), tmp_path / "pack")
    path = target / "ledger.jsonl"
    lines = path.read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    place = next(
        i
        for i, row in enumerate(rows[:-1])
        if row.get("kind") == "outcome" and "kind" not in rows[i + 1]
    )
    rows[place]["body"]["value"] = "-1"
    before = bytes.fromhex(rows[place - 1]["hash"])
    rows[place]["hash"] = standalone_verifier.link(before, rows[place]).hex()
    lines[place] = json.dumps(rows[place])
    path.write_text("\n".join(lines) + "\n")
    found = verified(target)
    assert found.returncode == 1
    assert "not those that the pack was signed with" in found.stdout
    # without the signed list nothing binds them, and the verifier says so
    words = ["verifier.py", "ledger.jsonl"]
    bare = subprocess.run(
        [sys.executable, *words], cwd=target, capture_output=True, text=True, check=False
    )
    assert bare.returncode == 1
    assert "give --pack" in bare.stdout


def edited(path):
    """One byte of a file is another one."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_every_file_of_a_pack_is_bound_by_its_signature(two_tenants, tmp_path):
    target = pack(two_tenants.ledger, OURS, Period(0.0, 1e12), tmp_path / "pack")
    found = verified(target)
    assert found.returncode == 0, found.stdout
    names = sorted(file.name for file in target.iterdir() if file.name != "pack.json")
    assert sorted(json.loads((target / "pack.json").read_text())["files"]) == names
    assert f"files of the pack checked: {len(names)}" in found.stdout
    checker = tmp_path / "checker.py"  # the auditor's own copy
    shutil.copy(target / "verifier.py", checker)
    for name in names:
        if name in ("ledger.jsonl", "head.json", "secrets.json"):
            continue  # what is no JSON any more cannot be checked further
        before = (target / name).read_bytes()
        edited(target / name)
        told = f"the file {name} is not the one that the pack was signed with"
        found = verified(target, checker)
        assert (found.returncode, told in found.stdout) == (1, True), found.stdout
        (target / name).unlink()
        found = verified(target, checker)
        assert (found.returncode, f"{name} of the pack is missing" in found.stdout) == (1, True)
        (target / name).write_bytes(before)
    # an honest JSON with another meaning
    (target / "secrets.json").write_text("{ }\n")
    assert "the file secrets.json is not" in verified(target).stdout


def test_what_an_auditor_reads_cannot_be_edited(two_tenants, tmp_path):
    """The forgery that went unseen: accepted people turned into rejected ones in the tables."""
    target = pack(two_tenants.ledger, OURS, Period(0.0, 1e12), tmp_path / "pack")
    for name, old, new in (
        ("decisions.csv", ",1,", ",0,"),
        ("certificates.json", "certified", "FORGED"),
    ):
        text = (target / name).read_text()
        (target / name).write_text(text.replace(old, new))
    (target / "selection.csv").write_text("a,10,10,1.0,1.0,yes\n")
    (target / "summary.csv").write_text("everybody was accepted\n")
    found = verified(target)
    assert found.returncode == 1
    assert "problems: 3" in found.stdout
    assert "the pack was not signed with summary.csv" in found.stdout


def test_the_list_of_a_pack_cannot_be_signed_by_somebody_else(two_tenants, tmp_path):
    target = pack(two_tenants.ledger, OURS, Period(0.0, 1e12), tmp_path / "pack")
    path = target / "pack.json"
    listed = json.loads(path.read_text())
    del listed["signature"]
    edited(target / "decisions.csv")
    digest = hashlib.sha256((target / "decisions.csv").read_bytes()).hexdigest()
    listed["files"]["decisions.csv"] = digest
    stranger = Keyring(bytes(range(1, 33)))
    for key in (listed["public_key"], stranger.public_key):
        forged = {**listed, "public_key": key}
        path.write_text(json.dumps({**forged, "signature": stranger.sign(forged)}))
        assert verified(target).returncode == 1
    assert "another key than the ledger's" in verified(target).stdout
    without = {name: value for name, value in listed.items() if name != "files"}
    path.write_text(json.dumps({**without, "signature": json.loads('"00"') * 64}))
    assert "not signed by the key that it names" in verified(target).stdout


def test_a_pack_that_was_made_before_verifies_with_a_remark(two_tenants, tmp_path):
    ledger = two_tenants.ledger
    target = pack(ledger, OURS, Period(0.0, 1e12), tmp_path / "pack")
    listed = json.loads((target / "pack.json").read_text())
    del listed["signature"], listed["files"]
    older = {**listed, "signature": ledger.keyring.sign(listed)}
    (target / "pack.json").write_text(json.dumps(older, indent=1, sort_keys=True) + "\n")
    found = verified(target)
    assert found.returncode == 0, found.stdout
    assert "made before packs bound their readable files" in found.stdout
    assert "decisions.csv" in found.stdout
    assert "problems: 0" in found.stdout
