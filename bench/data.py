"""Real tables for the bench (they live in `evenhand.tables`), and made-up ones for
machines without network.

    adult   income above 50K                       by sex (or by race)  48,842 rows
    compas  no new offence within two years        by race               5,278 rows (ProPublica's)
    taiwan  no default on the next card payment    by sex               30,000 rows
"""

from typing import Literal

import numpy as np

from evenhand.tables import DataUnavailable, Table, read_table

Name = Literal["adult", "compas", "taiwan"]
NAMES: tuple[Name, ...] = ("adult", "compas", "taiwan")


def load(name: Name, group: str | None = None) -> Table:
    """The table of that name; DataUnavailable without cache and network. `group`: another group
    column ("race" for adult).
    """
    return read_table(name, **({} if group is None else {"group": group})).encoded()


def generated(
    name: str = "generated", rows: int = 20_000, columns: int = 12, groups: int = 2, seed: int = 0
) -> Table:
    """Made-up people for machines without network: scores that depend on the group, half of the
    columns rounded to few values.
    """
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, rows)
    quality = rng.normal(size=rows) + 0.4 * group
    slopes = rng.normal(size=columns)
    features = (
        np.outer(quality, slopes)
        + 1.5 * rng.normal(size=(rows, columns))
        + 0.3 * np.outer(group, rng.normal(size=columns))
    )
    features[:, ::2] = np.round(2 * features[:, ::2]) / 2
    label = np.where(quality + 0.7 * rng.normal(size=rows) > 0.2, 1, -1)
    names = tuple(f"x{j}" for j in range(columns))
    return Table(name, features, names, np.array([f"g{g}" for g in group]), label, generated=True)


def load_or_generate(name: Name, group: str | None = None) -> tuple[Table, str | None]:
    """The table and None; made-up rows of a like shape and the reason where it cannot be had."""
    try:
        return load(name, group), None
    except DataUnavailable as error:
        rows, columns = {"adult": (48_842, 40), "compas": (5_278, 9), "taiwan": (30_000, 31)}[name]
        return generated(name, rows, columns, 5 if group == "race" and name == "adult" else 2), str(
            error
        )
