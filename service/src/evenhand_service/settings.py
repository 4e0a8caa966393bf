"""What the operator settles before the service starts: where files lie, which products are decided
about, and what is guaranteed for each.

`load_settings` reads them from a TOML file; `service/docs/settings.md` has them all. The guarantee
of a product (limit, delta, class, seed and the rest) is fingerprinted in every published policy.
"""

import hashlib
import io
import ipaddress
import re
import sys
import tomllib
import zipfile
from collections.abc import Callable
from dataclasses import asdict, fields
from functools import cache, cached_property, wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import ConfigDict, Field, Strict, ValidationError, WrapValidator
from pydantic.dataclasses import dataclass

from evenhand.canonical import canonical_digest
from evenhand.contracts import GroupUse, HypothesisClass, Json
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import RATES, as_rates
from evenhand.hypotheses import CLASSES, Estimator, ScoreThresholds
from evenhand.hypotheses.models import StoredModel, load_model, store_model
from evenhand.learners import CertifiedLearner, Quota
from evenhand.schema import Column, Schema
from evenhand.words import Group, Prices
from evenhand_service.ledger.decision_draw import is_printable
from evenhand_service.ledger.postgres import parsed, without_secrets
from evenhand_service.ledger.witness import witness_of

DAY = 86400.0
"""Seconds."""
Record = TypeVar("Record")
Names = Annotated[tuple[str, ...], Strict(False)]
Positive = Annotated[float, Field(gt=0, lt=1e12)]
STRICT = ConfigDict(strict=True, extra="forbid")


def _keep(value: object, check: Callable[[object], float]) -> object:
    check(value)
    return value


Kept = Annotated[float, WrapValidator(_keep)]
"""A number that stays a whole number if it came as one: 5 and 5.0 have different fingerprints."""


def _refusing(part: str) -> Callable[[type[Record]], type[Record]]:
    """Let the constructor of a record say in our words what pydantic refuses."""

    def decorate(record: type[Record]) -> type[Record]:
        checked: Callable[..., None] = record.__init__

        @wraps(checked)
        def init(self: Record, *values: object, **named: object) -> None:
            try:
                checked(self, *values, **named)
            except ValidationError as error:
                raise _refusal(part, record, error) from None

        record.__init__ = init  # type: ignore[method-assign, assignment]
        return record

    return decorate


def _refusal(part: str, record: type, error: ValidationError) -> InvalidInput:
    first = error.errors()[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InvalidInput):
        return cause
    name = str(first["loc"][0])
    if first["type"] == "unexpected_keyword_argument":
        known = ", ".join(sorted(field.name for field in fields(record)))
        return InvalidInput(
            f"{part} has the unknown setting {name!r}; it knows {known}.",
            hint="correct its name, or leave it out.",
        )
    if first["type"] in ("missing", "missing_argument"):
        return InvalidInput(
            f"{part} lacks the setting {name!r}.", hint="service/docs/settings.md has them all."
        )
    requirement = first["msg"].removeprefix("Input ").removeprefix("Value ")
    if first["type"] == "tuple_type":
        requirement = "should be a list of texts"
    return InvalidInput(
        f"{name} of {part} is {_shown(first['input'])}; it {requirement}.",
        hint=WAYS_OUT.get(name, "service/docs/settings.md has them all."),
    )


DATABASES = ("postgresql", "postgresql+psycopg", "postgres")
WAYS_OUT = {
    "rate": "requests a second that one key may send, such as 500.",
    "burst": "requests that one key may send at once, such as 1000.",
    "window_days": "days in which somebody who comes back meets the same coin, such as 30.",
    "port": "a free port, such as 8377; 0 lets the system choose one.",
    "host": '"127.0.0.1" for this machine alone, "0.0.0.0" for all networks.',
    "allowed_hosts": 'names as in a Host header, such as ["decisions.bank.example"]; "*" is any.',
    "ledger": 'a path, such as "ledger.sqlite", or a URL "postgresql://user@host/database".',
    "keyring": 'a path, such as "keyring.json".',
    "train_every": "seconds between two looks of the trainer, such as 2.",
    "max_body": "bytes, such as 2097152; a batch of 1,000 needs about 200,000.",
    "bytes_per_second": "bytes of bodies that one key may send in a second, such as 8388608.",
    "name": "a short name, such as loan.",
    "features": 'the names of the features, such as ["score", "income"].',
}
"""What to write instead, by the name of the setting."""


