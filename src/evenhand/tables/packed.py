"""The cells of long plain tables as arrays of bytes: split, searched for missing values and read as
numbers without one Python object per cell. The answers are those of the csv module and of float(),
bit for bit; what is not plain is left to them.
"""

import numpy as np
from numpy.typing import NDArray

from evenhand.words import BoolArray, FloatArray

Packed = NDArray[np.bytes_]

WIDEST = 32
"""Bytes of a cell at most."""
AT_ONCE = 1 << 18
"""Bytes of a file that are split at a time, few enough to stay in the cache."""
EXACT_DIGITS = 15
"""So many digits are a whole number below 2^53, and a power of ten below 10^22 is exact, too: their
quotient is rounded once, as float() rounds.
"""
SPACES = np.zeros(256, bool)
SPACES[[*b" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"]] = True
NEWLINE, DOT, MINUS, PLUS, ZERO = b"\n.-+0"


def split_plain(raw: bytes, start: int, delimiter: bytes, width: int) -> list[Packed] | None:
    """The columns of raw[start:], `width` cells in each line; None where that takes a csv reader:
    quotes, other letters than ASCII, carriage returns, cells with blanks around them, long cells,
    lines of another width, and lines without a value.
    """
    if not raw.isascii() or any(mark in raw for mark in (b'"', b"\r", b"\0")):
        return None
    parts: list[list[Packed]] = [[] for _ in range(width)]
    while start < len(raw):
        end = len(raw) if start + AT_ONCE >= len(raw) else raw.rfind(b"\n", start, start + AT_ONCE)
        if end < start:
            return None  # a line of many bytes
        block = np.frombuffer(raw, np.uint8, (end if end == len(raw) else end + 1) - start, start)
        if block[-1] != NEWLINE:
            block = np.append(block, np.uint8(NEWLINE))
        start += len(block)
        cells = _split_block(block, delimiter[0], width)
        if cells is None:
            return None
        for part, column in zip(parts, cells, strict=True):
            part.append(column)
    return [np.concatenate(part) for part in parts] if parts[0] else None


def _split_block(block: NDArray[np.uint8], delimiter: int, width: int) -> list[Packed] | None:
    ends = np.flatnonzero((block == delimiter) | (block == NEWLINE))
    if len(ends) % width:
        return None
    last = block[ends].reshape(-1, width) == NEWLINE
    if not last[:, -1].all() or last[:, :-1].any():
        return None
    starts = np.empty_like(ends)
    starts[0], starts[1:] = 0, ends[:-1] + 1
    filled = ends > starts
    if SPACES[block[starts[filled]]].any() or SPACES[block[ends[filled] - 1]].any():
        return None
    if (ends - starts).max() > WIDEST or not filled.reshape(-1, width).any(axis=1).all():
        return None
    padded = np.append(block, np.zeros(WIDEST, np.uint8))
    columns: list[Packed] = []
    for first, length in zip(
        starts.reshape(-1, width).T, (ends - starts).reshape(-1, width).T, strict=True
    ):
        widest = max(int(length.max()), 1)
        cells = np.empty((len(first), widest), np.uint8)
        for place in range(widest):
            letters = padded[first + place]
            letters[length <= place] = 0
            cells[:, place] = letters
        columns.append(cells.reshape(-1).view(f"S{widest}"))
    return columns


def find_missing(cells: Packed, markers: frozenset[str]) -> BoolArray:
    """Where a cell is one of the markers, which are in small letters, in any case."""
    names = {marker.encode() for marker in markers if marker.isascii()}
    firsts = np.zeros(256, bool)
    for name in names:
        firsts[[*name[:1].lower(), *name[:1].upper()] or [0]] = True
    found = firsts[_letters(cells)[:, 0]]
    some = np.flatnonzero(found)
    if len(some):
        different, which = np.unique(cells[some], return_inverse=True)
        meant = np.array([cell.lower() in names for cell in different.tolist()])
        found[some] = meant[which]
    return found


def plain_numbers(cells: Packed, missing: BoolArray) -> FloatArray | None:
    """The cells as numbers, NaN where one is missing; None where one is no number, or is not
    written with at most EXACT_DIGITS digits, a sign and a point.
    """
    letters = _letters(cells)
    whole = np.zeros(len(cells), np.int64)
    digits = np.zeros(len(cells), np.int8)
    decimals = np.zeros(len(cells), np.int8)
    pointed = np.zeros(len(cells), bool)
    fine = np.ones(len(cells), bool)
    for place in range(letters.shape[1]):
        letter = letters[:, place]
        digit = letter - np.uint8(ZERO)
        is_digit = digit <= 9
        whole = np.where(is_digit, 10 * whole + digit, whole)
        digits += is_digit
        decimals += is_digit & pointed
        point = letter == DOT
        if place == 0:
            signed = (letter == MINUS) | (letter == PLUS)
            fine &= is_digit | point | signed
        else:
            fine &= is_digit | (point & ~pointed) | (letter == 0)
        pointed |= point
        if place == EXACT_DIGITS + 1 and (digits > EXACT_DIGITS).any():
            return None
    fine &= (digits > 0) & (digits <= EXACT_DIGITS)
    if not (fine | missing).all():
        return None
    value = whole / 10.0 ** np.arange(EXACT_DIGITS + 1)[decimals]
    value = np.where(letters[:, 0] == MINUS, -value, value)
    value[missing] = np.nan
    return value


def _letters(cells: Packed) -> NDArray[np.uint8]:
    return np.ascontiguousarray(cells).view(np.uint8).reshape(len(cells), -1)
