"""A policy file, as `evenhand solve --save` writes it: the policy, the schema of the raw table and
how it becomes the numbers that the policy sees, and what the outcome, the group, the limit and the
prices were.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from evenhand.contracts import Json, Params, Policy
from evenhand.errors import InvalidInput
from evenhand.fairness.certificate import Certificate
from evenhand.hypotheses import policy_from_json
from evenhand.schema import Schema
from evenhand.tables import Recipe, recipe_from_json, recipe_to_json, schema_of

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
    """A policy with what is needed to use it on a new table, and to know what it is worth.

    Parameters
    ----------
    policy : Policy
        The policy.
    recipe : tuple of RecipeColumn
        How the columns of a new table become its features.
    source : str
        The file.
    names : tuple of str
        The names of its features.
    label, good : str, optional
        The column of the outcome, and its good value.
    group : str, optional
        The column of the group.
    group_use : str
        What the group is for.
    groups : tuple of str
        The groups of the table that the policy was made with.
    rules : mapping
        The class that its rules are of.
    limit : float, optional
        The limit.
    limited_rates : tuple of str
        The symbols of the rates that it is for.
    stated_prices : mapping
        What errors cost, as it was typed: numbers, or names of columns.
    table : str, optional
        The table that the policy was made with, and `people`, how many stood in it.
    people : int, optional
        See `table`.
    missing : tuple of str, optional
        How that table writes a missing value, where that is not the usual way.
    cost : float, optional
        What it costs per person there.
    certificate : Certificate, optional
        What was certified.
    note : str
        What is claimed, in words.
    figures : mapping
        What else is told to a reader; nothing of it is needed to use the policy.

    Examples
    --------
    >>> from evenhand.policies import Mixture
    >>> from evenhand.hypotheses import ACCEPT_ALL
    >>> from evenhand.tables import Notation, RecipeColumn
    >>> recipe = (RecipeColumn("age", Notation("number")),)
    >>> policy = Mixture((ACCEPT_ALL,), (1.0,))
    >>> file = PolicyFile(policy, recipe, "policy.json", names=("age",), limit=0.1)
    >>> again = PolicyFile.from_json(file.to_json(), "policy.json")
    >>> again.limit, again.group is None
    (0.1, True)
    """

    policy: Policy
    recipe: Recipe
    source: str
    names: tuple[str, ...] = ()
    label: str | None = None
    good: str | None = None
    group: str | None = None
    group_use: str = "certify_only"
    groups: tuple[str, ...] = ()
    rules: Params = field(default_factory=dict)
    limit: float | None = None
    limited_rates: tuple[str, ...] = ()
    stated_prices: Params = field(default_factory=dict)
    table: str | None = None
    people: int | None = None
    missing: tuple[str, ...] | None = None
    cost: float | None = None
    certificate: Certificate | None = None
    note: str = ""
    figures: Params = field(default_factory=dict)

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
        try:
            return cls.from_json(read_document(where), where.name)
        except InvalidInput:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(
                f"{where} is no policy file: {type(error).__name__}: {error}.", hint=HINT
            ) from error

    @classmethod
    def from_json(cls, document: Json, source: str) -> "PolicyFile":
        """Read what `to_json` wrote.

        Parameters
        ----------
        document : dict
            The document.
        source : str
            The file that it stood in.

        Returns
        -------
        PolicyFile
            The same record.

        Raises
        ------
        InvalidInput
            If it is no policy with its columns.
        """
        absent = [name for name in ("policy", "columns", "schema") if name not in document]
        if absent:
            raise InvalidInput(f"{source} is no policy file: it has no {absent[0]!r}.", hint=HINT)
        names = tuple(map(str, document["columns"]))
        recipe = recipe_from_json(document)
        width = sum(len(one.names) for one in recipe)
        if width != len(names):
            raise InvalidInput(
                f"{source}: the recipe makes {width} columns, and the policy has {len(names)}.",
                hint=HINT,
            )
        label = document.get("label", {})
        group = document.get("group", {})
        table = document.get("table", {})
        missing = document.get("missing")
        certificate = document.get("certificate")
        return cls(
            policy_from_json(document["policy"]),
            recipe,
            source,
            names=names,
            label=label.get("column"),
            good=label.get("good"),
            group=group.get("column"),
            group_use=group.get("use", "certify_only"),
            groups=tuple(map(str, group.get("values", ()))),
            rules=document.get("class", {}),
            limit=document.get("limit"),
            limited_rates=tuple(document.get("limited_rates", ())),
            stated_prices=document.get("prices", {}),
            table=table.get("file"),
            people=table.get("people"),
            missing=None if missing is None else tuple(map(str, missing)),
            cost=document.get("cost_per_person"),
            certificate=None if certificate is None else Certificate.from_json(certificate),
            note=document.get("note", ""),
            figures=document.get("figures", {}),
        )

    def to_json(self) -> Json:
        """The record as plain JSON: the one document of a policy that is used again.

        Returns
        -------
        dict
            `PolicyFile.from_json` reads it; `policy_from_json(document["policy"])` the policy
            alone.
        """
        known = {
            "limit": self.limit,
            "missing": None if self.missing is None else list(self.missing),
            "cost_per_person": self.cost,
            "certificate": None if self.certificate is None else self.certificate.to_json(),
        }
        return {
            "evenhand": version("evenhand"),
            "policy": self.policy.to_json(),
            "in_words": self.policy.describe(self.columns).splitlines(),
            "columns": list(self.names),
            **recipe_to_json(self.recipe),
            "label": {"column": self.label, "good": self.good},
            "group": {"column": self.group, "use": self.group_use, "values": list(self.groups)},
            "class": dict(self.rules),
            "limited_rates": list(self.limited_rates),
            "prices": dict(self.stated_prices),
            "table": {"file": self.table, "people": self.people},
            **{name: value for name, value in known.items() if value is not None},
            "note": self.note,
            "figures": dict(self.figures),
        }

    @property
    def schema(self) -> Schema:
        """The columns of the raw table that the policy was made with."""
        return schema_of(self.recipe)

    @property
    def columns(self) -> list[str]:
        """The columns that the rules of the policy look at, with the words for their values."""
        named = {str(name): name for column in self.recipe for name in column.names}
        return [named.get(name, name) for name in self.names]

    @property
    def reading(self) -> dict[str, tuple[str, ...]]:
        """How the table that the policy was made with writes a missing value, as `read_frame` takes
        it; empty for the usual ways.
        """
        return {} if self.missing is None else {"missing": self.missing}

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
        return self.group_use == "decide"

    @property
    def prices(self) -> tuple[float, float] | None:
        """The prices of a false accept and of a false reject; None if they stand in columns."""
        try:
            said = self.stated_prices
            return float(said.get("false_accept", 1)), float(said.get("false_reject", 1))
        except ValueError:
            return None
