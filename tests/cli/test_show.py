import json

import numpy as np
import pytest
from rich.console import Console

from evenhand.cli import show
from evenhand.cli.options import table_problem
from evenhand.cli.show import solve

MEANING = {"label": "repaid", "good": "yes", "group": "group"}


def printed(thing) -> str:
    console = Console(width=120)
    with console.capture() as capture:
        console.print(thing)
    return capture.get()


def test_a_grid_has_its_numbers_flush_right():
    table = show.grid("name", ">count", rows=[("a", "1"), ("b", "1000")])
    assert printed(table).splitlines() == ["name  count  ", "a         1  ", "b      1000  "]


def test_texts_are_printed_without_markup():
    console = Console(width=120)
    with console.capture() as capture:
        show.show_lines(console, ["[bold]income[/bold]"])
    assert capture.get() == "[bold]income[/bold]\n"


@pytest.mark.parametrize(
    ("price", "name", "shown"),
    [("1", "error rate", "0.2500"), ("3", "cost per person", "0.25"), ("9e4", None, "0.25")],
)
def test_costs_are_shown_per_person(lending, price, name, shown):
    task = table_problem({"data": lending, **MEANING, "price_false_accept": price})
    assert show.money(task, 300.0) == shown
    assert name in (None, show.cost_name(task))
    assert show.money(task, 1200 * 1234.5) == ("1234.5000" if name == "error rate" else "1,234")


def test_the_rates_are_those_of_the_table(lending):
    task = table_problem({"data": lending, **MEANING})
    solution = solve(task)
    rates = show.measured_rates(task, solution)
    assert list(rates) == ["FPR", "FNR", "SR"]
    gap = rates["FPR"]["b"] - rates["FPR"]["a"]
    assert gap == pytest.approx(float(solution.gaps[0]))
    assert show.optimality(task, solution).startswith("optimal")


def test_documents_hold_no_nan(tmp_path):
    show.write_json(tmp_path / "a.json", {"a": 1})
    assert json.loads((tmp_path / "a.json").read_text()) == {"a": 1}
    with pytest.raises(ValueError, match="not JSON compliant"):
        show.write_json(tmp_path / "b.json", {"a": np.nan})
