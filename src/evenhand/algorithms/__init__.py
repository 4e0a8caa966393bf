"""Algorithms: pure functions over the table of rounds (`evenhand.rounds`)."""
