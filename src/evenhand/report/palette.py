"""One look per learner in every figure, and colours that a page can change: light on dark, dark on light.

The colours follow Okabe and Ito and Tol (a little darker where text must be read in them); line styles differ too, so that nothing hangs
on colour alone.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

INK, MUTED, RULE, ALARM = "#1b1f24", "#5c636b", "#d9dce0", "#c4400c"


@dataclass(frozen=True)
class Look:
    """How a learner's line is drawn; `dark` is the colour on a dark page."""

    colour: str
    dark: str
    dash: Any = "-"
    width: float = 1.8


LOOKS: Mapping[str, Look] = {
    "two-phase": Look("#0072b2", "#5cb8f5", width=2.8),
    "certified": Look("#117733", "#6fd08c", width=2.8),
    "explore-then-commit": Look("#009e73", "#3fd0a4", (0, (5, 1.5))),
    "explore-then-commit-same": Look("#5b4bb3", "#b3a7ff", (0, (2.5, 1.2))),
    "exp4": Look("#b0609a", "#e39bcb", (0, (6, 1.5, 1.2, 1.5))),
    "unconstrained": Look("#d55e00", "#ff8f45", "-"),
    "fair-on-gathered": Look("#c08000", "#ffc14d", (0, (4, 1.2, 1, 1.2, 1, 1.2))),
    "accept-all": Look("#7a7f85", "#a3a8ae", (0, (1, 1.2))),
    "uniform": Look("#8b9096", "#8f949a", (0, (1, 2.4))),
}
SPARE = (
    Look("#882255", "#e58fb9", (0, (3, 1, 1, 1))),
    Look("#3b8fc4", "#9fd4ff", (0, (7, 2))),
    Look("#807a00", "#d6cf52", (0, (8, 1.5, 2, 1.5))),
    Look("#44707a", "#8fc3cf", (0, (2, 2))),
)
SHEET = {INK: "--ink", MUTED: "--muted", RULE: "--rule", ALARM: "--alarm"}


def looks(names: Sequence[str]) -> dict[str, Look]:
    """A look for each learner: its own if it is known by that name, else the next spare one (they repeat after four)."""
    spare = [name for name in names if name not in LOOKS]
    return {name: LOOKS[name] if name in LOOKS else SPARE[spare.index(name) % len(SPARE)] for name in names}


def variable(colour: str) -> str:
    """The CSS variable that stands for a colour."""
    return SHEET.get(colour, f"--c{colour.removeprefix('#')}")


def css_variables(*, dark: bool) -> str:
    """Declarations of all colours of lines for a page."""
    known = {look.colour: look.dark for look in (*LOOKS.values(), *SPARE)}
    return " ".join(f"{variable(colour)}: {other if dark else colour};" for colour, other in known.items())


def themed(svg: str, prefix: str) -> str:
    """An SVG drawing as part of a page: no prolog, no metadata, no fixed size, ids of its own, colours as CSS variables."""
    body = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.S)
    body = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", body, count=1)
    body = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", body, count=1)
    body = re.sub(r'\bid="', f'id="{prefix}-', body)
    body = re.sub(r'href="#', f'href="#{prefix}-', body)
    body = re.sub(r"url\(#", f"url(#{prefix}-", body)
    known = {look.colour for look in (*LOOKS.values(), *SPARE)} | set(SHEET)
    return re.sub(
        r"#[0-9a-f]{6}\b", lambda found: f"var({variable(found[0])})" if found[0] in known else found[0], body
    )
