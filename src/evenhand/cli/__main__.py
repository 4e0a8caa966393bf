"""`python -m evenhand.cli` is the same as `evenhand`."""

from evenhand.cli import main

main(prog_name="evenhand")