def _shown(value: object) -> str:
    """A value as a message may show it; a URL may hold a password, wherever it was put."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_shown(part)}' for name, part in value.items())}}}"
    return repr(without_secrets(value) if isinstance(value, str) else value)


def _require(part: str, name: str, value: object, requirement: str, *, holds: bool) -> None:
    if not holds:
        raise InvalidInput(
            f"{name} of {part} is {_shown(value)}; it should be {requirement}.", hint=WAYS_OUT[name]
        )


def _is_name(text: str) -> bool:
    return 0 < len(text) <= 200 and is_printable(text) and text.strip() == text


@_refusing("[[product]]")
@dataclass(frozen=True, config=STRICT)
class Product:
    """One product, and the guarantee under which it is decided.

    Parameters
    ----------
    name : str
        The name of the product.
    features : tuple of str
        The names of the features, in the order in which policies see them.
    hypotheses : str
        The class of rules: "stumps", "thresholds", "linear", "tree", or "estimator", a model of
        your own. `class` in the file.
    score : str, optional
        The feature that "thresholds" look at; the first one by default.
    rates : tuple of str
        The rates whose gaps are limited: "fpr", "fnr", "selection".
    limit : float
        How far the rates of two groups may differ, for every policy that is deployed.
    delta : float
        Probability that the limit is ever exceeded, over the whole run.
    maturity_days : float, optional
        Days after which the outcome of a person counts as complete: a label that has not come by
        then counts as the worst case. Without it an epoch closes as soon as it is full, and every
        label that has not come by then counts so: give it, unless outcomes come at once.
    group_use : {"certify_only", "decide"}
        Whether rules may look at the group ("decide") or only the certificate does.
    groups : tuple, optional
        The groups, if they are known beforehand; necessary where they decide.
    fallback : {"accept", "reject"}
        The constant that decides where no learned policy may.
    price_false_accept : float
        What it costs to accept somebody whose outcome is bad.
    price_false_reject : float
        What it costs to reject somebody whose outcome is good.
    prices_per_person : bool
        Whether every application brings its own prices, whose sum is at most that of the two.
    audit_budget : float, optional
        How many people who were accepted at random may be bad, or may yet turn out to be: a hard
        count, for every outcome that may still come.
    accept_at_most : float, optional
        Every policy accepts at most this share of all applicants.
    accept_at_least : float, optional
        Every policy accepts at least this share of all applicants.
    quota : int, optional
        How many people may be accepted in a period; a hard count, for all replicas together.
    quota_days : float
        The days of a period; periods begin at midnight UTC.
    quota_people : float, optional
        About how many people come in a period, for spreading the quota over it.
    seed : int
        Seed of the random draws of planning; the coins are the ledger's own.
    columns : dict, optional
        What features hold that are no plain numbers: for a name the parts of an
        `evenhand.schema.Column`, such as kind, categories and missing. In the file these may stand
        among the features: ``features = ["age", {name = "city", kind = "text", missing = true}]``.
    model : str, optional
        For the class "estimator": "package.module:object", a classifier or pipeline or a function
        that makes one, or the path of a file that skops wrote.
    trusted : tuple of str
        Full names of types beyond scikit-learn's that a skops file, or a model in the ledger, may
        hold.

    Raises
    ------
    InvalidInput
        If a setting is unknown or missing, or breaks its requirement.

    Examples
    --------
    >>> loan = Product("loan", ("score", "income"), limit=0.1, maturity_days=30)
    >>> loan.maturity
    2592000.0
    >>> Product("loan", ("score",), limit="low")
    Traceback (most recent call last):
        ...
    evenhand.errors.InvalidInput: limit of [[product]] is 'low'; it should be a valid number. ...
    """

    name: str
    features: Names
    hypotheses: str = "stumps"
    score: str | None = None
    rates: Names = ("fpr",)
    limit: Kept = 0.05
    delta: Kept = 0.05
    maturity_days: Kept | None = None
    group_use: GroupUse = "certify_only"
    groups: Annotated[tuple[Group, ...] | None, Strict(False)] = None
    fallback: Literal["accept", "reject"] = "accept"
    price_false_accept: Kept = 1.0
    price_false_reject: Kept = 1.0
    prices_per_person: bool = False
    audit_budget: Kept | None = None
    accept_at_most: Kept | None = None
    accept_at_least: Kept | None = None
    quota: int | None = None
    quota_days: Kept = 1.0
    quota_people: Kept | None = None
    seed: int = 0
    columns: Annotated[dict[str, dict[str, Any]] | None, Strict(False)] = None
    model: str | None = None
    trusted: Names = ()

    def __post_init__(self) -> None:
        requirement = "printable text of 1 to 200 characters without spaces around it"
        _require("[[product]]", "name", self.name, requirement, holds=_is_name(self.name))
        for feature in self.features:
            _require("[[product]]", "features", feature, requirement, holds=_is_name(feature))
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
        strange = [name for name in self.columns or {} if name not in self.features]
        if strange:
            raise InvalidInput(
                f"columns of product {self.name!r} describes {strange[0]!r}, which is no feature.",
                hint=f"the features are {', '.join(self.features)}.",
            )
        if (self.hypotheses == "estimator") != (self.model is not None):
            raise InvalidInput(
                f"product {self.name!r} has the class {self.hypotheses!r} and the model "
                f"{self.model!r}; a model belongs to the class estimator, and the other way round.",
                hint='class = "estimator" and model = "package.module:object" or "model.skops".',
            )
        self.learner()  # refuses what is wrong with the rest
        self.model_version  # noqa: B018 - read with the model, before somebody edits its file

    @property
    def hypothesis_class(self) -> HypothesisClass:
        """The class of rules from which a policy is learned."""
        if self.hypotheses == "thresholds":
            if self.schema is not None:
                self.schema.require_plain("the class thresholds")
            if self.score is not None and self.score not in self.features:
                raise InvalidInput(
                    f"score is {self.score!r}, but the features are {', '.join(self.features)}."
                )
            column = 0 if self.score is None else self.features.index(self.score)
            return ScoreThresholds(column, per_group=self.group_use == "decide")
        if self.model is not None:
            return Estimator(own_model(self.model, self.trusted), self.schema)
        if self.schema is not None and self.hypotheses in CLASSES:
            made = CLASSES[self.hypotheses]()
            if isinstance(made, Estimator):
                return made.reading(self.schema)
            self.schema.require_plain(f"the class {self.hypotheses}")
        if self.hypotheses not in CLASSES:
            raise InvalidInput(
                f"class is {self.hypotheses!r}; the classes known here are {', '.join(CLASSES)}.",
                hint='a model of your own is class = "estimator" with model = "my_model:pipeline".',
            )
        return CLASSES[self.hypotheses]()

    @property
    def maturity(self) -> float | None:
        """The seconds after which the outcome of a person counts as complete, or None."""
        return None if self.maturity_days is None else self.maturity_days * DAY

    @property
    def hard_quota(self) -> Quota | None:
        """How many people may be accepted in a period of so many seconds, or None."""
        if self.quota is None:
            return None
        return Quota(self.quota, self.quota_days * DAY, self.quota_people)

    @property
    def digest(self) -> str:
        """The fingerprint of the guarantee; a ledger that was written under another one is not
        continued.
        """
        return canonical_digest(self.guarantee)

    @property
    def guarantee(self) -> Json:
        """Everything that gives what is stored its meaning, as plain JSON; `product_changes`
        compares it. Which model is fitted stands elsewhere (`ModelVersion`): each policy is
        certified by people who came after it was fixed, whatever wrote it.
        """
        settled = asdict(self)
        del settled["model"]
        del settled["trusted"]
        if not settled["columns"]:
            del settled["columns"]
        if self.schema is not None:
            settled["columns"] = self.schema.to_json()
        return settled

    @cached_property
    def model_version(self) -> Json | None:
        """Which model of one's own is fitted now; None without one. It stands in every policy that
        is published, and may change from one start to the next.

        id : what the log and `fitted_by` of a policy call it
        name : "package.module:object", or the name of the file
        source_sha256 : of the file of the module, or of the skops file; None where there is none
        parameters_sha256 : of the model before it is fitted, as skops writes it
        """
        if self.model is None:
            return None
        unfitted = own_model(self.model, self.trusted)
        named = MODULE.fullmatch(self.model) is not None
        if named:
            found = getattr(sys.modules[self.model.partition(":")[0]], "__file__", None)
            source = None if found is None else Path(found).read_bytes()
        else:
            source = _archive(self.model)
        version: Json = {
            "name": self.model if named else Path(self.model).name,
            "source_sha256": None if source is None else hashlib.sha256(source).hexdigest(),
            "parameters_sha256": store_model(unfitted).sha256,
        }
        return {"id": canonical_digest(version)[:12], **version}

    @cached_property
    def schema(self) -> Schema | None:
        """What the features hold; None where all are plain numbers for rules on numbers."""
        if not self.columns and self.model is None:
            return None
        parts = self.columns or {}
        try:
            return Schema(tuple(Column(name, **parts.get(name, {})) for name in self.features))
        except TypeError as error:
            raise InvalidInput(
                f"columns of product {self.name!r} cannot be read: {error}.",
                hint="a column has kind, categories, missing, unseen, ordered, length and dtype.",
            ) from None

    @property
    def width(self) -> int:
        """How many numbers of the matrix a person takes."""
        return len(self.features) if self.schema is None else self.schema.width

    @property
    def slots(self) -> tuple[str, ...]:
        """The name of the feature to which each number of the matrix belongs."""
        return self.features if self.schema is None else self.schema.slots

    def learner(self) -> CertifiedLearner:
        """Make a new learner under this guarantee.

        Returns
        -------
        CertifiedLearner
            A learner that has seen nobody.
        """
        learner = CertifiedLearner(
            self.hypothesis_class,
            as_rates(self.rates),
            self.limit,
            self.delta,
            prices=Prices(self.price_false_accept, self.price_false_reject),
            group_use=self.group_use,
            audit_budget=self.audit_budget,
            accept_at_most=self.accept_at_most,
            accept_at_least=self.accept_at_least,
            quota=self.hard_quota,
            maturity=self.maturity,
            fallback=self.fallback,
            groups=self.groups,
            seed=self.seed,
        )
        learner.toss_fresh_coins()  # the seed is for planning: coins are the ledger's
        return learner


MODULE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def _archive(path: str) -> bytes:
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InvalidInput(
            f"the model {path!r} cannot be read: {error.strerror}.",
            hint='name a file that skops wrote, or "package.module:object".',
        ) from None
    if not zipfile.is_zipfile(io.BytesIO(data)):
        raise InvalidInput(
            f"the model {path!r} is no skops file; a pickle or a joblib file is never loaded, "
            "since loading it runs whatever code is in it.",
            hint="skops.io.dump(model, file) writes one.",
        )
    return data


@cache
def own_model(name: str, trusted: tuple[str, ...] = ()) -> Any:
    """Load a model of one's own.

    Parameters
    ----------
    name : str
        "package.module:object", or the path of a file that skops wrote.
    trusted : tuple of str
        Full names of types beyond scikit-learn's that the file may hold.

    Returns
    -------
    object
        A classifier or a pipeline. Something that has no `fit`, or is a class, is called first.

    Raises
    ------
    InvalidInput
        If it cannot be imported or read, or holds a type that is not trusted.

    Examples
    --------
    >>> own_model("sklearn.naive_bayes:GaussianNB")
    GaussianNB()
    """
    if not MODULE.fullmatch(name):
        data = _archive(name)
        try:
            stored = StoredModel(data, (), hashlib.sha256(data).hexdigest())
            return load_model(stored, trusted)
        except InvalidInput as refusal:
            raise InvalidInput(
                f"the model {name!r}: {refusal.sentence}",
                hint="name its types under trusted, if you know where it comes from.",
            ) from refusal
        except Exception as error:
            raise InvalidInput(
                f"the model {name!r} is no file that skops can read: {error}.",
                hint="skops.io.dump(model, file) writes one.",
            ) from error
    module, _, path = name.partition(":")
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise InvalidInput(
            f"the model {name!r} cannot be imported: {error}.",
            hint="put the module beside the settings, or install its package.",
        ) from error
    return found() if isinstance(found, type) or not hasattr(found, "fit") else found


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
    keyring : str
        The file with the secrets of the ledger, a variable ("env:NAME"), or a command that prints
        them ("command:...").
    window_days : float
        How long somebody who applies again meets the same coin.
    host : str
        The address at which the service listens.
    port : int
        The port at which it listens; 0 lets the system choose one.
    allowed_hosts : tuple of str
        Names besides those of this machine for which the service answers; "*" means any.
    behind_proxy : bool
        Whether a proxy stands in front, which ends TLS and keeps slow clients away; without one the
        service stays on this machine.
    four_eyes : bool
        Whether a kill, a rollback, an erasure and a settlement need two keys: they are done when
        another key sends the same request within an hour.
    max_body : int
        Most bytes of a request body; nginx's client_max_body_size should be the same.
    bytes_per_second : float
        Bytes a second of all bodies of one key; twice as many at once.
    max_connections : int
        Connections at once; beyond them, 503.
    rate : float
        Requests a second of one key.
    burst : float
        Requests of one key at once.
    train_every : float
        Seconds between two looks of the trainer at whether an epoch is due.
    refresh_limit : float
        The seconds after which a replica that could not look at the ledger refuses to decide.
    idle_transaction_seconds : float
        After how many seconds of silence PostgreSQL ends a transaction of this process, so that
        other replicas go on; from 0.1 to 300. Too short, a starved machine loses transactions.
    witnesses : tuple of dict
        Where signed heads of the ledger go by themselves; `[[witness]]` in the file.
    witness_seconds : float
        After how many seconds the next head goes out.
    witness_required_seconds : float, optional
        Draw nothing when no witness has taken a head for so long; without it, nothing waits.
    proxy_header : str, optional
        The header by which an authenticating proxy names the person in front of the dashboard.
        Off by default.
    proxy_addresses : tuple of str
        Addresses or networks of the proxy in front: from anywhere else neither X-Forwarded-For nor
        the header of proxy_header is believed.
    open_dashboard : bool
        Only for the demonstration: show the dashboard without a key, on this machine alone.
    log_requests : bool
        Whether one line of JSON is written for each request, to standard error; no person, key or
        group is in it.
    traces : bool
        Whether spans go to an OpenTelemetry collector; needs the extra "traces". The variables of
        OpenTelemetry say where it is, such as OTEL_EXPORTER_OTLP_ENDPOINT.

    Raises
    ------
    InvalidInput
        If a setting is unknown or missing, or breaks its requirement.

    Examples
    --------
    >>> settings = Settings((Product("loan", ("score",)),), port=9000)
    >>> settings.host, settings.port
    ('127.0.0.1', 9000)
    """

    products: Annotated[tuple[Product, ...], Strict(False)]
    ledger: str = "ledger.sqlite"
    keyring: str = "keyring.json"
    window_days: Positive = 30.0
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8377
    allowed_hosts: Names = ()
    behind_proxy: bool = False
    four_eyes: bool = False
    max_body: int = 2 * 2**20
    bytes_per_second: Positive = 8.0 * 2**20
    max_connections: Annotated[int, Field(ge=1)] = 2000
    rate: Positive = 500.0
    burst: Positive = 1000.0
    train_every: Positive = 2.0
    refresh_limit: Positive = 30.0
    idle_transaction_seconds: Positive = 3.0
    witnesses: Annotated[tuple[dict[str, Any], ...], Strict(False)] = ()
    witness_seconds: Positive = 60.0
    witness_required_seconds: Positive | None = None
    proxy_header: str | None = None
    proxy_addresses: Names = ()
    open_dashboard: bool = False
    log_requests: bool = True
    traces: bool = False

    def __post_init__(self) -> None:
        names = [product.name for product in self.products]
        for table in self.witnesses:
            witness_of(table)  # refuses what is wrong with it
        if self.witness_required_seconds is not None and not self.witnesses:
            raise InvalidInput(
                f"witness_required_seconds is {self.witness_required_seconds:g}, "
                "but there is no [[witness]].",
                hint="add one; service/docs/settings.md has both kinds.",
            )
        if not names or len(set(names)) < len(names):
            raise InvalidInput(
                "the service needs at least one product, and no product twice.",
                hint="write a [[product]] for each, with a name of its own.",
            )
        texts = {name: str(getattr(self, name)) for name in ("ledger", "keyring", "host")}
        database = texts["ledger"].split("://")[0] in DATABASES
        requirements = [
            ("window_days", "at least 0.001 and at most 36500", 1e-3 <= self.window_days <= 36500),
            ("burst", "at least 1, or no request would pass", self.burst >= 1),
            ("max_body", "at least 1024", self.max_body >= 1024),
            (
                "idle_transaction_seconds",
                "at least 0.1 and at most 300",
                0.1 <= self.idle_transaction_seconds <= 300,
            ),
            ("train_every", "at most 86400, one day", self.train_every <= DAY),
            ("host", "an address or a name", _is_name(self.host) and " " not in self.host),
            ("ledger", "a path or a URL of PostgreSQL", database or "://" not in self.ledger),
            *((name, "no empty text", bool(value.strip())) for name, value in texts.items()),
        ]
        for name, requirement, holds in requirements:
            _require("[service]", name, getattr(self, name), requirement, holds=holds)
        if database:
            parsed(self.ledger)  # refuses what is wrong with it
        for host in self.allowed_hosts:
            plain = _is_name(host) and not set(host.replace("[::1]", "")) & set("/:@ ")
            requirement = "the name of a host alone, without scheme, port or path"
            _require("[service]", "allowed_hosts", host, requirement, holds=plain)
        self._require_safe_proxy()

    @property
    def ledger_file(self) -> Path | None:
        """The file of a SQLite ledger; None for one in PostgreSQL."""
        return None if "://" in self.ledger else Path(self.ledger)

    @property
    def keyring_file(self) -> Path | None:
        """The file of the keyring; None where a variable or a command gives it."""
        return None if self.keyring.startswith(("env:", "command:")) else Path(self.keyring)

    def _require_safe_proxy(self) -> None:
        for address in self.proxy_addresses:
            try:
                network = ipaddress.ip_network(address)
            except ValueError as error:
                raise InvalidInput(
                    f"proxy_addresses has {address!r}; it must be an address or a network.",
                    hint='write "10.0.0.5" or "10.0.0.0/28".',
                ) from error
            if network.prefixlen < 8:
                raise InvalidInput(
                    f"proxy_addresses has {address!r}: half of the world could name itself.",
                    hint="list the addresses of the proxy alone.",
                )
        if self.proxy_header is None:
            return
        if not re.fullmatch(r"[A-Za-z0-9-]+", self.proxy_header):
            raise InvalidInput(
                f"proxy_header is {self.proxy_header!r}; it must be the name of a header.",
                hint='for instance "X-Auth-Request-Email".',
            )
        if not self.proxy_addresses:
            raise InvalidInput(
                f"proxy_header is {self.proxy_header!r}, but proxy_addresses is empty: "
                "anybody could send it.",
                hint="list the addresses of the proxy.",
            )


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
        If the file is no TOML, or a setting is unknown, missing or breaks its requirement.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "service.toml"
    >>> _ = file.write_text('[[product]]\\nname = "loan"\\nfeatures = ["score"]')
    >>> load_settings(file).products[0].limit
    0.05
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{path} is no TOML: {error}.", hint="service/docs/settings.md has them all."
        ) from error
    tables = document.pop("product", [])
    service = document.pop("service", {})
    witnesses = document.pop("witness", [])
    if document:
        raise InvalidInput(
            f"{path} has the unknown part {next(iter(document))!r}; "
            "it knows [service], [[product]] and [[witness]]."
        )
    files = {"ledger": "ledger.sqlite", "keyring": "keyring.json"}
    for name, value in (files | service).items():
        # a file lies beside the settings; a database has a URL
        is_file = name in files and isinstance(value, str)
        if is_file and "://" not in value and not value.startswith(("env:", "command:")):
            service[name] = str(path.parent / value)
    for table in witnesses:
        if "path" in table:
            table["path"] = str(path.parent / table["path"])
        service["witnesses"] = [*service.get("witnesses", []), table]
    products = [Product(**_product_settings(table, path.parent)) for table in tables]
    return Settings(products=tuple(products), **service)


def _product_settings(table: Json, folder: Path) -> Json:
    """The parts of a [[product]]: described features apart, files beside the settings."""
    found = {"hypotheses" if name == "class" else name: value for name, value in table.items()}
    given = found.get("features")
    if isinstance(given, list):
        described = [one for one in given if isinstance(one, dict)]
        for one in described:
            if "name" not in one:
                raise InvalidInput(f"the feature {one!r} of [[product]] has no name.")
        found["features"] = [one["name"] if isinstance(one, dict) else one for one in given]
        columns = {
            one["name"]: {part: value for part, value in one.items() if part != "name"}
            for one in described
        }
        if columns:
            found["columns"] = columns | found.get("columns", {})
    model = found.get("model")
    if isinstance(model, str) and MODULE.fullmatch(model):
        if str(folder.absolute()) not in sys.path:
            sys.path.append(str(folder.absolute()))  # last, so that it hides no package
    elif isinstance(model, str):
        found["model"] = str(folder / model)
    return found
