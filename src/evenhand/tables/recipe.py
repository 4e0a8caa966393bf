"""The recipe from the columns of a raw table to the numbers that a policy sees.

It is made when a table is encoded, stored in the policy file, and followed to the letter for every
new table: columns are found by name in any order, numbers are read in the notation they had, and a
category keeps the 0/1 columns it had. A column that is not there, a value that is missing and a
category that the policy has never seen are errors, or settled by an argument.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evenhand.contracts import Json, Params
from evenhand.errors import InvalidInput, MissingColumn, raise_all
from evenhand.policies import SourceColumn
from evenhand.schema import Column, Kind, Schema
from evenhand.shown import Brief, counted
from evenhand.tables.column import Notation, NumberFormat, listed
from evenhand.tables.frame import (
    MISSING_VALUE,
    Frame,
    Gaps,
    Note,
    Recipe,
    RecipeColumn,
    filled_numbers,
)
from evenhand.words import BoolArray, FloatArray

KINDS: Mapping[str, Kind] = {"number": "number", "flag": "boolean", "date": "number"}
"""Notations and the kinds of a column that a `Schema` has for them."""


def schema_of(recipe: Recipe) -> Schema:
    """Return the schema of the raw table that a recipe reads.

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
    >>> recipe = (RecipeColumn("age", Notation("number")), RecipeColumn("sex", None, ("m",), "f"))
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
        written; "encoded_columns", the 0/1 columns of each category; "filled", what stands for a
        missing number.

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
        "encoded_columns": {one.name: list(one.names) for one in recipe if one.notation is None},
        "filled": {one.name: one.fill for one in recipe if one.fill is not None},
    }


def recipe_from_json(document: Params) -> Recipe:
    """Read a recipe back.

    Parameters
    ----------
    document : dict
        What `recipe_to_json` wrote.

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
    >>> recipe = (RecipeColumn("city", categories=("Bern", "Ulm")),)
    >>> recipe_from_json(recipe_to_json(recipe)) == recipe
    True
    """
    try:
        recipe = []
        notation = document["notation"]
        filled = document["filled"]
        for column in Schema.from_json(document["schema"]).columns:
            if column.kind != "category":
                written = Notation.from_json(notation[column.name])
                recipe.append(RecipeColumn(column.name, written, fill=filled.get(column.name)))
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
            hint="the command `evenhand solve` writes one.",
        ) from error


def source_columns(recipe: Recipe) -> tuple[SourceColumn, ...]:
    """The columns of the raw table, and which numbers of a row stand for each.

    Parameters
    ----------
    recipe : tuple of RecipeColumn
        The columns.

    Returns
    -------
    tuple of SourceColumn
        One for each column of the table: the 0/1 columns of a category belong together.

    Examples
    --------
    >>> recipe = (RecipeColumn("age", Notation("number")), RecipeColumn("sex", None, ("m",), "f"))
    >>> [(one.name, one.place, one.kind) for one in source_columns(recipe)]
    [('age', slice(0, 1, None), 'number'), ('sex', slice(1, 2, None), 'name')]
    >>> filled = (RecipeColumn("age", Notation("number"), fill=40.0), recipe[1])
    >>> [one.place for one in source_columns(filled)]
    [slice(0, 1, None), slice(1, 2, None), slice(2, 3, None)]
    """
    found = []
    start = 0
    for one in recipe:
        if one.notation is None:
            width = len(one.categories)
            ones = np.eye(width)
            options = [(value, tuple(ones[k])) for k, value in enumerate(one.categories)]
            if one.base is not None:
                options.insert(0, (one.base, (0.0,) * width))
            place = slice(start, start + width)
            found.append(SourceColumn(one.name, place, "name", tuple(options)))
            start += width
            continue
        place = slice(start, start + 1)
        start += 1
        if one.notation.kind == "flag":
            found.append(SourceColumn(one.name, place, "name", (("no", (0.0,)), ("yes", (1.0,)))))
        else:
            found.append(SourceColumn(one.name, place, one.notation.kind))
        if one.fill is not None:
            # The mark of a missing number is a column that can be changed by itself.
            marked = slice(start, start + 1)
            given = (("no", (0.0,)), ("yes", (1.0,)))
            found.append(SourceColumn(f"{one.name} missing", marked, "name", given))
            start += 1
    return tuple(found)


