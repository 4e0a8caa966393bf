import json
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from evenhand.cli import main, show
from evenhand.cli.options import ColumnOptions
from evenhand.cli.problem import table_problem
from evenhand.cli.show import solve
from evenhand.cli.solved import cost_name, optimality, use_of_group, uses
from evenhand.hypotheses import Called, LinearRule, Threshold
from evenhand.policies import Mixture
from evenhand.tables import read_table

COLUMNS = ColumnOptions(label="repaid", good="yes", group="group")


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


@pytest.mark.parametrize(("price", "name"), [("1", "error rate"), ("3", "cost per person")])
def test_a_cost_has_its_name(lending, price, name):
    task = table_problem(lending, COLUMNS, price_false_accept=price)
    assert cost_name(task) == name


def test_the_rates_are_those_of_the_table(lending):
    task = table_problem(lending, COLUMNS)
    solution = solve(task)
    rates = show.measured_rates(task, solution)
    assert list(rates) == ["FPR", "FNR", "SR"]
    gap = rates["FPR"]["b"] - rates["FPR"]["a"]
    assert gap == pytest.approx(float(solution.gaps[0]))
    assert optimality(task, solution).startswith("It is optimal")


def test_documents_hold_no_nan(tmp_path):
    show.write_json(tmp_path / "a.json", {"a": 1})
    assert json.loads((tmp_path / "a.json").read_text()) == {"a": 1}
    with pytest.raises(ValueError, match="JSON"):
        show.write_json(tmp_path / "b.json", {"a": np.nan})


