"""What an auditor takes away: tables, and exports that `evenhand evaluate` reads."""

import csv
import dataclasses
import hashlib
import json
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from service.tests.bank import KEYRING, Clock, application
from service.tests.bank import LOAN as OURS
from service.tests.doctorings import DOCTORINGS, begun, doctored

from evenhand.errors import InvalidInput
from evenhand.evaluation import read_log
from evenhand_service.audit_pack import (
    Period,
    export_decisions,
    impact_json,
    pack,
)
from evenhand_service.ledger import (
    Damaged,
    Keyring,
    Ledger,
    Row,
    Tampered,
    backup,
    standalone_verifier,
)
from evenhand_service.ledger.keyring import verify_signature
from evenhand_service.ledger.merkle import proof_of_decision
from evenhand_service.ledger.standalone_verifier import (
    DECISION_COLUMNS,
    csv_text,
    decision_line,
    selection,
)
from evenhand_service.ledger.witness import entry_of
from evenhand_service.settings import Product

LOAN = Product(name="loan", features=("score",), limit=0.1)


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


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
def test_an_export_is_a_log(tmp_path, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).touch(mode=0o644)  # a file that was there before
    assert export_decisions(ROWS, LOAN, tmp_path / name) == 5
    assert export_decisions(ROWS, LOAN, tmp_path / f"new-{name}") == 5
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
    with pytest.raises(InvalidInput, match="export"):
        export_decisions([ROWS[-1]], LOAN, tmp_path / "log.csv")


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
    text = csv_text(DECISION_COLUMNS, map(decision_line, rows))
    (tmp_path / "decisions.csv").write_text(text, newline="")
    with (tmp_path / "decisions.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    assert [line["row"] for line in read] == ["1", "2", "3", "4", "5", "6"]
    assert [line["key"] for line in read] == [
        "k1", "", "'=1+1", "'+cmd|' /C calc'!A0", "'-2+3", "-17",
    ]  # fmt: skip


# a whole pack


@pytest.fixture
def customers(bank):
    """A bank with customers, one of whom is erased."""
    for number in range(12):
        told = application(f"k{number}", person=f"p{number}", group="g")
        assert bank.post("/v1/decisions", told).status_code == 200
        bank.post("/v1/outcomes", {"key": f"k{number}", "label": 1})
        bank.post("/v1/overrides", {"key": f"k{number}", "accept": True, "by": "clerk"})
    bank.post("/v1/erasures", {"person": "p3", "by": "clerk"})
    return bank


def verified(target, verifier="verifier.py"):
    """Whether the stand-alone verifier of a pack, and nothing else, finds it sound."""
    words = [sys.executable, "-I", "-S", str(verifier), "ledger.jsonl"]
    words += ["--secrets", "secrets.json", "--head", "head.json", "--pack", "pack.json"]
    return subprocess.run(words, cwd=target, capture_output=True, text=True, check=False)


def test_a_pack_is_for_its_owner_alone_signed_and_sound(customers, tmp_path):
    target = pack(customers.ledger, OURS, Period(0.0, 1e12), tmp_path / "pack")
    texts = {file.name: file.read_text() for file in target.iterdir()}
    assert '"p5"' in texts["ledger.jsonl"]
    assert '"p3"' not in texts["ledger.jsonl"]
    assert {file.stat().st_mode & 0o777 for file in target.iterdir()} == {0o600}
    assert target.stat().st_mode & 0o777 == 0o700
    found = verified(target)
    assert found.returncode == 0, found.stdout
    signed = json.loads(texts["pack.json"])
    signature = signed.pop("signature")
    verify_signature(signed["public_key"], signed, signature)


def edited(path):
    """One byte of a file is another one."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.slow
def test_every_file_of_a_pack_is_bound_by_its_signature(customers, tmp_path):
    target = pack(customers.ledger, OURS, Period(0.0, 1e12), tmp_path / "pack")
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


def test_the_impact_table_is_the_library_s_and_counts_what_selection_counts(customers, tmp_path):
    target = pack(customers.ledger, OURS, Period(0.0, 1e12), tmp_path / "pack")
    table = json.loads((target / "impact.json").read_text())
    with (target / "selection.csv").open(newline="") as file:
        selection = {one["group"]: one for one in csv.DictReader(file)}
    assert {one["group"] for one in table["rows"]} == set(selection)
    for one in table["rows"]:
        told = selection[one["group"]]
        assert (one["people"], one["selected"]) == (int(told["people"]), int(told["accepted"]))
        assert one["ratio"] is None or f"{one['ratio']:.4f}" == told["ratio"]
    empty = pack(customers.ledger, OURS, Period(0.0, 1.0), tmp_path / "empty")
    assert json.loads((empty / "impact.json").read_text())["rows"] == []
    assert verified(empty).returncode == 0


def test_what_an_auditor_reads_cannot_be_edited(customers, tmp_path):
    """The forgery that went unseen: accepted people turned into rejected ones in the tables."""
    target = pack(customers.ledger, OURS, Period(0.0, 1e12), tmp_path / "pack")
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
    assert "the file decisions.csv is not the one that the pack was signed with" in found.stdout
    assert " of decisions.csv is not what the chain says" in found.stdout
    assert "selection.csv is not what the chain says" in found.stdout
    assert "problems: 6" in found.stdout
    assert "the pack was not signed with summary.csv" in found.stdout


def test_the_list_of_a_pack_cannot_be_signed_by_somebody_else(customers, tmp_path):
    target = pack(customers.ledger, OURS, Period(0.0, 1e12), tmp_path / "pack")
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


def test_a_pack_that_names_no_files_is_a_problem(customers, tmp_path):
    """Even where the ledger's own key has signed it: its tables would be bound by nothing."""
    ledger = customers.ledger
    target = pack(ledger, OURS, Period(0.0, 1e12), tmp_path / "pack")
    listed = json.loads((target / "pack.json").read_text())
    del listed["signature"], listed["files"]
    signed = {**listed, "signature": ledger.keyring.sign(listed)}
    (target / "pack.json").write_text(json.dumps(signed, indent=1, sort_keys=True) + "\n")
    found = verified(target)
    assert found.returncode == 1, found.stdout
    assert "names no files" in found.stdout


# a ledger that somebody has doctored without the keyring


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return begun(tmp_path_factory.mktemp("sound") / "ledger.sqlite")


def looked_at(path):
    return Ledger.open(path, keyring=KEYRING, clock=Clock())


@pytest.mark.parametrize("name", DOCTORINGS)
def test_nothing_of_a_doctored_ledger_is_signed_and_the_problems_are(name, sound, tmp_path, capsys):
    path = tmp_path / "ledger.sqlite"
    shutil.copyfile(sound, path)
    doctored(path, name)
    with looked_at(path) as ledger:
        with pytest.raises(Damaged, match="signed"):
            pack(ledger, OURS, Period(0.0, 1e12), tmp_path / "refused")
        assert not (tmp_path / "refused").exists()
        target = pack(ledger, OURS, Period(0.0, 1e12), tmp_path / "pack", with_problems=True)
    problems = json.loads((target / "pack.json").read_text())["problems"]
    assert problems
    assert not (target / "decisions.csv").exists()
    assert not (target / "head.json").exists()
    words = [str(target / "ledger.jsonl"), "--pack", str(target / "pack.json")]
    assert standalone_verifier.main(words) == 1
    assert f"{problems[0]['what']} (found when the pack was made)" in capsys.readouterr().out


REWRITTEN = ("a flipped label", "the end cut off", "an added label", "a dropped kill")


@pytest.mark.parametrize("name", REWRITTEN)
def test_neither_a_head_a_proof_a_backup_nor_an_entry_is_signed(name, sound, tmp_path):
    path = tmp_path / "ledger.sqlite"
    shutil.copyfile(sound, path)
    doctored(path, name)
    with looked_at(path) as ledger:
        for sign in (
            ledger.signed_head,
            lambda: entry_of(ledger, 0),
            lambda: proof_of_decision(ledger, "k1"),
        ):
            with pytest.raises(Tampered):
                sign()
        with pytest.raises(Damaged, match="signed head"):
            backup(ledger, tmp_path / "backup")
    assert [file.name for file in (tmp_path / "backup").iterdir()] == ["ledger.sqlite"]


def test_a_hash_that_leads_nowhere_is_in_no_proof_and_no_entry(sound, tmp_path):
    """The head is the sealed one; a row before it has another hash than the chain."""
    path = tmp_path / "ledger.sqlite"
    shutil.copyfile(sound, path)
    doctored(path, "a certificate edited in place")
    with looked_at(path) as ledger:
        for sign in (lambda: proof_of_decision(ledger, "k1"), lambda: entry_of(ledger, 0)):
            with pytest.raises(Tampered):
                sign()


def resigned(target, ledger):
    """What an insider could do: sign the list again with the keyring."""
    listed = json.loads((target / "pack.json").read_text())
    del listed["signature"]
    listed["files"] = {
        name: hashlib.sha256((target / name).read_bytes()).hexdigest() for name in listed["files"]
    }
    signed = {**listed, "signature": ledger.keyring.sign(listed)}
    (target / "pack.json").write_text(json.dumps(signed))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("decisions.csv", ",resolved,1,", ",resolved,-1,"),
        ("decisions.csv", ",g,0,", ",h,0,"),
        ("overrides.csv", "k17", "k18"),
        ("overruled.csv", "reject", "accept"),
        ("selection.csv", "yes", "no"),
        ("impact.json", '"selected": ', '"selected": 1'),
        ("impact.json", '"ratio": 1.0', '"ratio": 0.9'),
        ("impact.json", '"people": ', '"people": 1'),
        ("impact.json", '"more_selections": ', '"more_selections": 1'),
        ("impact.json", '"excluded": false', '"excluded": true'),
        ("impact.json", '"status": "', '"status": "un'),
        ("impact.json", '"standard_deviations": null', '"standard_deviations": 0.5'),
        ("events.json", "drill", "dull"),
        ("certificates.json", '"epoch": 1', '"epoch": 2'),
        ("policies.json", '"epoch": 1', '"epoch": 2'),
        ("randomisation.json", '"revealed": false', '"revealed": true'),
    ],
)
def test_tables_are_computed_again_whoever_has_signed_them(name, old, new, sound, tmp_path):
    path = tmp_path / "ledger.sqlite"
    shutil.copyfile(sound, path)
    with looked_at(path) as ledger:
        target = pack(ledger, OURS, Period(0.0, 1e12), tmp_path / "pack")
        found = verified(target)
        assert (found.returncode, "computed again: 9" in found.stdout) == (0, True), found.stdout
        text = (target / name).read_bytes().decode()
        assert old in text
        (target / name).write_bytes(text.replace(old, new, 1).encode())
        resigned(target, ledger)
    found = verified(target)
    assert found.returncode == 1
    assert f"{name} is not what the chain says" in found.stdout
    assert "problems: 1" in found.stdout


