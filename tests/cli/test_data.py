import json

from evenhand.tables import TABLES


def test_data_shows_a_table_by_name(run):
    shown = run("data", "show", "lending").stdout
    assert shown.startswith("Invented loans: is the loan repaid?\n1,200 people, 5 columns")
    assert "Group a: 763 people (63.6%), 57.4% with the good outcome." in shown
    assert "Caveat: 1,200 invented rows" in shown
    assert set(TABLES) <= set(run("data", "show", "--help").stdout.split())


def test_data_refuses_what_it_does_not_know(run):
    refused = run("data", "show", "loans")
    assert refused.exit_code == 2
    assert "neither a table nor a file 'loans'" in refused.stderr


def test_data_shows_a_file_whose_columns_are_named(run, lending):
    shown = run("data", "show", lending, "--label", "repaid", "--good", "yes", "--group", "group")
    assert "1,200 people, 5 columns a decision may use: income," in shown.stdout
    assert "Group b: 437 people" in shown.stdout


def test_data_lists_the_columns_of_a_file_alone(run, tmp_path):
    path = tmp_path / "loans.csv"
    path.write_text(
        "Kunden-Nr;Status;Alter;Datum\nK-1;good;31;2021-01-02\nK-2;bad;;2021-01-03\nK-3;good;9;2021-01-04\n"
    )
    shown = run("data", "show", path)
    assert shown.exit_code == 0, shown.output
    lines = {line.split()[0]: line for line in shown.stdout.splitlines()}
    assert "(--id)" in lines["Kunden-Nr"]
    assert lines["Status"].split()[1:] == ["text", "2", "0", "bad,", "good"]
    assert lines["Alter"].split()[1:] == ["number", "2", "1", "9,", "31"]
    assert lines["Datum"].split()[1] == "date"
    assert "--label COL" in shown.stdout
    listed = json.loads(run("data", "show", path, "--json").stdout)["columns"]
    assert [one["distinct"] for one in listed] == [3, 2, 2, 3]
