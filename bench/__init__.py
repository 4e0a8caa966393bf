"""The benchmarks of evenhand: `python -m bench` measures every promise of speed and exactness side
by side with other solvers.
"""
