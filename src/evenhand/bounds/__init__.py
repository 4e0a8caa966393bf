"""Confidence bounds on the gaps of hypotheses: one file per bound, each with its theorem and its
proof.
"""
