"""The certified learner: one number that is never exceeded, from the first person on."""

from evenhand.learners.certified.learner import CertifiedLearner

__all__ = ["CertifiedLearner"]
