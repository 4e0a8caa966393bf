"""A result as lines of text: in a terminal with styles, in `describe` without."""

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import NamedTuple

from evenhand.media.words import Part, is_words, named, parts
from evenhand.result import Column, Result, Table

WIDTH = 100
"""How wide a description is."""
STYLES = {"within": "green", "above": "bold red", "not shown": "yellow"}
LEAST = 14
"""A column of words is broken into no fewer letters than this."""


class Styled(NamedTuple):
    """A line of text, and a style of rich."""

    text: str
    style: str = ""


def text(result: Result, width: int = WIDTH) -> str:
    """A result as plain text.

    Parameters
    ----------
    result : Result
        What is said.
    width : int
        How wide the text may be; names that are longer are not cut.

    Returns
    -------
    str
        The lines.

    Examples
    --------
    >>> print(text(Result("note", "Two groups", None, ("They are alike.",), facts={"people": 8})))
    Two groups
    They are alike.
    <BLANKLINE>
    people  8
    """
    return "\n".join(line.text for line in lines(result, width))


def lines(result: Result, width: int = WIDTH) -> Iterator[Styled]:
    """A result line by line.

    Parameters
    ----------
    result : Result
        What is said.
    width : int
        How wide the lines may be.

    Yields
    ------
    Styled
        A line, and its style.
    """
    yield from _folded(result.title, width, "bold")
    if result.verdict is not None:
        yield from _folded(result.verdict.headline, width, STYLES[result.verdict.status])
    for sentence in result.answer:
        yield from _folded(sentence, width)
    for one in result.read:
        yield from _folded(one, width, "dim", "  ")
    for one in result.beware:
        yield from _folded(f"WARNING: {one}", width, "yellow", "  ")
    if result.facts:
        yield Styled("")
        yield from _named(named(result.facts), width)
    if result.policy:
        yield from _headed("The policy")
        for line in result.policy:
            yield from _folded(line, width, "", "  ")
    for table in result.tables:
        yield from _headed(table.title)
        yield from _table(table, width)
    if result.assumptions:
        yield from _headed("Assumptions")
        for one in result.assumptions:
            yield from map(Styled, wrap(f"- {one}", width, subsequent_indent="  "))


def _headed(title: str) -> Iterator[Styled]:
    yield Styled("")
    yield Styled(_line(title), "bold")


def _line(text: str) -> str:
    """A name may hold a line break, which must not end the line."""
    return " ".join(text.split()) if any(map(str.isspace, text.replace(" ", ""))) else text


def _folded(text: str, width: int, style: str = "", indent: str = "") -> Iterator[Styled]:
    inner = indent + text[: len(text) - len(text.lstrip(" "))]
    for line in wrap(_line(text), width, initial_indent=indent, subsequent_indent=inner):
        yield Styled(line, style)


def _named(values: Sequence[tuple[str, str]], width: int) -> Iterator[Styled]:
    longest = max((len(name) for name, _ in values), default=0)
    for name, value in values:
        said = wrap(_line(value), max(width - longest - 2, 30)) or [""]
        yield Styled(f"{name.ljust(longest)}  {said[0]}".rstrip())
        yield from (Styled(f"{'':{longest}}  {more}") for more in said[1:])


def _table(table: Table, width: int) -> Iterator[Styled]:
    found, note = parts(table)
    if table.named:
        for one in found:
            yield from _named([(name, value) for name, value in one.rows], width)
    else:
        for place, one in enumerate(found):
            if one.heading:
                yield from [Styled("")] * (place > 0)
                yield Styled(_line(one.heading), "italic")
            yield from _grid(one, width)
    if note:
        yield from _folded(note, width, "dim")


def _grid(part: Part, width: int) -> Iterator[Styled]:
    """A table without lines: figures flush right and never broken, words broken where they must."""
    rows = [tuple(map(_line, row)) for row in part.rows]
    whole = [max(len(cell) for cell in cells) for cells in zip(*rows, strict=True)]
    heads = [max(map(len, one.head.split()), default=0) for one in part.columns]
    sizes = [max(ends) for ends in zip(whole, map(_two_lines, part.columns), strict=True)]
    if sum(sizes) + 2 * (len(sizes) - 1) > width:
        sizes = [max(cells, head) for cells, head in zip(whole, heads, strict=True)]
    gap = 3 if sum(sizes) + 3 * (len(sizes) - 1) <= width else 2
    _narrow(sizes, heads, part.columns, width - gap * (len(sizes) - 1))
    if sum(sizes) + gap * (len(sizes) - 1) > width:
        gap = 1
    for row, style in [(tuple(one.head for one in part.columns), "dim"), *((r, "") for r in rows)]:
        cells = [wrap(cell, size) or [""] for cell, size in zip(row, sizes, strict=True)]
        for place in range(max(map(len, cells))):
            texts = (cell[place] if place < len(cell) else "" for cell in cells)
            yield Styled(_joined(texts, sizes, part.columns, gap), style)


def _two_lines(column: Column) -> int:
    """How wide a head is that is broken once, at most."""
    words = column.head.split()
    broken = (" ".join(words[:place]) for place in range(1, len(words) + 1))
    rest = (" ".join(words[place:]) for place in range(1, len(words) + 1))
    both = [max(len(one), len(other)) for one, other in zip(broken, rest, strict=True)]
    return min(both, default=0)


def _narrow(sizes: list[int], heads: Sequence[int], columns: Iterable[Column], width: int) -> None:
    """Narrow the widest columns of words until the table fits, or they can give no more."""
    words = [place for place, one in enumerate(columns) if is_words(one)]
    while sum(sizes) > width:
        wide = [place for place in words if sizes[place] > max(LEAST, heads[place])]
        if not wide:
            return
        widest = max(wide, key=lambda place: sizes[place])
        sizes[widest] -= 1


def _joined(texts: Iterable[str], sizes: Sequence[int], columns: Iterable[Column], gap: int) -> str:
    padded = (
        cell.ljust(size) if is_words(one) else cell.rjust(size)
        for cell, size, one in zip(texts, sizes, columns, strict=True)
    )
    return (" " * gap).join(padded).rstrip()
