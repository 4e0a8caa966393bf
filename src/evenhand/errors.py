"""The errors of evenhand, as one tree. Each has the fields message, requirement, hint and argument.

EvenhandError
├── InvalidInput (also a ValueError)
│   ├── NotFinite            NaN or infinity where a number is needed
│   ├── LengthMismatch       arrays that should describe the same rows do not
│   ├── BadLabel             labels that do not say which outcome is good
│   ├── MissingColumn        a table lacks a column that was asked for
│   ├── SeveralErrors        several things about a table are not as they must be
│   └── StorageError         a file that is no stored learner, is damaged, or of another version
├── CannotEstimateRate       a group has no row in the rate's denominator
├── Infeasible               no mixture of the class meets the constraints
├── UnsuitableEstimator      a model that cannot be used as a weighted-classification oracle
├── NotSerialisable          a hypothesis whose nature does not allow plain JSON
├── CannotCertify            too few people to certify anything but a constant
├── DeltaOverspent           a process asks for more failure probability than is left
└── ProtocolError            decide/observe called in an order or with a round that cannot be
    └── AlreadyObserved      the same outcome has come under these keys before

NotConverged is a warning: an answer that is worse than was asked for, and says so.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


def install_hint(extra: str) -> str:
    """How to install one of evenhand's extras.

    The name is on no package index yet, and somebody else could take it: no hint asks one for it.

    Examples
    --------
    >>> install_hint("plots")
    "install evenhand with its extra 'plots'; in a checkout: pip install -e '.[plots]'"
    """
    return f"install evenhand with its extra '{extra}'; in a checkout: pip install -e '.[{extra}]'"


class EvenhandError(Exception):
    """The root of the tree: `except EvenhandError` catches every error that evenhand raises.

    Programs read the fields; the text is for people, and nothing parses it.

    Parameters
    ----------
    message : str
        What is wrong, with its value: a whole sentence, or without its full stop where a
        requirement follows.
    hint : str, optional
        How to mend it; it is printed after the message.
    requirement : str, optional
        What must be true; it is printed after the message, behind a semicolon.
    argument : str, optional
        The name of the Python argument concerned, such as "label". The command line shows the
        option of that name.
    remedies : tuple of str
        The names of further arguments that the hint mentions.

    Examples
    --------
    >>> error = EvenhandError(
    ...     "limit is 2", requirement="a gap is at most 1", hint="use 0.05.", argument="limit"
    ... )
    >>> str(error)
    'limit is 2; a gap is at most 1. Hint: use 0.05.'
    >>> error.requirement, error.argument
    ('a gap is at most 1', 'limit')
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        requirement: str | None = None,
        argument: str | None = None,
        remedies: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.requirement = requirement
        self.argument = argument
        self.remedies = remedies

    @property
    def sentence(self) -> str:
        """The message with its requirement, without the hint."""
        if self.requirement is None:
            return self.message
        return f"{self.message}; {self.requirement}."

    def __str__(self) -> str:
        if self.hint is None:
            return self.sentence
        return f"{self.sentence} Hint: {self.hint}"


