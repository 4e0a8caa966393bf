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
import io
import json
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from evenhand.contracts import Json
from evenhand.errors import InvalidInput, NotSerialisable, install_hint

__all__ = ["TRUSTED_PACKAGES", "StoredModel", "load_model", "store_model", "trusting"]

TRUSTED_PACKAGES = (
    *("sklearn", "numpy", "scipy", "lightgbm", "xgboost", "catboost", "pandas", "collections"),
)
"""Packages whose types are loaded without being named: installed by the reader, known to all."""

MISSING_MODELS = (
    "models are saved with skops, which is not installed; a certificate names a model by its "
    "saved bytes."
)
_READERS = ("read_", "load", "from", "gen", "memmap", "eval", "query", "open", "save", "to_")
FIRST_TIME = (1980, 1, 1, 0, 0, 0)


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
    types = sio.get_untrusted_types(data=stored.data)  # of the bytes, not what the record claims
    strange = [name for name in types if name not in allowed and not _is_trusted(name)]
    if strange:
        raise InvalidInput(
            f"a stored model contains {', '.join(strange)}; only types of "
            f"{', '.join(TRUSTED_PACKAGES)} and those you name are loaded, since loading a type "
            "runs its code.",
            hint=f"if you know where the file comes from: trusted={strange!r}.",
        )
    return sio.loads(stored.data, trusted=types)


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
