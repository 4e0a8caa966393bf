"""The regression of outcomes."""

import numpy as np

from evenhand.estimation import RoundLog


def test_contexts_that_the_policy_avoids_are_foretold_by_a_regression():
    """Repeated rows, labels only where x < 0, nearly all good there: a table would take the others,
    nearly all bad, for good ones.
    """
    from evenhand.estimation.outcomes import TabularOutcome, fit_outcomes

    rng = np.random.default_rng(0)
    x = rng.choice(np.linspace(-2, 2, 200), 4_000)
    accept = (x < 0) | (rng.random(4_000) < 0.01)
    label = np.where(rng.random(4_000) < 1 / (1 + np.exp(-4 * x)), -1, 1)
    log = RoundLog.from_rounds(x[:, np.newaxis], accept, label[accept], np.where(x < 0, 1.0, 0.01))
    assert not isinstance(fit_outcomes(log), TabularOutcome)
    assert fit_outcomes(log).negative_probability(np.array([[1.5]]))[0] > 0.9
    everybody = RoundLog.from_rounds(x[:, np.newaxis], np.ones(4_000, bool), label, 1.0)
    assert isinstance(fit_outcomes(everybody), TabularOutcome)
