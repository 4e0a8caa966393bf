"""What others do about the same problem: played beside ours by the claims, and not shipped."""

from bench.rivals.learners import Exp4AppleTasting, ExploreExploit, InverseGap, SemiLogistic

__all__ = ["Exp4AppleTasting", "ExploreExploit", "InverseGap", "SemiLogistic"]
