"""The commands that this package adds to `evenhand`, by the entry points `evenhand.commands`."""
