"""`python -m bench`: see `bench.runner`."""

from bench.runner import main

if __name__ == "__main__":
    main()
