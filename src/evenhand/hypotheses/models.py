"""Fitted models as bytes: saved with skops, never with pickle, and named by what they contain.

skops writes an archive of a ``schema.json`` and the arrays it refers to; loading it calls no code
but that of the types it lists. Addresses of objects and times of writing are replaced by numbers in
the order of their first mention and by one fixed time, so storing one object twice gives the same
bytes and the same sha256, by which policies refer to the model. A model that was loaded may be laid
out differently in memory, so it is not written again: who loads it keeps its `StoredModel`.

A type is loaded only if it belongs to a package of `TRUSTED_PACKAGES` or is named by the reader.
"""

import base64
import hashlib
import inspect
import io
import json
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.contracts import Json
from evenhand.errors import InvalidInput, NotSerialisable, install_hint

__all__ = [
    "TRUSTED_PACKAGES",
    "StoredModel",
    "UnreadableModel",
    "load_model",
    "store_model",
    "trusting",
]

TRUSTED_PACKAGES = (
    *("sklearn", "numpy", "scipy", "lightgbm", "xgboost", "catboost", "pandas", "collections"),
)
"""Packages whose types are loaded without being named: installed by the reader, known to all."""

MISSING_MODELS = (
    "models are saved with skops, which is not installed; a certificate names a model by its "
    "saved bytes."
)
RENAMED = {
    # (module, name) in archives of older versions of scikit-learn -> what stands for it everywhere
    ("sklearn.compose._column_transformer", "_RemainderColsList"): ("collections", "UserList"),
    ("_loss", None): ("sklearn._loss._loss", None),
}
"""Types that have moved or gone, which skops names in the archives of usual pipelines."""
NOT_GIVEN = ("deprecated", "warn")
"""What versions of scikit-learn write as a setting that nobody has given."""
_READERS = ("read_", "load", "from", "gen", "memmap", "eval", "query", "open", "save", "to_")
FIRST_TIME = (1980, 1, 1, 0, 0, 0)


class UnreadableModel(InvalidInput):
    """The bytes of a model are sound and may be read, but this installation cannot.

    Examples
    --------
    >>> issubclass(UnreadableModel, InvalidInput)
    True
    """


@dataclass(frozen=True)
class StoredModel:
    """A fitted model as bytes.

    Parameters
    ----------
    data : bytes
        A skops archive.
    types : tuple of str
        The types in it that skops itself does not trust; see `load_model`.
    sha256 : str
        The hash of ``data``, by which policies refer to the model.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier(max_depth=1).fit([[0.0], [1.0]], [0, 1])
    >>> store_model(tree).sha256 == store_model(tree).sha256
    True
    """

    data: bytes
    types: tuple[str, ...]
    sha256: str

    def to_json(self) -> Json:
        """Write the archive in base64, beside its hash and its types.

        Returns
        -------
        dict
            Plain JSON.
        """
        data = base64.b64encode(self.data).decode()
        return {"format": "skops", "sha256": self.sha256, "types": list(self.types), "data": data}

    @classmethod
    def from_json(cls, data: Json) -> "StoredModel":
        """Read what `to_json` wrote.

        Parameters
        ----------
        data : dict
            As it was written.

        Returns
        -------
        StoredModel
            The model; its hash is checked by `load_model`.
        """
        if data["format"] != "skops":
            raise InvalidInput(f"a model of format {data['format']!r} is unknown; skops is known.")
        return cls(base64.b64decode(data["data"]), tuple(data["types"]), data["sha256"])


