"""The tables of one run: loaded once, and what must be said about them."""

from dataclasses import dataclass, field

from bench.data import NAMES, Name, Table, generated, load_or_generate

QUICK_ROWS, QUICK_COLUMNS = 500, 12


@dataclass(eq=False)
class Tables:
    """Loads each table once. `missing` says why a table had to be replaced by generated rows; quick
    runs always take a few generated ones, and need no network.
    """

    quick: bool = False
    missing: dict[str, str] = field(default_factory=dict)
    _loaded: dict[tuple[str, str | None], Table] = field(default_factory=dict)

    def get(self, name: Name, group: str | None = None) -> Table:
        """One table."""
        key = (name, group)
        if key not in self._loaded and self.quick:
            groups = 2 if group is None else 5
            self._loaded[key] = generated(name, QUICK_ROWS, QUICK_COLUMNS, groups)
            self.missing[name] = "This is a quick run."
        if key not in self._loaded:
            table, reason = load_or_generate(name, group)
            if reason is not None:
                self.missing[name] = reason
            self._loaded[key] = table
        return self._loaded[key]

    def all(self) -> list[Table]:
        """COMPAS, Taiwan, Adult; the first of them in a quick run."""
        order = sorted(NAMES, key=("compas", "taiwan", "adult").index)
        return [self.get(name) for name in (order[:1] if self.quick else order)]

    @property
    def note(self) -> str:
        """ "" for real rows."""
        return (
            ""
            if not self.missing
            else f"GENERATED rows instead of {', '.join(sorted(self.missing))}."
        )