class InvalidInput(EvenhandError, ValueError):
    """An argument, or a value in it, is not what it must be.

    Parameters
    ----------
    message : str
        What is wrong.
    hint, requirement, argument, remedies
        As for `EvenhandError`.
    column : str, optional
        The column in which the wrong value stands.
    row : int, optional
        Its row, counted from 0.
    value : str, optional
        The wrong value, as it is shown to people: "'high'", or "missing".

    Examples
    --------
    >>> import evenhand as eh
    >>> try:
    ...     eh.Prices(false_accept=-1.0)
    ... except eh.InvalidInput as error:
    ...     print(error)
    the price false_accept is -1.0; prices are finite numbers of at least 0. Hint: one number for \
all people, or an array with one for each person.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        requirement: str | None = None,
        argument: str | None = None,
        remedies: tuple[str, ...] = (),
        column: str | None = None,
        row: int | None = None,
        value: str | None = None,
    ) -> None:
        super().__init__(
            message, hint=hint, requirement=requirement, argument=argument, remedies=remedies
        )
        self.column = column
        self.row = row
        self.value = value


class NotFinite(InvalidInput):
    """NaN or infinity where a finite number is needed.

    Examples
    --------
    >>> import evenhand as eh
    >>> try:
    ...     eh.LabelledSample([[float("nan")]], ["a"], [1])
    ... except eh.errors.NotFinite as error:
    ...     print(error.hint)
    impute or drop the rows before handing them to evenhand; or pass a frame, whose schema says
    where values may be missing.
    """


class LengthMismatch(InvalidInput):
    """Arrays that should have one entry per row have different lengths.

    Examples
    --------
    >>> import evenhand as eh
    >>> try:
    ...     eh.LabelledSample([[1.0], [2.0]], ["a"], [1, 1])
    ... except eh.errors.LengthMismatch as error:
    ...     print(error)
    group has shape (1,) but there are 2 rows; it needs one entry per row.
    """


class BadLabel(InvalidInput):
    """Labels that do not say which outcome is good, or are missing where they are needed.

    Examples
    --------
    >>> import numpy as np, evenhand as eh
    >>> try:
    ...     eh.LabelledSample([[1.0], [2.0]], ["a", "b"], np.array([2, 1]))
    ... except eh.errors.BadLabel as error:
    ...     print(error.hint)
    say which value means good: label == 1 or label == 2.
    """


class MissingColumn(InvalidInput):
    """A table lacks a column that was asked for.

    Examples
    --------
    >>> issubclass(MissingColumn, InvalidInput)
    True
    """


class SeveralErrors(InvalidInput):
    """Several things are not as they must be; all of them, so that one reading settles them.

    Parameters
    ----------
    errors : sequence of InvalidInput
        At least two.

    Examples
    --------
    >>> first = InvalidInput("age is missing.", column="age", remedies=("leave_out",))
    >>> print(SeveralErrors([first, InvalidInput("city is text.", hint="encode it.")]))
    2 things stand in the way:
    1. age is missing.
    2. city is text. Hint: encode it.
    """

    def __init__(self, errors: Sequence[InvalidInput]) -> None:
        super().__init__(
            f"{len(errors)} things stand in the way:",
            remedies=tuple(
                dict.fromkeys(
                    name
                    for error in errors
                    for name in (error.argument, *error.remedies)
                    if name is not None
                )
            ),
        )
        self.errors = tuple(errors)

    def __str__(self) -> str:
        numbered = [f"{place}. {error}" for place, error in enumerate(self.errors, 1)]
        return "\n".join([self.message, *numbered])


def raise_all(errors: Sequence[InvalidInput]) -> None:
    """Raise what was found, at once; nothing where nothing was found.

    Parameters
    ----------
    errors : sequence of InvalidInput
        What was found.

    Raises
    ------
    InvalidInput
        The only error itself; `SeveralErrors` where there are more.

    Examples
    --------
    >>> raise_all([])
    """
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise SeveralErrors(errors)


@contextmanager
def collecting(errors: list[InvalidInput]) -> Iterator[None]:
    """Keep an error for `raise_all`, so that what is wrong next is said together with it.

    Parameters
    ----------
    errors : list of InvalidInput
        What was found so far; an error in the block is appended.

    Examples
    --------
    >>> errors = []
    >>> with collecting(errors):
    ...     raise InvalidInput("no column 'income'.")
    >>> [str(one) for one in errors]
    ["no column 'income'."]
    """
    try:
        yield
    except SeveralErrors as several:
        errors += several.errors
    except InvalidInput as error:
        errors.append(error)


class StorageError(InvalidInput):
    """A file is no stored learner, is damaged, or was written in another version of the format.

    Examples
    --------
    >>> import evenhand as eh, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "learner.zip"
    ...     _ = path.write_bytes(b"something else")
    ...     try:
    ...         eh.load(path)
    ...     except eh.errors.StorageError:
    ...         print("not a learner")
    not a learner
    """


class CannotEstimateRate(EvenhandError):
    """A rate has an empty denominator in some group, or there is only one group.

    Examples
    --------
    >>> import evenhand as eh
    >>> sample = eh.LabelledSample([[1.0], [2.0]], ["a", "b"], [-1, 1])
    >>> try:
    ...     eh.FalsePositiveRate().group_weights(sample)
    ... except eh.errors.CannotEstimateRate as error:
    ...     print(error.hint)
    leave group 'b' out (groups names those to keep), join it with another one, gather more ...
    """


class Infeasible(EvenhandError):
    """No mixture of the class meets the constraints.

    Parameters
    ----------
    message : str
        Which constraints.
    hint : str, optional
        The way out.
    certificate : float
        The smallest violation that any mixture reaches.

    Examples
    --------
    >>> Infeasible("the gap cannot be below 0.2.", certificate=0.1).certificate
    0.1
    """

    def __init__(self, message: str, *, hint: str | None = None, certificate: float) -> None:
        super().__init__(message, hint=hint)
        self.certificate = certificate


class UnsuitableEstimator(EvenhandError, TypeError):
    """A model that cannot serve as a weighted-classification oracle.

    Examples
    --------
    >>> import evenhand as eh
    >>> try:
    ...     eh.Estimator("no model")
    ... except eh.errors.UnsuitableEstimator:
    ...     print("not a classifier")
    not a classifier
    """


class NotSerialisable(EvenhandError, TypeError):
    """A hypothesis whose nature does not allow plain JSON.

    Examples
    --------
    >>> import evenhand as eh
    >>> rule = eh.FiniteClass([lambda features, group: features[:, 0] > 1]).listed[0]
    >>> try:
    ...     rule.to_json()
    ... except eh.errors.NotSerialisable:
    ...     print("a function of yours has no JSON form")
    a function of yours has no JSON form
    """


class ProtocolError(EvenhandError):
    """decide or observe was called in a way that one-sided feedback does not allow.

    Examples
    --------
    >>> import evenhand as eh
    >>> learner = eh.CertifiedLearner(
    ...     eh.ScoreThresholds(), eh.FalsePositiveRate(), 0.1, 0.05, seed=1
    ... )
    >>> try:
    ...     learner.observe(3, 1)
    ... except eh.ProtocolError:
    ...     print("round 3 has not been decided yet")
    round 3 has not been decided yet
    """


class AlreadyObserved(ProtocolError):
    """The same outcome was reported under each of these keys before; nothing has changed.

    Whoever repeats a report after a crash may take it for done. Of a block in which an outcome is
    new, that outcome is taken, and there is no error.

    Examples
    --------
    >>> import evenhand as eh
    >>> learner = eh.learners.AcceptAll(seed=1)
    >>> decisions = learner.decide([[1.0]], key="anna")
    >>> learner.observe(key="anna", label=1)
    >>> try:
    ...     learner.observe(key="anna", label=1)
    ... except eh.errors.AlreadyObserved:
    ...     print("done before")
    done before
    """


class CannotCertify(EvenhandError):
    """A count is too small for a certificate.

    Parameters
    ----------
    group : object
        Whose people are missing.
    denominator : str
        Which people of the group count, in words.
    have : int
        How many of them have been seen.
    needed : float
        How many are needed; infinity where no number is enough.
    people : int
        How many people were seen in all. The observed share have/people turns `missing` into
        `more_people`, the expected number of further people. When none was seen the share is not
        taken to be 0: three in `people` is its upper limit (95%), and `more_people` is then a lower
        limit.
    hint : str, optional
        The way out.

    Examples
    --------
    >>> error = CannotCertify(
    ...     group="b", denominator="negatives (label -1)", have=20, needed=120, people=1000
    ... )
    >>> error.missing, error.more_people
    (100, 5000.0)
    """

    def __init__(
        self,
        *,
        group: object,
        denominator: str,
        have: int,
        needed: float,
        people: int,
        hint: str | None = None,
    ) -> None:
        self.group = group
        self.denominator = denominator
        self.have = have
        self.needed = needed
        self.people = people
        self.missing = max(needed - have, 0.0)
        share = max(have, 3) / max(people, 3)
        self.more_people = self.missing / min(share, 1.0)
        super().__init__(
            f"group {group!r} has {have:,} {denominator} among {people:,} "
            f"{'person' if people == 1 else 'people'}, but "
            f"{_count(needed)} are needed: {_count(self.missing)} more, expected "
            f"{'after' if have else 'after at least'} {_count(self.more_people)} more "
            f"people{'' if have else ' (none was seen so far)'}.",
            hint=hint
            or "keep auditing, widen the limit, or use a smaller class; until then only constants "
            "are deployed.",
        )


class DeltaOverspent(EvenhandError):
    """The delta ledger would exceed delta.

    Examples
    --------
    >>> from evenhand.fairness.delta_ledger import DeltaLedger
    >>> DeltaLedger(0.05).book("a test", 0.06, at=0)
    Traceback (most recent call last):
        ...
    evenhand.errors.DeltaOverspent: process 'a test' asks for 0.06, but 0 of delta = 0.05 is ...
    """


class NotConverged(UserWarning):
    """A solver has stopped before it reached the tolerance that was asked for.

    Examples
    --------
    >>> issubclass(NotConverged, UserWarning)
    True
    """


def _count(number: float) -> str:
    """A number of people in words: rounded up, "infinitely many" where no number is enough."""
    return f"{math.ceil(number):,}" if math.isfinite(number) else "infinitely many"
