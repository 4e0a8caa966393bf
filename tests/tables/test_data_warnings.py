"""Columns that tell the group or the outcome are found, others are not."""

import numpy as np

from evenhand.tables import Table, data_warnings
from evenhand.tables.data_warnings import REVEALS_GROUP, share_revealed, source_share_revealed


def table(n=600, seed=0, **columns):
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], n)
    label = rng.choice([-1, 1], n)
    made = {name: make(rng, group, label) for name, make in columns.items()}
    return Table("toy", np.column_stack(list(made.values())), tuple(made), group, label)


def test_a_column_that_reveals_the_group():
    found = data_warnings(
        table(
            race_a=lambda rng, group, label: (group == "a") * 1.0,
            noise=lambda rng, group, label: rng.normal(size=len(group)),
            hint=lambda rng, group, label: rng.normal(size=len(group)) + 0.3 * (group == "b"),
        ),
        "race",
    )
    assert [one.name for one in found] == ["race_a"]
    assert 0.5 < found[0].share < 0.7  # of log 3 it tells what a third of the people is
    assert found[0].argument == "leave_out"


def test_a_column_that_reveals_the_outcome():
    (one,) = data_warnings(
        table(late=lambda rng, group, label: label + rng.normal(0, 0.01, len(label)))
    )
    assert one.kind == "reveals the outcome"


def test_a_handful():
    one = table(x=lambda rng, group, label: rng.normal(size=len(group)))
    group = one.group.copy()
    group[:3] = "d"
    found = data_warnings(Table("toy", one.features, one.names, group, one.label))
    assert [(w.kind, w.name) for w in found] == [("a handful", "d")]
    assert "3 people" in found[0].text
    assert found[0].argument == "groups"


def test_noise_is_not_said_to_reveal():
    """200 columns of noise on 300 people; without the correction the share is biased upwards."""
    rng = np.random.default_rng(5)
    group = rng.choice(["a", "b"], 300)
    shares = [share_revealed(rng.normal(size=300), group) for _ in range(200)]
    assert max(shares) < REVEALS_GROUP / 2
    assert np.mean(shares) < 0.02


def test_constant_columns_and_one_group():
    assert share_revealed(np.ones(50), np.array(["a", "b"] * 25)) == 0.0
    assert share_revealed(np.arange(50.0), np.array(["a"] * 50)) == 0.0


def one_hot(values, name):
    """A table whose only source is a text column with these values, and the groups a and b."""
    distinct = sorted(set(values))
    names = tuple(f"{name}={value}" for value in distinct)
    features = np.array([[float(value == one) for one in distinct] for value in values])
    return features, names, {name: names}


def encoded_table(values, group):
    features, names, encoded = one_hot(values, "firstname")
    label = np.resize([1, -1, -1], len(group))
    return Table("toy", features, names, np.array(group), label, encoded=encoded)


def test_the_columns_of_one_source_are_measured_together():
    """40 first names, 20 of each group: each alone tells less than a tenth."""
    rng = np.random.default_rng(1)
    group = rng.choice(["a", "b"], 1000)
    values = [f"{one}{rng.integers(20)}" for one in group]
    made = encoded_table(values, group)
    alone = [share_revealed(column, made.group) for column in made.features.T]
    assert max(alone) < 0.1
    (found,) = data_warnings(made, "race")
    assert (found.kind, found.name, found.argument) == (
        "reveals the group",
        "firstname",
        "leave_out",
    )
    assert found.share > 0.95


def test_the_warning_names_the_column_of_the_source():
    group = ["a", "b"] * 60
    (found,) = data_warnings(encoded_table(group, group))
    assert found.name == "firstname"


def test_values_that_have_nothing_to_do_with_the_group_are_not_said_to_reveal_it():
    """50 values on 600 people: the part that chance shows is taken away."""
    rng = np.random.default_rng(4)
    shares = []
    for _ in range(20):
        group = rng.choice(["a", "b"], 600)
        features, _, _ = one_hot([f"n{rng.integers(50)}" for _ in group], "firstname")
        shares.append(source_share_revealed(features, group))
    assert max(shares) < REVEALS_GROUP / 2
    assert np.mean(shares) < 0.03


def test_a_source_that_reveals_the_outcome_by_several_values():
    rng = np.random.default_rng(6)
    label = rng.choice([-1, 1], 600)
    features, names, encoded = one_hot([f"{one}{rng.integers(15)}" for one in label], "status")
    group = rng.choice(["a", "b"], 600)
    (found,) = data_warnings(Table("toy", features, names, group, label, encoded=encoded))
    assert (found.kind, found.name) == ("reveals the outcome", "status")


def test_values_that_a_few_people_have():
    """With the count, in one warning, the rarest first; numbers and common values are none."""

    def ones(count):
        return lambda rng, group, label: np.where(np.arange(len(group)) < count, 1.0, 0.0)

    (found,) = data_warnings(
        table(
            seven=ones(7),
            one=ones(1),
            ten=ones(10),
            all_but_three=ones(597),
            none=ones(0),
            number=lambda rng, group, label: rng.normal(size=len(group)),
        )
    )
    assert (found.kind, found.name, found.argument) == ("rare values", "one", "leave_out")
    assert found.share == 1 / 600
    begin = "'one' is 1 for 1 person, 'all_but_three' is 0 for 3 people, 'seven' is 1 for 7 people:"
    assert found.text.startswith(begin)
    (many,) = data_warnings(table(**{f"x{count}": ones(count) for count in range(1, 9)}))
    assert "'x5' is 1 for 5 people, and 3 more columns like these" in many.text
