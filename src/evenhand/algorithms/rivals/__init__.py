"""What others do about the same problem."""
