"""Decisions with their propensities in the formats that other tools read: Open Bandit Pipeline, VW dsjson, Parquet."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from evenhand.contracts import Json
from evenhand.errors import InvalidInput
from evenhand.ledger import Row
from evenhand.service.config import Product


def _readable(rows: Iterable[Row]) -> list[Row]:
    """Rows that still have features; erased people are in no export."""
    found = [row for row in rows if row.features is not None]
    if not found:
        raise InvalidInput("there is no decision to export.", hint="check the product and the period.")
    return found


def _propensity(row: Row) -> float:
    return row.acceptance if row.accept else 1.0 - row.acceptance


def obp(rows: Iterable[Row], product: Product, path: Path) -> int:
    """Open Bandit Pipeline's bandit_feedback as .npz: action 1 accepts; reward is 1 for a good outcome, NaN where none is known."""
    found = _readable(rows)
    reward = [1.0 if row.label == 1 else 0.0 if row.label == -1 else np.nan for row in found]
    np.savez(
        path,
        n_rounds=len(found),
        n_actions=2,
        context=np.array([row.features for row in found]),
        context_names=np.array(product.features),
        action=np.array([int(row.accept) for row in found]),
        reward=np.array(reward),
        pscore=np.array([_propensity(row) for row in found]),
        position=np.zeros(len(found), dtype=np.int64),
        action_context=np.eye(2),
    )
    return len(found)


def dsjson(rows: Iterable[Row], product: Product, path: Path) -> int:
    """VW's dsjson: cost 0 for a good outcome, 1 for a bad one, 0.5 for a rejection; accepted people whose label is open are left out."""
    found = [row for row in _readable(rows) if row.label != 0 or not row.accept]
    with path.open("w", encoding="utf-8") as file:
        for row in found:
            file.write(json.dumps(_event(row, product)) + "\n")
    return len(found)


def _event(row: Row, product: Product) -> Json:
    chosen, other = (1, 2) if row.accept else (2, 1)
    cost = 0.5 if not row.accept else (0.0 if row.label == 1 else 1.0)
    return {
        "_label_cost": cost,
        "_label_probability": _propensity(row),
        "_label_Action": chosen,
        "_labelIndex": chosen - 1,
        "EventId": str(row.seq),
        "a": [chosen, other],
        "p": [_propensity(row), 1.0 - _propensity(row)],
        "c": {
            "shared": dict(zip(product.features, row.features or (), strict=True)),
            "_multi": [{"action": {"accept": 1}}, {"action": {"reject": 1}}],
        },
    }


def parquet(rows: Iterable[Row], product: Product, path: Path) -> int:
    """One column per fact; needs pyarrow."""
    try:
        import pyarrow  # type: ignore[import-untyped]
        from pyarrow import parquet as files
    except ImportError:
        raise InvalidInput("Parquet needs the package pyarrow.", hint="pip install pyarrow.") from None
    found = _readable(rows)
    names = (
        "seq",
        "at",
        "window",
        "policy",
        "epoch",
        "accept",
        "acceptance",
        "u",
        "audit",
        "audit_weight",
        "label",
        "status",
    )
    columns = {name: [getattr(row, name) for row in found] for name in names}
    columns["propensity"] = [_propensity(row) for row in found]
    columns["group"] = [None if row.group is None else str(row.group) for row in found]
    for place, name in enumerate(product.features):
        columns[f"feature_{name}"] = [(row.features or ())[place] for row in found]
    files.write_table(pyarrow.table(columns), path)
    return len(found)


FORMATS: Mapping[str, Callable[[Iterable[Row], Product, Path], int]] = {
    "obp": obp,
    "dsjson": dsjson,
    "parquet": parquet,
}