def write_people(path, columns, group, label):
    names = [*columns, "race", "repaid"]
    rows = zip(*columns.values(), group, label, strict=True)
    path.write_text("\n".join([",".join(names), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def shown_policy(task, policy) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        show.show_task(console, task)
    words = policy.describe(task.table.names)
    return "\n".join([capture.get(), words, use_of_group(task, policy)])


RACE = ColumnOptions(label="repaid", good="yes", group="race", encode=True)


def test_a_proxy_in_the_sixth_place_of_a_linear_rule_is_warned_about(tmp_path):
    """A linear rule prints five weights; the column of the sixth may be the group in disguise."""
    draw = np.random.default_rng(1)
    group = draw.choice(["a", "b"], 400)
    columns = {f"x{j}": draw.normal(size=400).round(3) for j in range(5)}
    columns["postcode"] = np.where(group == "a", 1, 2)
    label = np.where(draw.random(400) < 0.5, "yes", "no")
    path = write_people(tmp_path / "p.csv", columns, group, label)
    task = table_problem(path, RACE)
    assert [one.name for one in task.warnings] == ["postcode"]
    rule = LinearRule((9.0, 8.0, 7.0, 6.0, 5.0, 0.001), 0.5)
    assert "0.001" not in rule.describe(task.table.names)
    policy = Mixture((rule,), (1.0,))
    assert uses(task, policy, "postcode")
    text = shown_policy(task, policy)
    assert "The group is not looked at" not in text
    assert "The group is no input, but postcode reveals" in text
    harmless = Mixture((LinearRule((9.0, 8.0, 7.0, 6.0, 5.0, 0.0), 0.5),), (1.0,))
    assert "The group is not looked at" in shown_policy(task, harmless)


def test_a_rule_whose_columns_are_unknown_may_use_a_proxy(tmp_path):
    group = np.array(["a", "b"] * 100)
    columns = {"x": np.arange(200) % 7, "postcode": np.where(group == "a", 1, 2)}
    label = np.where(np.arange(200) % 3 == 0, "no", "yes")
    task = table_problem(write_people(tmp_path / "p.csv", columns, group, label), RACE)
    rule = Called(lambda features, group: features[:, 0] > 3)
    assert "The group is no input, but postcode" in shown_policy(task, Mixture((rule,), (1.0,)))


def test_values_of_a_text_column_that_reveal_the_group_together_are_warned_about(tmp_path):
    """Each first name reveals a little of the group, all of them reveal it whole."""
    draw = np.random.default_rng(2)
    group = draw.choice(["a", "b"], 600)
    place = draw.integers(0, 20, 600)
    name = [f"{one}{number}" for one, number in zip(group, place, strict=True)]
    columns = {"income": draw.normal(size=600).round(3), "firstname": name}
    label = np.where(draw.random(600) < 0.5, "yes", "no")
    task = table_problem(write_people(tmp_path / "p.csv", columns, group, label), RACE)
    found = [(one.kind, one.name) for one in task.warnings if one.kind != "rare values"]
    assert found == [("reveals the group", "firstname")]
    assert task.warnings[0].share > 0.9
    column = task.table.names.index("firstname=a3")
    policy = Mixture((Threshold(column, 1.0, len(task.table.names), False),), (1.0,))
    text = shown_policy(task, policy)
    assert "WARNING: 'firstname' reveals" in text
    assert "(--leave-out firstname)" in text
    assert "accept if firstname is not a3" in text
    assert "The group is not looked at" not in text
    income = Mixture((Threshold(0, 0.0, len(task.table.names)),), (1.0,))
    assert "The group is not looked at" in shown_policy(task, income)


def test_a_copy_of_the_group_with_several_values_is_warned_about(tmp_path):
    """preRace=White < 1 is the group in disguise, although the value alone reveals little of it."""
    draw = np.random.default_rng(3)
    races = [f"r{number}" for number in range(8)]
    race = draw.choice(races, 2000)
    columns = {"income": draw.normal(size=2000).round(3), "preRace": race}
    label = np.where(draw.random(2000) < 0.5, "yes", "no")
    task = table_problem(write_people(tmp_path / "p.csv", columns, race, label), RACE)
    assert [one.name for one in task.warnings] == ["preRace"]
    column = task.table.names.index("preRace=r0")
    policy = Mixture((Threshold(column, 1.0, len(task.table.names), False),), (1.0,))
    text = shown_policy(task, policy)
    assert "accept if preRace is not r0" in text
    assert "The group is no input, but preRace reveals" in text


def test_rules_dates_and_flags_are_printed_for_people(tmp_path):
    """The cut of a date is a date, and yes and no are as the file writes them."""
    lines = ["granted,insured,sex,repaid"]
    for i in range(400):
        late = i % 2 == 1
        day = f"201{8 if late else 7}-0{1 + i % 9}-1{i % 7}"
        lines.append(f"{day},{('NO', 'YES')[i % 4 > 1]},{'fm'[i // 2 % 2]},{('no', 'yes')[late]}")
    path = tmp_path / "loans.csv"
    path.write_text("\n".join(lines) + "\n")
    named = {"label": "repaid", "good": "yes", "group": "sex"}
    table = read_table(path, **named).encoded()
    granted, insured = table.names
    assert granted.compared(">=", 17532.09308) == "granted is 2018-01-02 or later"
    assert insured.compared("<", 1.0) == "insured is NO"
    assert Threshold(1, 1.0, 2, at_least=False).describe(table.names) == "accept if insured is NO"
    done = CliRunner().invoke(
        main,
        ["solve", str(path), "--label", "repaid", "--good", "yes", "--group", "sex"],
        catch_exceptions=False,
    )
    assert "accept if granted is 2018-0" in done.stdout
    assert "-0.000" not in done.stdout
    # Without the names a rule is what it was: numbers.
    assert Threshold(1, 1.0, 2, at_least=False).describe() == "accept if x1 < 1"


def test_rounding_does_not_print_a_rate_below_zero():
    task = table_problem("lending", ColumnOptions())
    almost = np.where(task.sample.group == "a", -1e-17, 1 + 2e-16)
    rates = show.measured_rates(task, SimpleNamespace(acceptance=almost))
    assert f"{min(rates['FPR'].values()):.3f}" == "0.000"
    assert max(rates["FPR"].values()) <= 1.0
