"""What the operator settles before the service starts: where files lie, which products are decided
about, and what is promised for each.

`load_settings` reads them from a TOML file; `docs/operating.md` shows one. The promise of a product
(limit, delta, class, seed and the rest) is fingerprinted in every published policy.
"""

import hashlib
import json
import tomllib
from collections.abc import Callable
from dataclasses import asdict, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import ConfigDict, Field, Strict, ValidationError, WrapValidator
from pydantic.dataclasses import dataclass

from evenhand.contracts import GroupUse, HypothesisClass
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import RATES, as_rates
from evenhand.hypotheses import ScoreThresholds
from evenhand.hypotheses.named import CLASSES
from evenhand.learners import CertifiedLearner
from evenhand.words import Prices

DAY = 86400.0
"""Seconds."""
Record = TypeVar("Record")
Names = Annotated[tuple[str, ...], Strict(False)]
Positive = Annotated[float, Field(gt=0)]
STRICT = ConfigDict(strict=True, extra="forbid")


def _keep(value: Any, check: Callable[[Any], float]) -> Any:
    check(value)
    return value


Kept = Annotated[float, WrapValidator(_keep)]
"""A number that stays a whole number if it came as one: 5 and 5.0 have different fingerprints."""


def _refusing(part: str) -> Callable[[type[Record]], type[Record]]:
    """Let the constructor of a record say in our words what pydantic refuses."""

    def decorate(record: type[Record]) -> type[Record]:
        checked: Callable[..., None] = record.__init__

        @wraps(checked)
        def init(self: Record, *values: Any, **named: Any) -> None:
            try:
                checked(self, *values, **named)
            except ValidationError as error:
                raise _refusal(part, record, error) from None

        record.__init__ = init  # type: ignore[method-assign, assignment]
        return record

    return decorate


def _refusal(part: str, record: Any, error: ValidationError) -> InvalidInput:
    first = error.errors()[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InvalidInput):
        return cause
    name = str(first["loc"][0])
    if first["type"] == "unexpected_keyword_argument":
        known = ", ".join(sorted(field.name for field in fields(record)))
        return InvalidInput(f"{part} has the unknown setting {name!r}; it knows {known}.")
    if first["type"] in ("missing", "missing_argument"):
        return InvalidInput(
            f"{part} lacks the setting {name!r}.", hint="docs/operating.md shows a file."
        )
    law = first["msg"].removeprefix("Input ").removeprefix("Value ")
    return InvalidInput(
        f"{name} of {part} is {first['input']!r}; it {law}.",
        hint="docs/operating.md describes the settings.",
    )


@_refusing("[[product]]")
@dataclass(frozen=True, config=STRICT)
class Product:
    """One product of one tenant, and the promise under which it is decided.

    Parameters
    ----------
    tenant : str
        Who offers the product. Keys, decisions and policies of tenants are apart.
    name : str
        The name of the product; the same name may be used by another tenant.
    features : tuple of str
        The names of the features, in the order in which policies see them.
    hypotheses : str
        The class of rules: "stumps", "thresholds" or "linear"; `class` in the file.
    score : str, optional
        The feature that "thresholds" look at; the first one by default.
    rates : tuple of str
        The rates whose gaps are limited: "fpr", "fnr", "selection".
    limit : float
        The gap that no published policy may exceed.
    delta : float
        The probability with which the promise may fail.
    maturity_days : float, optional
        The days after which the outcome of a person counts as complete.
    group_use : {"certify_only", "decide"}
        Whether rules may look at the group.
    groups : tuple, optional
        The groups, if they are known beforehand; necessary where they decide.
    fallback : {"accept", "reject"}
        The constant that decides where no learned policy may.
    price_false_accept, price_false_reject : float
        What the two errors cost.
    prices_per_person : bool
        Whether every application brings its own prices, which the two above bound.
    audit_budget : float, optional
        The cost that may be spent on accepting people at random.
    seed : int
        The seed of the learner.

    Raises
    ------
    InvalidInput
        If a setting is unknown or missing, or breaks its law.

    Examples
    --------
    >>> loan = Product("bank", "loan", ("score", "income"), limit=0.1, maturity_days=30)
    >>> loan.maturity
    2592000.0
    >>> Product("bank", "loan", ("score",), limit="low")
    Traceback (most recent call last):
        ...
    evenhand.errors.InvalidInput: limit of [[product]] is 'low'; it should be a valid number. ...
    """

    tenant: str
    name: str
    features: Names
    hypotheses: str = "stumps"
    score: str | None = None
    rates: Names = ("fpr",)
    limit: Kept = 0.05
    delta: Kept = 0.05
    maturity_days: Kept | None = None
    group_use: GroupUse = "certify_only"
    groups: Annotated[tuple[Any, ...] | None, Strict(False)] = None
    fallback: Literal["accept", "reject"] = "accept"
    price_false_accept: Kept = 1.0
    price_false_reject: Kept = 1.0
    prices_per_person: bool = False
    audit_budget: Kept | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.features or len(set(self.features)) < len(self.features):
            raise InvalidInput(
                f"product {self.name!r} needs at least one feature, each named once."
            )
        if not self.rates or any(rate not in RATES for rate in self.rates):
            raise InvalidInput(
                f"product {self.name!r} names the rates {self.rates}; known are {', '.join(RATES)}."
            )
        if self.group_use == "decide" and not self.groups:
            raise InvalidInput(
                f"product {self.name!r} decides by group, so its groups must be listed."
            )
        self.learner()  # refuses what is wrong with the rest

    @property
    def hypothesis_class(self) -> HypothesisClass:
        """The class of rules from which a policy is learned."""
        if self.hypotheses == "thresholds":
            if self.score is not None and self.score not in self.features:
                raise InvalidInput(
                    f"score is {self.score!r}, but the features are {', '.join(self.features)}."
                )
            column = 0 if self.score is None else self.features.index(self.score)
            return ScoreThresholds(column, per_group=self.group_use == "decide")
        if self.hypotheses not in ("stumps", "linear"):
            raise InvalidInput(
                f"hypotheses is {self.hypotheses!r}; the service knows stumps, thresholds, linear."
            )
        return CLASSES[self.hypotheses]()

    @property
    def maturity(self) -> float | None:
        """The seconds after which the outcome of a person counts as complete, or None."""
        return None if self.maturity_days is None else self.maturity_days * DAY

    @property
    def digest(self) -> str:
        """The fingerprint of the promise; a ledger that was written under another one is not
        continued. It is stored, so its JSON stays as it is (with spaces, unlike `canonical`).
        """
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    def learner(self) -> CertifiedLearner:
        """Make a new learner under this promise.

        Returns
        -------
        CertifiedLearner
            A learner that has seen nobody.
        """
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


