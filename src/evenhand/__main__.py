"""`python -m evenhand` is the same as `evenhand`."""

from evenhand.cli import main

if __name__ == "__main__":
    main(prog_name="evenhand")