@pytest.mark.parametrize("seed", range(8))
def test_the_verifier_finds_the_impact_table_that_the_library_writes(seed, tmp_path):
    """On random decisions, with rare, unknown and never accepted groups; whole tables without a
    known group too. A table with one figure changed is another one.
    """
    rng = np.random.default_rng(seed)
    groups = [None, "a", "b", "c", "rare"] if seed else [None]
    chances = [0.2, 0.4, 0.3, 0.08, 0.02] if seed else [1.0]
    rates = {None: 0.5, "a": rng.random(), "b": rng.random(), "c": 0.0, "rare": 0.5}
    drawn = [groups[j] for j in rng.choice(len(groups), 300, p=chances)]
    rows = [SimpleNamespace(group=one, accept=bool(rng.random() < rates[one])) for one in drawn]
    table = impact_json(rows)
    path = tmp_path / "impact.json"

    def read(document):
        path.write_text(json.dumps(document))
        return standalone_verifier.impact_in_file(path)

    same_figures = standalone_verifier.same_figures
    found = standalone_verifier.impact_found(rows)
    assert same_figures(read(table), found)
    assert not same_figures(read({**table, "unknown": {"": 1}}), found)
    for place, row in enumerate(table["rows"]):
        for name in ("more_selections", "people", "selected"):
            rest = [*table["rows"][:place], {**row, name: row[name] + 1}]
            changed = {**table, "rows": rest + table["rows"][place + 1 :]}
            assert not same_figures(read(changed), found)
