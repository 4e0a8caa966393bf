"""A label that never comes does not blind the drift tests: two runs of the claim in
`tests/claims/test_missing_labels.py`.
"""

from tests.flips import MISSING, flip

SEEDS = (1, 2)


def test_a_flip_is_found_although_labels_are_missing():
    """Within 1.5 times the people that it takes with all labels; seeds that once took more than
    12,000.
    """
    complete = [flip(seed, missing=0.0, change=6000, most=8000).found for seed in SEEDS]
    assert None not in complete
    most = int(1.5 * max(complete))
    assert all(
        flip(seed, missing=MISSING, change=6000, most=most).found is not None for seed in SEEDS
    )


def test_a_flip_is_found_before_a_long_epoch_ends():
    """At round 8,000 an epoch is open that ends at round 11,524."""
    assert flip(1, missing=0.0, change=8000, most=2500).found is not None


def test_control_missing_labels_alone_are_no_drift():
    """The false alarm is 1e-3 a run at most."""
    assert flip(1, missing=MISSING, change=6000, most=3000, flips=False).found is None
