"""The certified algorithm, beyond the paper: `step` says what happens, in which order."""
