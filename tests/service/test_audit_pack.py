"""What an auditor takes away: tables, and exports that `evenhand evaluate` reads."""

import pytest

from evenhand.errors import InvalidInput
from evenhand.evaluation import read_log
from evenhand.ledger import Row
from evenhand.service.audit_pack import export_decisions, selection
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
    assert export_decisions(ROWS, LOAN, tmp_path / name, kind) == 5
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