def store_model(model: object) -> StoredModel:
    """Write a fitted model as bytes.

    Parameters
    ----------
    model : object
        A fitted scikit-learn estimator or pipeline, or a LightGBM or XGBoost classifier.

    Returns
    -------
    StoredModel
        The bytes, their hash, and the types in them.

    Raises
    ------
    NotSerialisable
        If skops cannot write it.
    InvalidInput
        If skops is not installed.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> stored = store_model(LogisticRegression().fit([[0.0], [1.0]], [0, 1]))
    >>> float(load_model(stored).predict([[0.9]])[0])
    1.0
    """
    sio = require_skops()
    try:
        archive = sio.dumps(model)
        types = tuple(sorted(sio.get_untrusted_types(data=archive)))
        sio.loads(archive, trusted=types)  # a lambda is written, and cannot be read
    except Exception as error:
        raise NotSerialisable(
            f"a {type(model).__name__} cannot be saved: {error}.",
            hint="models of scikit-learn, LightGBM and XGBoost can; functions and open files in a "
            "pipeline cannot (use a class at the top level of a module instead of a lambda).",
        ) from error
    data = _canonical_archive(archive)
    return StoredModel(data, types, hashlib.sha256(data).hexdigest())


def load_model(stored: StoredModel, trusted: Iterable[str] = ()) -> Any:
    """Read a model back.

    Parameters
    ----------
    stored : StoredModel
        As `store_model` wrote it.
    trusted : iterable of str
        Full names of further types that may be loaded, as they stand in ``stored.types``.

    Returns
    -------
    object
        The fitted model.

    Raises
    ------
    InvalidInput
        If the bytes do not have the hash, or contain a type that is not trusted.
    UnreadableModel
        If the installed version of a library cannot read what another one wrote.

    Notes
    -----
    Settings that the installed version has and the one that wrote the model had not are as by
    default.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> stored = store_model(LogisticRegression().fit([[0.0], [1.0]], [0, 1]))
    >>> load_model(StoredModel(stored.data, stored.types, "0" * 64))
    Traceback (most recent call last):
        ...
    evenhand.errors.InvalidInput: a stored model has the hash ...
    """
    sio = require_skops()
    actual = hashlib.sha256(stored.data).hexdigest()
    if actual != stored.sha256:
        raise InvalidInput(
            f"a stored model has the hash {actual}, but it is referred to as {stored.sha256}; its "
            "bytes were changed or exchanged.",
            hint="restore the file from a backup.",
        )
    allowed = {*trusted, *_trusted.get(), "functools.partial"}  # a partial names its function, too
    data = _with_present_names(stored.data)
    try:
        types = sio.get_untrusted_types(data=data)  # of the bytes, not what the record claims
    except Exception as error:  # whatever skops raises for types that are not there
        raise _unreadable(error) from error
    strange = [name for name in types if name not in allowed and not _is_trusted(name)]
    if strange:
        raise InvalidInput(
            f"a stored model contains {', '.join(strange)}; only types of "
            f"{', '.join(TRUSTED_PACKAGES)} and those you name are loaded, since loading a type "
            "runs its code.",
            hint=f"if you know where the file comes from: trusted={strange!r}.",
        )
    try:
        model = sio.loads(data, trusted=types)
    except Exception as error:  # whatever constructors raise for the state of another version
        raise _unreadable(error) from error
    _fill_defaults(model)
    return model


def _unreadable(error: Exception) -> UnreadableModel:
    return UnreadableModel(
        f"a stored model cannot be read by the libraries that are installed: {error}",
        hint="install the versions with which it was written.",
    )


