"""A gate as an assertion: the same function that `--gate` calls, in a test of your own."""

from evenhand.evaluation.gates import Gated, GateResult, gate


def assert_within(
    record: Gated,
    limit: float | None = None,
    least_ratio: float | None = None,
    *,
    not_shown: bool = False,
) -> GateResult:
    """Fail a test unless everything is shown to be within what is allowed.

    Parameters
    ----------
    record : Measurement, Evaluation, ImpactTable or TableCertification
        What was measured.
    limit : float, optional
        The largest gap that is allowed.
    least_ratio : float, optional
        The smallest ratio that is allowed.
    not_shown : bool
        Whether "not shown" passes: then only what is shown to be above fails.

    Returns
    -------
    GateResult
        The verdict.

    Raises
    ------
    AssertionError
        With the finding that decides it.

    Examples
    --------
    >>> import numpy as np, evenhand as eh
    >>> accepted = np.array([True, False] * 400)
    >>> assert_within(eh.measure(accepted, ["a", "a", "b", "b"] * 200), limit=0.2).status
    'within'
    """
    result = gate(record, limit, least_ratio)
    allowed = ("within", "not shown") if not_shown else ("within",)
    if result.status not in allowed:
        raise AssertionError(result.sentence)
    return result
