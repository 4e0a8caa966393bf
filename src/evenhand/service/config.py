"""What the operator settles before the service starts: where things lie, which products are
decided, and what is promised for each.

The file is TOML; `docs/operating.md` shows one. What is promised (limit, delta, class, seed) is
part of every policy's record, so that a ledger can be rebuilt.
"""

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from evenhand.contracts import GroupUse, HypothesisClass, Json
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import RATES, as_rates
from evenhand.hypotheses import ScoreThresholds
from evenhand.hypotheses.named import CLASSES
from evenhand.learners import CertifiedLearner
from evenhand.words import Prices

DAY = 86400.0


@dataclass(frozen=True)
class Product:
    """One product of one tenant: its features, in order, and the promise under which it is decided."""

    tenant: str
    name: str
    features: tuple[str, ...]
    hypotheses: str = "stumps"
    score: str | None = None
    rates: tuple[str, ...] = ("fpr",)
    limit: float = 0.05
    delta: float = 0.05
    maturity_days: float | None = None
    group_use: GroupUse = "certify_only"
    groups: tuple[Any, ...] | None = None
    fallback: Literal["accept", "reject"] = "accept"
    price_false_accept: float = 1.0
    price_false_reject: float = 1.0
    prices_per_person: bool = False
    audit_budget: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.features or len(set(self.features)) < len(self.features):
            raise InvalidInput(
                f"product {self.name!r} needs at least one feature, each named once."
            )
        unknown = [rate for rate in self.rates if rate not in RATES]
        if unknown or not self.rates:
            raise InvalidInput(
                f"product {self.name!r} names the rates {self.rates}; known are {', '.join(RATES)}."
            )
        if self.group_use == "decide" and not self.groups:
            raise InvalidInput(
                f"product {self.name!r} decides by group, so its groups must be listed."
            )
        self.learner()

    @property
    def hypothesis_class(self) -> HypothesisClass:
        """The class by its kind; thresholds look at the column called `score`."""
        if self.hypotheses == "thresholds":
            column = 0 if self.score is None else self._column(self.score)
            return ScoreThresholds(column, per_group=self.group_use == "decide")
        if self.hypotheses not in ("stumps", "linear"):
            raise InvalidInput(
                f"hypotheses is {self.hypotheses!r}; the service knows stumps, thresholds, linear."
            )
        return CLASSES[self.hypotheses]()

    def _column(self, name: str) -> int:
        if name not in self.features:
            raise InvalidInput(
                f"score is {name!r}, but the features are {', '.join(self.features)}."
            )
        return self.features.index(name)

    @property
    def maturity(self) -> float | None:
        """The window after which a label is complete, in seconds."""
        return None if self.maturity_days is None else self.maturity_days * DAY

    @property
    def digest(self) -> str:
        """A fingerprint of the whole promise: a ledger that was written under another one is not
        continued.
        """
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    def learner(self) -> CertifiedLearner:
        """A fresh learner under this promise."""
        return CertifiedLearner(
            self.hypothesis_class,
            as_rates(self.rates),
            self.limit,
            self.delta,
            prices=Prices(self.price_false_accept, self.price_false_reject),
            group_use=self.group_use,
            audit_budget=self.audit_budget,
            maturity=self.maturity,
            fallback=self.fallback,
            groups=self.groups,
            seed=self.seed,
        )


@dataclass(frozen=True)
class Settings:
    """Everything that the process needs to know."""

    products: tuple[Product, ...]
    ledger: str = "ledger.sqlite"
    keyring: str = "keyring.json"
    keys: str = "keys.json"
    window_days: float = 30.0
    host: str = "127.0.0.1"
    port: int = 8377
    allowed_hosts: tuple[str, ...] = ()
    plain_http: bool = False
    tls_certificate: str | None = None
    tls_key: str | None = None
    max_body: int = 2 * 2**20
    max_depth: int = 12
    rate: float = 500.0
    burst: float = 1000.0
    train_every: float = 2.0
    open_dashboard: bool = field(default=False)
    """Only for the demo: the dashboard without a key, which `require_safe_address` allows on
    loopback alone.
    """

    def __post_init__(self) -> None:
        names = [(product.tenant, product.name) for product in self.products]
        if not names or len(set(names)) < len(names):
            raise InvalidInput("the service needs at least one product, and no product twice.")


def load_settings(path: Path) -> Settings:
    """Read a TOML file; relative paths in it are relative to the file."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{path} is no TOML: {error}.", hint="docs/operating.md shows a file."
        ) from error
    products = tuple(_product(table) for table in document.pop("product", []))
    service = _named(Settings, document.pop("service", {}), "[service]")
    if document:
        raise InvalidInput(
            f"{path} has the unknown part {next(iter(document))!r}; it knows [service] and [[product]]."
        )
    for name, default in (
        ("ledger", "ledger.sqlite"),
        ("keyring", "keyring.json"),
        ("keys", "keys.json"),
    ):
        service[name] = _beside(path, service.get(name, default))
    for name in ("tls_certificate", "tls_key"):
        if name in service:
            service[name] = _beside(path, service[name])
    return Settings(products=products, **service)


def _product(table: Json) -> Product:
    if "class" in table:
        table["hypotheses"] = table.pop("class")
    return Product(**_named(Product, table, "[[product]]"))


def _named(record: type, table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The table with lists as tuples; unknown names are refused, not ignored."""
    known = {part.name for part in fields(record)}
    for name in table:
        if name not in known:
            raise InvalidInput(
                f"{where} has the unknown setting {name!r}; it knows {', '.join(sorted(known))}."
            )
    return {name: tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
            for name, value in table.items()}  # fmt: skip


def _beside(path: Path, name: str) -> str:
    return name if "://" in name else str(path.parent / name)