@dataclass(frozen=True, eq=False, repr=False)
class PreparedTable(Brief):
    """The rows of a new table as a policy sees them.

    Parameters
    ----------
    features : array of float
        The numbers of the complete rows.
    complete : array of bool
        Which rows of the table they are.
    notes : tuple of Note
        What was done on the way.

    Examples
    --------
    >>> PreparedTable(np.zeros((1, 2)), np.array([True, False])).complete.tolist()
    [True, False]
    """

    features: FloatArray
    complete: BoolArray
    notes: tuple[Note, ...] = ()


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
        Whether rows with a missing value are left out; otherwise they are an error.
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
    >>> age = RecipeColumn("age", Notation("number"))
    >>> recipe = (age, RecipeColumn("city", categories=("Bern", "Ulm")))
    >>> prepare(frame, recipe).features.tolist()
    [[7.0, 0.0, 1.0]]
    """
    gaps = _rows_with_gaps(frame, recipe)
    errors: list[InvalidInput] = []
    if gaps.any() and not drop_missing:
        counts = Gaps.of(frame, [one.name for one in recipe if not one.may_be_missing])
        name = next(iter(counts.per_column))
        row = int(np.argmax(frame.columns[name].missing))
        errors.append(
            InvalidInput(
                f"{frame.source}: values are missing: {counts.describe()}; {gaps.sum():,} of "
                f"{len(frame):,} rows lack one, the first {name!r} in row {row + 1} (line "
                f"{frame.lines[row]}).",
                hint="fill them in, or leave these rows out (drop_missing): nothing is then "
                "decided about them. A policy that was made with fill_missing fills the blanks of "
                "columns that had some in its own table.",
                column=name,
                row=row,
                remedies=("drop_missing",),
            )
        )
    kept = frame.where(~gaps)
    notes = []
    if gaps.any():
        left_out = int(gaps.sum())
        were = "was" if left_out == 1 else "were"
        text = f"{counted(left_out, 'row', 'rows')} with a missing value {were} left out"
        notes.append(Note("missing values", text))
    parts: list[FloatArray] = []
    for column in recipe:
        if column.notation is not None:
            try:
                as_numbers = _as_numbers(kept, column.name, column.notation)
                parts += filled_numbers(as_numbers, column.name, column.fill)
            except InvalidInput as error:
                errors.append(error)
        else:
            indicators, strange = _indicators(kept, column)
            parts += indicators
            if strange and unseen == "refuse":
                errors.append(
                    InvalidInput(
                        f"{frame.source}: {column.name!r} holds {listed(map(repr, strange))}, "
                        f"which the policy has never seen; it knows {listed(column.known, 10)}.",
                        hint='correct the values; or with unseen="ignore" these people have none '
                        "of the known values.",
                        column=column.name,
                        argument="unseen",
                    )
                )
            if strange:
                text = (
                    f"{column.name!r}: {listed(strange)} is none of the values that the policy "
                    "knows"
                )
                notes.append(Note("unseen values", text, column.name))
    raise_all(errors)
    return PreparedTable(np.column_stack(parts), ~gaps, tuple(notes))


def _rows_with_gaps(frame: Frame, recipe: Recipe) -> BoolArray:
    """Which rows lack a value of a column of the recipe; every such column must be there."""
    absent = [column.name for column in recipe if column.name not in frame.columns]
    if absent:
        raise MissingColumn(
            f"{frame.source} has no column {', '.join(map(repr, absent))}, which the policy was "
            f"made with; it has: {', '.join(frame.columns)}.",
            hint=frame.missing_hint(absent[0]),
            column=absent[0],
            remedies=frame.missing_remedies(),
        )
    needed = [column.name for column in recipe if not column.may_be_missing]
    gaps = [frame.columns[name].missing for name in needed]
    return np.asarray(np.any(gaps, axis=0)) if gaps else np.zeros(len(frame), dtype=bool)


def _indicators(frame: Frame, column: RecipeColumn) -> tuple[list[FloatArray], list[str]]:
    """The 0/1 columns of a category, and the values that the policy has never seen."""
    folded = {value.casefold(): value for value in column.known}
    given = frame.columns[column.name].texts
    texts = [MISSING_VALUE if text is None else text for text in given]
    values = np.array([folded.get(text.casefold(), "") for text in texts])
    strange = sorted({text for text in texts if text.casefold() not in folded})
    return [(values == value).astype(np.float64) for value in column.categories], strange


def _as_numbers(frame: Frame, name: str, notation: Notation) -> Frame:
    """The rows with a column of numbers: in its own notation if that means the same, else as the
    recipe says.
    """
    column = frame.columns[name]
    own = column.notation
    units = {notation.unit, column.currency} - {None}
    if len(units) > 1:
        raise InvalidInput(
            f"{frame.source}: the amounts of {name!r} are in {column.currency}; the policy was "
            f"made with amounts in {notation.unit}.",
            hint=f"convert them to {notation.unit} first.",
        )
    if own is None or (own.kind, own.percent) != (notation.kind, notation.percent):
        as_before = replace(column.number_format or NumberFormat(), fixed=notation)
        fixed = replace(column, number_format=as_before)
        if fixed.numbers is None:
            why = "" if fixed.ambiguity is None else f": {fixed.ambiguity.text}"
            raise InvalidInput(
                f"{frame.source}: {name!r} is not written as in the table that the policy was "
                f"made with{why}.",
                hint="write it in the same way: dates as dates, percent with a sign, and so on.",
                column=name,
            )
        if own is None and notation.kind == "number":
            # Refuse numbers in two currencies, and a comma whose meaning neither file shows: plain
            # numbers have the notation with a decimal point too, so that only a decimal comma is
            # known from before.
            if notation.decimal == ",":
                known = column.number_format or NumberFormat()
                comma = replace(known, decimal=known.decimal or ",")
                column = replace(column, number_format=comma)
            if column.ambiguity is not None:
                raise InvalidInput(
                    f"{frame.source}: {name!r} cannot be read as numbers: {column.ambiguity.text}.",
                    column=name,
                    argument=column.ambiguity.argument,
                )
        frame = replace(frame, columns={**frame.columns, name: fixed})
    return frame
