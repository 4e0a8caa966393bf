"""A result as HTML: one page to hand over that needs no network, or a fragment for a notebook."""

from collections.abc import Iterable, Sequence
from datetime import date
from functools import cache
from html import escape
from importlib.resources import files

from evenhand.media.drawing import LINE_COLOURS, css_variable
from evenhand.media.plots import svg
from evenhand.media.words import Part, answer, day, is_words, made_with, named, parts
from evenhand.result import Result, Table

ROWS_SHOWN = 8
"""A notebook shows so many rows of each part of a table."""


@cache
def style() -> str:
    """The style of all pages: for light and dark screens, phones, and paper."""

    def root(colours: Iterable[tuple[str, str]]) -> str:
        return "".join(f"{css_variable(light)}: {shown};" for light, shown in colours)

    css = files("evenhand.media").joinpath("page.css").read_text("utf-8")
    light = root((one, one) for one in LINE_COLOURS)
    dark = root(LINE_COLOURS.items())
    return (
        f"{css}\n:root {{{light}}}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{{dark}}} }}\n"
    )


def page(result: Result, made: date | None = None) -> str:
    """Write one page.

    Parameters
    ----------
    result : Result
        What is said.
    made : datetime.date, optional
        When it was made; today by default.

    Returns
    -------
    str
        The page; it loads nothing from elsewhere.

    Raises
    ------
    EvenhandError
        If it has figures and matplotlib is not installed.
    """
    title = escape(result.title)
    command = _code(result.command) if result.command else ""
    sections = [
        f'<p class="made">evenhand, {day(made)}</p>',
        _answer(result),
        _names(named(result.facts)),
        _section("What was asked", _names(named(result.asked)), _items(result.read)),
        _section("The policy in words", _code("\n".join(result.policy)) if result.policy else ""),
        _section("The figures", *(_table(one) for one in result.tables)),
        _section("The picture", _pictures(result)),
        _section("What it rests on", _items(result.assumptions), _beware(result)),
        _section("How it was made", f"<p>On {escape(made_with(made))}.</p>", command),
    ]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            '<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>",
            f"<style>\n{style()}</style>\n</head>",
            f"<body>\n<main>\n<h1>{title}</h1>",
            *filter(None, sections),
            "</main>\n</body>\n</html>\n",
        ]
    )


def fragment(result: Result, rows: int = ROWS_SHOWN) -> str:
    """The title, the answer, and short tables, for notebooks.

    Parameters
    ----------
    result : Result
        What is said.
    rows : int
        So many rows of each part of a table.

    Returns
    -------
    str
        HTML without a style of its own.
    """
    tables = (_table(one, rows) for one in result.tables)
    inside = [_answer(result), _names(named(result.facts)), *tables]
    return f"<div>\n<p><b>{escape(result.title)}</b></p>\n{''.join(inside)}</div>"


def _answer(result: Result) -> str:
    status = "none" if result.verdict is None else result.verdict.status.replace(" ", "-")
    said = [f"<p>{escape(one)}</p>" for one in answer(result)]
    if result.verdict is not None:
        said[0] = said[0].replace("<p>", '<p class="verdict">', 1)
    return f'<section class="answer {status}">\n{_joined(said)}</section>\n'


def _section(title: str, *inside: str) -> str:
    body = "".join(inside)
    return f"<section>\n<h2>{title}</h2>\n{body}</section>" if body else ""


def _names(values: Sequence[tuple[str, str]]) -> str:
    if not values:
        return ""
    said = _joined(f"<dt>{escape(a)}</dt><dd>{escape(b)}</dd>" for a, b in values)
    return f'<dl class="facts">\n{said}</dl>\n'


def _items(texts: Sequence[str]) -> str:
    return f"<ul>\n{_joined(f'<li>{escape(one)}</li>' for one in texts)}</ul>\n" if texts else ""


def _beware(result: Result) -> str:
    return f"<h3>Beware</h3>\n{_items(result.beware)}" if result.beware else ""


def _code(text: str) -> str:
    return f"<pre><code>{escape(text)}</code></pre>\n"


def _joined(texts: Iterable[str]) -> str:
    return "".join(f"{one}\n" for one in texts)


def _table(table: Table, most: int | None = None) -> str:
    found, note = parts(table, min(most or table.most, table.most))
    said = [f"<h3>{escape(table.title)}</h3>"]
    for one in found:
        if one.heading:
            said.append(f"<h4>{escape(one.heading)}</h4>")
        if table.named:
            said.append(_names([(name, value) for name, value in one.rows]))
        else:
            said.append(_grid(one))
    if note:
        said.append(f'<p class="note">{escape(note)}</p>')
    return f'<div class="keep">\n{_joined(said)}</div>\n'


def _grid(part: Part) -> str:
    sides = [' class="text"' if is_words(one) else "" for one in part.columns]
    heads = (
        f'<th scope="col"{side}>{escape(one.head)}</th>'
        for one, side in zip(part.columns, sides, strict=True)
    )
    rows = (
        "".join(f"<td{side}>{escape(cell)}</td>" for cell, side in zip(row, sides, strict=True))
        for row in part.rows
    )
    return (
        f'<div class="scroll"><table>\n<thead><tr>{"".join(heads)}</tr></thead>\n'
        f"<tbody>\n{_joined(f'<tr>{row}</tr>' for row in rows)}</tbody>\n</table></div>"
    )


def _pictures(result: Result) -> str:
    if not result.figures:
        return ""
    drawn = _joined(svg(one, f"p{number}") for number, one in enumerate(result.figures))
    one = " one" if len(result.figures) == 1 else ""
    note = " ".join(dict.fromkeys(figure.note for figure in result.figures if figure.note))
    caption = f"<figcaption>{escape(note)}</figcaption>\n" if note else ""
    return f'<figure>\n<div class="panels{one}">\n{drawn}</div>\n{caption}</figure>\n'