@_refusing("[service]")
@dataclass(frozen=True, config=STRICT)
class Settings:
    """Everything that one process of the service needs to know.

    Parameters
    ----------
    products : tuple of Product
        What is decided about; at least one, none twice.
    ledger : str
        A path (SQLite, for one process) or the URL of a PostgreSQL database.
    keyring, keys : str
        The files with the secrets of the ledger and with the API keys.
    window_days : float
        How long somebody who applies again meets the same coin.
    host, port : str, int
        Where the service listens.
    allowed_hosts : tuple of str
        Names besides those of this machine for which the service answers; "*" means any.
    plain_http : bool
        Whether HTTP may be spoken beyond this machine, behind a proxy that ends TLS.
    tls_certificate, tls_key : str, optional
        The files for TLS.
    max_body, max_depth : int
        The bytes of a request body, and how deeply its JSON may be nested.
    rate, burst : float
        Requests of one key: so many a second, and so many at once.
    train_every : float
        The seconds between two looks of the trainer.
    open_dashboard : bool
        Only for the demonstration: show the dashboard without a key, on this machine alone.

    Raises
    ------
    InvalidInput
        If a setting is unknown or missing, or breaks its law.

    Examples
    --------
    >>> settings = Settings((Product("bank", "loan", ("score",)),), port=9000)
    >>> settings.host, settings.port
    ('127.0.0.1', 9000)
    """

    products: Annotated[tuple[Product, ...], Strict(False)]
    ledger: str = "ledger.sqlite"
    keyring: str = "keyring.json"
    keys: str = "keys.json"
    window_days: Positive = 30.0
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8377
    allowed_hosts: Names = ()
    plain_http: bool = False
    tls_certificate: str | None = None
    tls_key: str | None = None
    max_body: Annotated[int, Field(ge=1)] = 2 * 2**20
    max_depth: Annotated[int, Field(ge=1)] = 12
    rate: Positive = 500.0
    burst: Positive = 1000.0
    train_every: Positive = 2.0
    open_dashboard: bool = False

    def __post_init__(self) -> None:
        names = [(product.tenant, product.name) for product in self.products]
        if not names or len(set(names)) < len(names):
            raise InvalidInput("the service needs at least one product, and no product twice.")


def load_settings(path: Path) -> Settings:
    """Read the settings from a TOML file.

    Parameters
    ----------
    path : Path
        The file. Relative paths in it are relative to its directory.

    Returns
    -------
    Settings
        The settings, with the defaults for what the file does not say.

    Raises
    ------
    InvalidInput
        If the file is no TOML, or a setting is unknown, missing or breaks its law.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "service.toml"
    >>> _ = file.write_text('[[product]]\\ntenant = "bank"\\nname = "loan"\\nfeatures = ["score"]')
    >>> load_settings(file).products[0].limit
    0.05
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{path} is no TOML: {error}.", hint="docs/operating.md shows a file."
        ) from error
    tables, service = document.pop("product", []), document.pop("service", {})
    if document:
        raise InvalidInput(
            f"{path} has the unknown part {next(iter(document))!r}; "
            "it knows [service] and [[product]]."
        )
    files = {"ledger": "ledger.sqlite", "keyring": "keyring.json", "keys": "keys.json"}
    for name, value in (files | service).items():
        # a file lies beside the settings; a database has a URL
        is_file = name in (*files, "tls_certificate", "tls_key") and isinstance(value, str)
        if is_file and "://" not in value:
            service[name] = str(path.parent / value)
    products = [
        Product(**{"hypotheses" if name == "class" else name: v for name, v in table.items()})
        for table in tables
    ]
    return Settings(products=tuple(products), **service)
