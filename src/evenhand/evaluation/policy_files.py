"""A policy file, as `evenhand solve --save` writes it: the policy, the schema of the raw table and
how it becomes the numbers that the policy sees, and what the outcome, the group, the limit and the
prices were.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evenhand.contracts import Json, Params, Policy
from evenhand.errors import InvalidInput
from evenhand.hypotheses import policy_from_json
from evenhand.schema import Schema
from evenhand.tables import Recipe, recipe_from_json, schema_of

HINT = "evenhand solve ... --save policy.json writes one."


def read_document(path: Path) -> Json:
    """The JSON object in a file that should hold a policy."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InvalidInput(
            f"{path} is no policy file: it is no JSON ({error}).", hint=HINT
        ) from error
    if not isinstance(document, dict):
        held = type(document).__name__
        raise InvalidInput(
            f"{path} is no policy file: it holds a {held}, which does not say a policy.", hint=HINT
        )
    return document


@dataclass(frozen=True, eq=False)
class PolicyFile:
    """A policy with what is needed to use it on a new table.

    Parameters
    ----------
    policy : Policy
        The policy.
    recipe : tuple of RecipeColumn
        How the columns of a new table become its features.
    source : str
        The file.
    document : mapping
        All that the file says.

    Examples
    --------
    >>> from evenhand.policies import Mixture
    >>> from evenhand.hypotheses import ACCEPT_ALL
    >>> PolicyFile(Mixture((ACCEPT_ALL,), (1.0,)), (), "policy.json").group is None
    True
    """

    policy: Policy
    recipe: Recipe
    source: str
    document: Params = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path | str) -> "PolicyFile":
        """Read a policy file.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        PolicyFile
            What it holds.

        Raises
        ------
        InvalidInput
            If there is no such file, or if it holds no policy with its columns.
        """
        where = Path(path)
        if not where.is_file():
            raise InvalidInput(f"there is no policy file {str(where)!r}.", hint=HINT)
        document = read_document(where)
        absent = [name for name in ("policy", "columns", "schema") if name not in document]
        if absent:
            raise InvalidInput(f"{where} is no policy file: it has no {absent[0]!r}.", hint=HINT)
        names = document["columns"]
        recipe = recipe_from_json(document)
        width = sum(len(one.names) for one in recipe)
        if width != len(names):
            raise InvalidInput(
                f"{where}: the recipe makes {width} columns, and the policy has {len(names)}.",
                hint=HINT,
            )
        return cls(policy_from_json(document["policy"]), recipe, where.name, document)

    @property
    def schema(self) -> Schema:
        """The columns of the raw table that the policy was made with."""
        return schema_of(self.recipe)

    @property
    def columns(self) -> list[str]:
        """The columns that the rules of the policy look at, with the words for their values."""
        named = {str(name): name for column in self.recipe for name in column.names}
        return [named.get(str(name), str(name)) for name in self.document.get("columns", ())]

    def _said(self, part: str, key: str) -> str | None:
        value = self.document.get(part)
        said = value.get(key) if isinstance(value, Mapping) else None
        return None if said is None else str(said)

    @property
    def reading(self) -> dict[str, tuple[str, ...]]:
        """How the table that the policy was made with writes a missing value, as `read_frame` takes
        it; empty for the usual ways.
        """
        said = self.document.get("missing")
        return {"missing": tuple(map(str, said))} if isinstance(said, list) else {}

    @property
    def label(self) -> str | None:
        """The column of the outcome."""
        return self._said("label", "column")

    @property
    def good(self) -> str | None:
        """The good outcome."""
        return self._said("label", "good")

    @property
    def group(self) -> str | None:
        """The column of the group."""
        return self._said("group", "column")

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of the table that the policy was made with; none if the file is silent."""
        said = self.document.get("group")
        values = said.get("values") if isinstance(said, Mapping) else None
        return tuple(map(str, values)) if isinstance(values, list) else ()

    def spelled(self, groups: Iterable[str]) -> list[str]:
        """Spell groups as the policy does: a difference in case alone makes no other group.

        Parameters
        ----------
        groups : iterable of str
            The groups of a new table.

        Returns
        -------
        list of str
            The same groups, those that the policy does not know unchanged.
        """
        known = {name.casefold(): name for name in self.groups}
        same = set(self.groups)
        return [one if one in same else known.get(one.casefold(), one) for one in groups]

    @property
    def uses_group(self) -> bool:
        """Whether the group may influence a decision."""
        return self._said("group", "use") == "decide"

    @property
    def prices(self) -> tuple[float, float] | None:
        """The prices of a false accept and of a false reject; None if they stand in columns."""
        try:
            said = self.document.get("prices", {})
            return float(said.get("false_accept", 1)), float(said.get("false_reject", 1))
        except ValueError:
            return None
