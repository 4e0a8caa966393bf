"""Decisions with their propensities in the formats that other tools read: Open Bandit Pipeline, VW
dsjson, Parquet.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.errors import InvalidInput
from evenhand.evaluation import DecisionLog
from evenhand.evaluation.formats import write_log
from evenhand.evaluation.formats.tables import write_parquet
from evenhand.ledger import Row
from evenhand.service.config import Product

FACTS = ("at", "window", "policy", "epoch", "u", "audit", "audit_weight", "status", "overruled")
"""What the ledger knows of a decision beyond a log; in Parquet these are columns."""


def _readable(rows: Iterable[Row]) -> list[Row]:
    """Rows that still have features; erased people are in no export."""
    found = [row for row in rows if row.features is not None]
    if not found:
        raise InvalidInput(
            "there is no decision to export.", hint="check the product and the period."
        )
    return found


def as_log(rows: list[Row], product: Product) -> DecisionLog:
    """The decisions as a log; the id is the number of the ledger's row."""
    return DecisionLog.of(
        np.array([row.features for row in rows]),
        [row.accept for row in rows],
        [row.acceptance for row in rows],
        [row.label if row.accept else 0 for row in rows],
        group=[row.group for row in rows],
        names=product.features,
        id=[row.seq for row in rows],
        source="the ledger",
    )


def obp(rows: Iterable[Row], product: Product, path: Path) -> int:
    """Open Bandit Pipeline's bandit_feedback as .npz."""
    return _written(rows, product, path, "obp")


def dsjson(rows: Iterable[Row], product: Product, path: Path) -> int:
    """VW's dsjson; accepted people whose label is open are events without a label."""
    return _written(rows, product, path, "dsjson")


def _written(rows: Iterable[Row], product: Product, path: Path, format: str) -> int:
    found = _readable(rows)
    write_log(as_log(found, product), path, format)
    return len(found)


def parquet(rows: Iterable[Row], product: Product, path: Path) -> int:
    """One column per fact; needs pyarrow. `evenhand evaluate` reads it."""
    found = _readable(rows)
    log = as_log(found, product)
    more: dict[str, list[Any]] = {name: [getattr(row, name) for row in found] for name in FACTS}
    write_parquet(log, path, {**more, "propensity": log.propensity.tolist()})
    return len(found)


FORMATS: Mapping[str, Callable[[Iterable[Row], Product, Path], int]] = {
    "obp": obp,
    "dsjson": dsjson,
    "parquet": parquet,
}
