"""Learners under one-sided feedback: the paper's algorithm and what it is compared with."""

from evenhand.learners.baselines import (
    AcceptAll,
    Exp4,
    ExploreThenCommit,
    FairOnGathered,
    Unconstrained,
    Uniform,
)
from evenhand.learners.certified.learner import CertifiedLearner
from evenhand.learners.epochs import Epoch, EpochLearner, LearnerReport
from evenhand.learners.loading import load
from evenhand.learners.two_phase import TwoPhaseLearner

__all__ = [
    "AcceptAll",
    "CertifiedLearner",
    "Epoch",
    "EpochLearner",
    "Exp4",
    "ExploreThenCommit",
    "FairOnGathered",
    "LearnerReport",
    "TwoPhaseLearner",
    "Unconstrained",
    "Uniform",
    "load",
]
