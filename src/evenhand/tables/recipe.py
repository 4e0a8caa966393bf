"""The recipe from the columns of a raw table to the numbers that a policy sees.

It is made when a table is encoded, stored in the policy file, and followed to the letter for every
new table: columns are found by name in any order, numbers are read in the notation they had, and a
category keeps the 0/1 columns it had. A column that is not there, a value that is missing and a
category that the policy has never seen are refused, or settled by an option.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evenhand.contracts import Json, Params
from evenhand.errors import InvalidInput, MissingColumn
from evenhand.schema import Column, Kind, Schema
from evenhand.shown import Brief
from evenhand.tables.column import PLAIN, Notation, Written, listed
from evenhand.tables.frame import Frame, Recipe, RecipeColumn
from evenhand.words import BoolArray, FloatArray

KINDS: Mapping[str, Kind] = {"number": "number", "flag": "boolean", "date": "number"}
"""Notations and the kinds of a column that a `Schema` has for them."""


def schema_of(recipe: Recipe) -> Schema:
    """Tell the schema of the raw table that a recipe reads.

    Parameters
    ----------
    recipe : tuple of RecipeColumn
        The columns.

    Returns
    -------
    Schema
        The same columns with their kinds; a category has all its values, the one without a 0/1
        column first.

    Examples
    --------
    >>> recipe = (RecipeColumn("age", PLAIN), RecipeColumn("sex", None, ("m",), "f"))
    >>> schema_of(recipe).describe()
    'age (number), sex (category of 2)'
    """
    return Schema(
        tuple(
            Column(one.name, KINDS[one.notation.kind])
            if one.notation is not None
            else Column(
                one.name, "category", (*(() if one.base is None else (one.base,)), *one.categories)
            )
            for one in recipe
        )
    )


def recipe_to_json(recipe: Recipe) -> Json:
    """Write a recipe as plain JSON: the schema of the raw table, and what it does not say.

    Parameters
    ----------
    recipe : tuple of RecipeColumn
        The columns.

    Returns
    -------
    dict
        "schema", the columns as a `Schema` writes them; "notation", how the numbers of each are
        written; "encoded_columns", the 0/1 columns of each category.

    Examples
    --------
    >>> written = recipe_to_json((RecipeColumn("city", categories=("Bern", "Ulm")),))
    >>> written["schema"]["columns"][0]["categories"], written["encoded_columns"]
    (['Bern', 'Ulm'], {'city': ['city=Bern', 'city=Ulm']})
    """
    return {
        "schema": schema_of(recipe).to_json(),
        "notation": {
            one.name: one.notation.to_json() for one in recipe if one.notation is not None
        },
        "encoded_columns": {
            one.name: [f"{one.name}={value}" for value in one.categories]
            for one in recipe
            if one.notation is None
        },
    }


def recipe_from_json(document: Params | Sequence[Params]) -> Recipe:
    """Read a recipe back.

    Parameters
    ----------
    document : dict or list of dict
        What `recipe_to_json` wrote; a list is what it wrote before policy files had a schema.

    Returns
    -------
    tuple of RecipeColumn
        The columns.

    Raises
    ------
    InvalidInput
        If it is no recipe.

    Examples
    --------
    >>> recipe_from_json([{"name": "city", "kind": "category", "categories": ["Bern"]}])[0].name
    'city'
    """
    try:
        if not isinstance(document, Mapping):
            return tuple(
                RecipeColumn(
                    str(one["name"]), None, tuple(map(str, one["categories"])), one.get("base")
                )
                if one["kind"] == "category"
                else RecipeColumn(str(one["name"]), Notation.from_json(one["notation"]))
                for one in document
            )
        recipe, notation = [], document["notation"]
        for column in Schema.from_json(document["schema"]).columns:
            if column.kind != "category":
                recipe.append(RecipeColumn(column.name, Notation.from_json(notation[column.name])))
                continue
            shown = set(document["encoded_columns"][column.name])
            every = tuple(map(str, column.categories))
            values = tuple(v for v in every if f"{column.name}={v}" in shown)
            left = [v for v in every if v not in values]
            recipe.append(RecipeColumn(column.name, None, values, next(iter(left), None)))
        return tuple(recipe)
    except (KeyError, TypeError) as error:
        raise InvalidInput(
            f"the recipe of the policy cannot be read ({error!r}).",
            hint="evenhand solve ... --out policy.json writes one.",
        ) from error


def recipe_of_names(names: Sequence[str], encoded: Mapping[str, Sequence[str]]) -> Recipe:
    """Make the recipe of a policy file of an earlier version, which names its columns only.

    Parameters
    ----------
    names : sequence of str
        The columns that the policy sees.
    encoded : mapping of str to sequence of str
        Which text column became which of them.

    Returns
    -------
    tuple of RecipeColumn
        The columns.

    Examples
    --------
    >>> [c.name for c in recipe_of_names(["age", "sex=f"], {"sex": ["sex=f"]})]
    ['age', 'sex']
    """
    owner = {column: name for name, several in encoded.items() for column in several}
    recipe: dict[str, RecipeColumn] = {}
    for column in names:
        name = owner.get(column, column)
        if name == column:
            recipe[name] = RecipeColumn(name, PLAIN)
        else:
            values = tuple(one.removeprefix(f"{name}=") for one in encoded[name])
            recipe[name] = RecipeColumn(name, None, values)
    return tuple(recipe.values())


@dataclass(frozen=True, eq=False, repr=False)
class PreparedTable(Brief):
    """The rows of a new table as a policy sees them.

    Parameters
    ----------
    features : array of float
        The numbers of the complete rows.
    complete : array of bool
        Which rows of the table they are.
    notes : tuple of str
        What was done on the way, in words.

    Examples
    --------
    >>> PreparedTable(np.zeros((1, 2)), np.array([True, False])).complete.tolist()
    [True, False]
    """

    features: FloatArray
    complete: BoolArray
    notes: tuple[str, ...] = ()


def prepare(
    frame: Frame,
    recipe: Recipe,
    *,
    drop_missing: bool = False,
    unseen: Literal["refuse", "ignore"] = "refuse",
) -> PreparedTable:
    """Follow a recipe on a new table.

    Parameters
    ----------
    frame : Frame
        The new table; other columns than those of the recipe are ignored.
    recipe : tuple of RecipeColumn
        The columns.
    drop_missing : bool
        Whether rows with a missing value are left out; otherwise they are refused.
    unseen : {"refuse", "ignore"}
        What is done with a category that the recipe does not know: refuse the table, or let the
        person have none of the known ones.

    Returns
    -------
    PreparedTable
        The numbers, and the rows they belong to.

    Raises
    ------
    InvalidInput
        If a column or a value is missing, or a value cannot be read as the recipe says.

    Examples
    --------
    >>> from evenhand.tables import TableColumn
    >>> frame = Frame("new", {"city": TableColumn(("Ulm",)), "age": TableColumn(("7",))}, (2,))
    >>> recipe = (RecipeColumn("age", PLAIN), RecipeColumn("city", categories=("Bern", "Ulm")))
    >>> prepare(frame, recipe).features.tolist()
    [[7.0, 0.0, 1.0]]
    """
    gaps = _rows_with_gaps(frame, recipe)
    if gaps.any() and not drop_missing:
        row = int(np.argmax(gaps))
        name = next(one.name for one in recipe if frame.columns[one.name].missing[row])
        raise InvalidInput(
            f"{frame.source}: the value of {name!r} is missing in row {row + 1} (line "
            f"{frame.lines[row]}); {gaps.sum():,} of {len(frame.lines):,} rows lack a value.",
            hint="fill them in, or add --drop-missing: nothing is decided about these rows.",
        )
    kept, notes = frame.where(~gaps), []
    if gaps.any():
        notes.append(f"{gaps.sum():,} rows with a missing value were left out")
    parts: list[FloatArray] = []
    for column in recipe:
        if column.notation is not None:
            parts.append(_numbers(kept, column.name, column.notation))
        else:
            known = (*column.categories, *(() if column.base is None else (column.base,)))
            indicators, strange = _indicators(kept, column, known)
            parts += indicators
            if strange and unseen == "refuse":
                raise InvalidInput(
                    f"{frame.source}: {column.name!r} holds {listed(map(repr, strange))}, which "
                    f"the policy has never seen; it knows {listed(known, 10)}.",
                    hint="correct the values, or add --unseen ignore: these people then have none "
                    "of the known values.",
                )
            if strange:
                notes.append(
                    f"{column.name!r}: {listed(strange)} is none of the values that the policy "
                    "knows"
                )
    return PreparedTable(np.column_stack(parts), ~gaps, tuple(notes))


def _rows_with_gaps(frame: Frame, recipe: Recipe) -> BoolArray:
    """Which rows lack a value of a column of the recipe; every such column must be there."""
    absent = [column.name for column in recipe if column.name not in frame.columns]
    if absent:
        raise MissingColumn(
            f"{frame.source} has no column {', '.join(map(repr, absent))}, which the policy was "
            f"made with; it has: {', '.join(frame.columns)}.",
            hint=frame.missing_hint(absent[0]),
        )
    return np.asarray(np.any([frame.columns[column.name].missing for column in recipe], axis=0))


def _indicators(
    frame: Frame, column: RecipeColumn, known: tuple[str, ...]
) -> tuple[list[FloatArray], list[str]]:
    """The 0/1 columns of a category, and the values that the policy has never seen."""
    folded = {value.casefold(): value for value in known}
    texts = [str(text) for text in frame.columns[column.name].texts]
    values = np.array([folded.get(text.casefold(), "") for text in texts])
    told = column.base is not None or len(column.categories) > 1  # older files do not tell the base
    strange = sorted({text for text in texts if text.casefold() not in folded}) if told else []
    return [(values == value).astype(np.float64) for value in column.categories], strange


def _numbers(frame: Frame, name: str, notation: Notation) -> FloatArray:
    """A column of numbers: in its own notation if that means the same, else as the recipe says."""
    column = frame.columns[name]
    own, units = column.notation, {notation.unit, column.currency} - {None}
    if len(units) > 1:
        raise InvalidInput(
            f"{frame.source}: the amounts of {name!r} are in {column.currency}; the policy was "
            f"made with amounts in {notation.unit}.",
            hint=f"convert them to {notation.unit} first.",
        )
    if own is None or (own.kind, own.percent) != (notation.kind, notation.percent):
        fixed = replace(column, written=replace(column.written or Written(), fixed=notation))
        if fixed.numbers is None:
            raise InvalidInput(
                f"{frame.source}: {name!r} is not written as in the table that the policy was "
                f"made with: {fixed.doubt}.",
                hint="write it in the same way: dates as dates, percent with a sign, and so on.",
            )
        if own is None and notation.kind == "number":
            # Refuse numbers in two currencies, and a comma whose meaning neither file shows: plain
            # numbers have the notation with a decimal point too, so that only a decimal comma is
            # known from before.
            if notation.decimal == ",":
                written = column.written or Written()
                column = replace(column, written=replace(written, decimal=written.decimal or ","))
            if column.doubt is not None:
                raise InvalidInput(
                    f"{frame.source}: {name!r} cannot be read as numbers: {column.doubt}."
                )
        frame = replace(frame, columns={**frame.columns, name: fixed})
    return frame.finite(name)
