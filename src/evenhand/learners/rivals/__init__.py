"""What people take otherwise: published methods and tools that learn to decide from one-sided
feedback, without a certificate.

SemiLogistic      Kilbertus, Gomez-Rodriguez, Schölkopf, Muandet and Valera (AISTATS 2020):
                  exploring policies with a fairness penalty
ExploreExploit    Keswani, Mehrotra and Celis (ICML 2024): an exploit region, and careful
                  exploration outside of it
VwBandit          epsilon-greedy and squarecb of Vowpal Wabbit (the extra `vw`)

All are written from the papers' descriptions, and play in `simulate` like any other learner.
"""

from evenhand.learners.rivals.scores import ExploreExploit, RandomCutoff, SemiLogistic
from evenhand.learners.rivals.vw import VwBandit, VwPolicy

__all__ = ["ExploreExploit", "RandomCutoff", "SemiLogistic", "VwBandit", "VwPolicy"]
