"""One BLAS thread for small fits: faster for tall thin matrices, and the answer does not depend on
the number of cores.
"""

import sys
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, cast


def one_blas_thread() -> AbstractContextManager[Any]:
    """Inside the `with`, numpy's and scipy's BLAS use one thread."""
    return cast(
        AbstractContextManager[Any],
        _libraries("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas"),
    )


@cache
def _libraries(with_scipy: bool) -> Any:  # noqa: ARG001  (it is the key of the cache)
    """The libraries that are loaded now.

    scipy has a BLAS of its own: once it has been loaded they are counted again.
    """
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # it ships no types

    return ThreadpoolController()