def _with_present_names(archive: bytes) -> bytes:
    """The same archive with the names that types have now."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as source:
            text = source.read("schema.json")
            if not any(module.encode() in text for module, _ in RENAMED):
                return archive
            parts = {name: source.read(name) for name in source.namelist()}
    except (zipfile.BadZipFile, KeyError):
        return archive  # skops says what is wrong with it

    def rename(node: object) -> None:
        for item in node if isinstance(node, list) else ():
            rename(item)
        if isinstance(node, dict):
            own = (node.get("__module__"), node.get("__class__"))
            found = RENAMED.get(own) or RENAMED.get((own[0], None))  # type: ignore[arg-type]
            if found is not None:
                node["__module__"] = found[0]
                node["__class__"] = found[1] or own[1]
            for item in node.values():
                rename(item)

    schema = json.loads(text)
    rename(schema)
    parts["schema.json"] = json.dumps(schema).encode()
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in parts.items():
            target.writestr(name, content)
    return written.getvalue()


def defaults_of(kind: type) -> dict[str, object]:
    """The settings of a kind of model in the version that is installed, where they have a default.

    >>> from sklearn.dummy import DummyClassifier
    >>> defaults_of(DummyClassifier)["strategy"]
    'prior'
    """
    settings = inspect.signature(kind.__init__).parameters  # type: ignore[misc]
    return {
        name: one.default
        for name, one in settings.items()
        if one.default is not inspect.Parameter.empty
    }


def _fill_defaults(model: Any) -> None:
    """Settings of a model, and of the models inside it, which the version that wrote it did not
    have, or which nobody has given: the default of the installed version.
    """
    waiting: list[Any] = [model]
    seen = set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, list | tuple | set):
            waiting += one
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, np.ndarray):
            waiting += one.ravel().tolist() if one.dtype == object else []
        elif hasattr(one, "get_params") and hasattr(one, "__dict__"):
            for name, default in defaults_of(type(one)).items():
                value = vars(one).get(name, NOT_GIVEN[0])
                if isinstance(value, str) and value in NOT_GIVEN:
                    with suppress(AttributeError):  # a property of that name
                        setattr(one, name, default)
            if hasattr(one, "_fit_dtype") and not hasattr(one, "_fill_dtype"):
                one._fill_dtype = one._fit_dtype  # SimpleImputer before scikit-learn 1.8
            waiting += vars(one).values()


def _is_trusted(name: str) -> bool:
    """Whether a type belongs to a trusted package; the functions of numpy and pandas that read
    files, pickles included, or texts as programs are none.
    """
    package = name.split(".")[0]
    own = name.rsplit(".", 1)[-1]
    return package in TRUSTED_PACKAGES and not (
        package in ("numpy", "pandas") and own.startswith(_READERS)
    )


_trusted: ContextVar[frozenset[str]] = ContextVar("trusted", default=frozenset())


@contextmanager
def trusting(types: Iterable[str]) -> Iterator[None]:
    """Inside the `with`, models that hold these types may be loaded.

    Parameters
    ----------
    types : iterable of str
        Their full names.

    Examples
    --------
    >>> with trusting(["my_package.MyEncoder"]):
    ...     pass  # policy_from_json(...)
    """
    if isinstance(types, str):
        raise InvalidInput(f"trusted is the text {types!r}.", hint=f"trusted=[{types!r}].")
    token = _trusted.set(_trusted.get() | frozenset(types))
    try:
        yield
    finally:
        _trusted.reset(token)


def require_skops() -> Any:
    """The library that saves models; InvalidInput with the way out if it is not installed."""
    try:
        import skops.io
    except ImportError as error:
        raise InvalidInput(MISSING_MODELS, hint=install_hint("models")) from error
    return skops.io


def _canonical_archive(archive: bytes) -> bytes:
    """The same archive with objects numbered in the order of their first mention, and no times."""
    with zipfile.ZipFile(io.BytesIO(archive)) as source:
        schema = json.loads(source.read("schema.json"))
        numbers: dict[int, int] = {}
        files: dict[str, str] = {}

        def renumber(node: object) -> None:
            if isinstance(node, list):
                for item in node:
                    renumber(item)
            elif isinstance(node, dict):
                if isinstance(node.get("__id__"), int):
                    node["__id__"] = numbers.setdefault(node["__id__"], len(numbers))
                name = node.get("file")
                if isinstance(name, str) and "." in name:
                    ending = name[name.rindex(".") :]
                    node["file"] = files.setdefault(name, f"{len(files)}{ending}")
                for item in node.values():
                    renumber(item)

        renumber(schema)
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as target:
            parts = {new: source.read(old) for old, new in files.items()}
            parts["schema.json"] = json.dumps(schema, indent=1).encode()
            for name, content in parts.items():
                target.writestr(zipfile.ZipInfo(name, FIRST_TIME), content)
    return written.getvalue()
