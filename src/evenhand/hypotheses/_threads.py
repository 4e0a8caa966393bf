"""One BLAS thread for small fits: faster for tall thin matrices, and the answer does not depend on the number of cores."""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any, cast


def one_blas_thread() -> AbstractContextManager[Any]:
    """Inside the `with`, numpy's and scipy's BLAS use one thread."""
    import scipy.optimize  # noqa: F401  (its BLAS must be loaded before the libraries are counted)

    return cast(AbstractContextManager[Any], _libraries().limit(limits=1, user_api="blas"))


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # it ships no types

    return ThreadpoolController()
