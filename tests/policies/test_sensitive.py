"""Names of columns that say what the law protects, and names that only look like it."""

import pytest

from evenhand.policies.sensitive import WORDS, protected_kind


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (
            ("age", "AGE", "ageAtLoan", "applicant_age", "Alter", "Geburtsdatum", "edad", "Âge"),
            "age",
        ),
        (("edad", "date of birth", "birthYear", "date_naissance", "fecha nacimiento"), "age"),
        (("sex", "SEX", "gender", "Geschlecht", "sexe", "género", "female"), "sex"),
        (("race", "Ethnicity", "hautfarbe", "raza", "skin color", "RACE_3"), "race"),
        (
            (
                "Marital",
                "marital_status",
                "MARRIAGE",
                "Familienstand",
                "état civil",
                "Estado Civil",
            ),
            "marital status",
        ),
        (("religion", "Konfession", "iglesia"), "religion"),
        (
            ("nationality", "Staatsangehörigkeit", "citizenship", "foreign_worker", "nacionalidad"),
            "nationality",
        ),
        (("pregnant", "Schwangerschaft", "enceinte", "embarazo"), "pregnancy"),
        (("disability", "Behinderung", "handicap", "discapacidad"), "disability"),
    ],
)
def test_names_in_four_languages(names, kind):
    assert [protected_kind(name) for name in names] == [kind] * len(names)


@pytest.mark.parametrize(
    "name",
    [
        *("income", "average", "mortgage", "wages", "usage", "package", "Sussex", "trace"),
        *("embrace", "alternative", "balance", "menu", "amount", "BILL_AMT1", "", "42"),
    ],
)
def test_names_that_only_look_like_it(name):
    assert protected_kind(name) is None


def test_words_are_written_as_they_are_looked_up():
    every = [word for words in WORDS.values() for word in words.split()]
    assert len(every) == len(set(every))
    assert all(word.isascii() and word.isalpha() and word.islower() for word in every)
