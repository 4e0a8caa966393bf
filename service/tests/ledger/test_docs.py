"""The page on the ledger names nothing that does not exist."""

import re
from pathlib import Path

import evenhand_service.ledger as package
from evenhand_service.ledger import Ledger

PAGE = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text(encoding="utf-8")


def strange(text: str) -> list[str]:
    """Names in backticks that look like one of the ledger's and are none."""
    words = re.findall(r"`([A-Z][a-z]+[A-Za-z]+|[a-z]+_[a-z_]+)(?:\(\))?`", text)
    known = {*dir(package), *dir(Ledger)}
    return [word for word in words if word not in known | ELSEWHERE]


ELSEWHERE = {
    *("witness_seconds", "witness_required_seconds"),  # settings
    *("basis_seal", "secure_delete", "autovacuum_naptime", "max_wal_size", "wal_keep_size"),
    *("group_late", "audit_weight"),  # fields of a row
}


def test_every_name_on_the_page_exists():
    assert strange(PAGE) == []


def test_a_name_that_does_not_exist_is_seen():
    assert strange("`require_chain` and `no_such_method`, `Tampered` and `Nothing`") == [
        "no_such_method",
        "Nothing",
    ]
