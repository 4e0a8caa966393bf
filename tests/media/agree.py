"""All media say the same: what each command's test asks of the result that it made."""

from math import isfinite

from tests.media.results import leaves, read_card, read_page, tidy

from evenhand.media import card, document, fragment, page, text
from evenhand.media.frames import columns_of
from evenhand.result import Amount, Between, shown


def numbers_of(cell):
    if isinstance(cell, Amount):
        return numbers_of(cell.value)
    if isinstance(cell, Between):
        return list(cell)
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return [cell]
    return []


def shown_rows(table):
    """The rows that people see, part by part, as `shown` words them."""
    taken = {}
    for row in table.rows:
        part = taken.setdefault(row[: table.parts], [])
        if len(part) < table.most:
            cells = zip(row[table.parts :], table.columns[table.parts :], strict=True)
            part.append([tidy(shown(cell, one.unit)) for cell, one in cells])
    return [row for part in taken.values() for row in part]


def media_agree(result, *, pictures=False):
    """Every number in every medium is the same, and so is the headline."""
    said = document(result)
    known = set(leaves(said))
    html = page(result if pictures else _without_figures(result))
    read = read_page(html)
    in_page = [row for grid in read.grids for row in grid]
    in_card = read_card(card(result))
    in_text = tidy(text(result, width=10_000))
    for table in result.tables:
        columns = columns_of(table)
        flat = [value for values in columns.values() for value in values]
        for row in table.rows:
            for cell in row:
                for number in numbers_of(cell):
                    assert any(number is one or number == one for one in flat), (table.key, number)
                    finite = float(number) + 0.0
                    assert not isfinite(finite) or finite in known, (table.key, cell)
        for row in shown_rows(table):
            if table.named:
                assert row[0] in read.names
                assert row[1] in read.names
            else:
                assert row in in_page, (table.key, row)
            assert row in in_card, (table.key, row)
            assert tidy(" ".join(row)) in in_text, (table.key, row)
    for name, value in result.facts.items():
        if value not in (None, "", ()):
            assert tidy(shown(value)) in read.names
            assert tidy(f"{name} {shown(value)}") in in_text
            for number in numbers_of(value):
                assert not isfinite(number) or number + 0.0 in known, name
    headlines_agree(result, html, said, in_text)
    assert "script" not in read.tags
    assert "<script" not in fragment(result)


def headlines_agree(result, html, said, in_text):
    verdict = result.verdict
    if verdict is None:
        assert said["verdict"] is None
        assert 'class="answer none"' in html
        return
    headline = tidy(verdict.headline)
    assert said["verdict"]["status"] == verdict.status
    assert said["verdict"]["exit_code"] == verdict.exit_code
    assert read_page(html).verdict == headline
    assert f'class="answer {verdict.status.replace(" ", "-")}"' in html
    escaped = headline.replace("\\", "\\\\").replace("|", "\\|")
    assert f"**{escaped}**" in card(result)
    assert headline in in_text


def _without_figures(result):
    from dataclasses import replace

    return replace(result, figures=())
