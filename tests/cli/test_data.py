def test_data_list_and_show(run):
    listed = run("data", "list").stdout
    assert all(
        name in listed
        for name in ("lending", "adult", "compas", "german", "taiwan", "gmsc", "loanapp", "recid")
    )
    shown = run("data", "show", "lending").stdout
    assert "Group a: 763 people (63.6%), 57.4% with the good outcome." in shown
    assert "Caveat: 1,200 invented rows" in shown
    assert "1,200 rows" in run("data", "get", "lending").stdout


def test_data_refuses_what_it_does_not_know(run):
    refused = run("data", "show", "loans")
    assert refused.exit_code == 2
    assert "neither a table nor a file 'loans'" in refused.stderr


def test_data_shows_a_file_whose_columns_are_named(run, lending):
    shown = run("data", "show", lending, "--label", "repaid", "--good", "yes", "--group", "group")
    assert "1,200 people, 5 columns a decision may use: income," in shown.stdout
    assert "Group b: 437 people" in shown.stdout
