"""The tables of one run: loaded once, and what must be said about them."""

from dataclasses import dataclass, field

from bench.data import NAMES, Name, Table, load_or_generate


@dataclass(eq=False)
class Tables:
    """Loads each table once. `missing` says why a table had to be replaced by generated rows."""

    quick: bool = False
    missing: dict[str, str] = field(default_factory=dict)
    _loaded: dict[tuple[str, str | None], Table] = field(default_factory=dict)

    def get(self, name: Name, group: str | None = None) -> Table:
        """One table; quick runs take 5,000 of its rows."""
        key = (name, group)
        if key not in self._loaded:
            table, reason = load_or_generate(name, group)
            if reason is not None:
                self.missing[name] = reason
            self._loaded[key] = table.subset(5_000) if self.quick else table
        return self._loaded[key]

    def all(self) -> list[Table]:
        """COMPAS, Taiwan, Adult."""
        return [self.get(name) for name in sorted(NAMES, key=("compas", "taiwan", "adult").index)]

    @property
    def note(self) -> str:
        """ "" for real rows."""
        return (
            ""
            if not self.missing
            else f"GENERATED rows instead of {', '.join(sorted(self.missing))}."
        )
