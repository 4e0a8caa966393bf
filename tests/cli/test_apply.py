"""`evenhand apply` follows the recipe of the policy file, and draws by its seed."""

import csv
import json

import pytest
from tests.cli.conftest import LENDING


@pytest.fixture
def policy(run, lending, tmp_path):
    assert run("solve", lending, *LENDING, "--out", "policy.json").exit_code == 0
    return tmp_path / "policy.json"


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_reordered_columns_change_no_decision(run, lending, lending_rows, policy, tmp_path):
    assert run("apply", policy, lending, "--out", "first.csv").exit_code == 0
    first = rows(tmp_path / "first.csv")
    assert {row["decision"] for row in first} == {"0", "1"}
    assert list(first[0])[-2:] == ["probability", "decision"]
    with (tmp_path / "new.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*reversed(lending_rows[0])], delimiter=";")
        writer.writeheader()
        writer.writerows(lending_rows)
    done = run("apply", policy, "new.csv", "--out", "second.csv", "--json")
    assert done.exit_code == 0, done.output
    second = rows(tmp_path / "second.csv")
    for name in ("probability", "decision"):
        assert [row[name] for row in first] == [row[name] for row in second]
    told = json.loads(done.stdout)
    assert told["accepted"] == sum(row["decision"] == "1" for row in second)
    run("apply", policy, lending, "--out", "third.csv", "--seed", "1")
    third = rows(tmp_path / "third.csv")
    assert [row["probability"] for row in first] == [row["probability"] for row in third]
    assert [row["decision"] for row in first] != [row["decision"] for row in third]


def test_refusals(run, lending, policy, write):
    head, first, *_ = lending.read_text().splitlines()
    short = write(head.replace("debt_ratio", "debt") + "\n" + first + "\n", "short.csv")
    refused = run("apply", policy, short)
    assert refused.exit_code == 2
    assert "no column 'debt_ratio', which the policy was made with" in refused.stderr
    empty = write(head + "\n" + "," + first.partition(",")[2] + "\n" + first + "\n", "empty.csv")
    assert "--drop-missing" in run("apply", policy, empty).stderr
    done = run("apply", policy, empty, "--drop-missing", "--out", "out.csv")
    assert done.exit_code == 0
    assert "decided about 1:" in done.stdout
    assert "is the table itself" in run("apply", policy, empty, "--out", empty).stderr
    assert "there is no policy file" in run("apply", "nowhere.json", lending).stderr
