"""How heavy loops are run: compiled by numba where the extra `fast` is installed and it pays, in
NumPy everywhere else, with the same answers bit for bit; and with how many threads BLAS works.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial, update_wrapper
from typing import Generic, Literal, ParamSpec, TypeVar, cast

import numpy as np

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
Form = Literal["auto", "numpy", "numba"]

_form: Form = "auto"


class Kernel(Generic[Given, Answer]):
    """A loop in two forms that give the same bits: plain Python for numba, and NumPy.

    Loading and compiling cost seconds in a fresh installation, so the NumPy form works until it has
    seen `pays` numbers: by then it has taken about as long as loading the compiled form would have.
    Without numba, or with NUMBA_DISABLE_JIT, the NumPy form does all the work.
    """

    def __init__(
        self, loop: Callable[Given, Answer], in_numpy: Callable[Given, Answer], pays: int
    ) -> None:
        self.loop = loop
        self.in_numpy = in_numpy
        self.pays = pays
        self._seen = 0
        self._compiled: Callable[Given, Answer] | None = None
        update_wrapper(self, loop)

    def __call__(self, *given: Given.args, **named: Given.kwargs) -> Answer:
        if self._compiled is None or _form == "numpy":
            self._seen += max(value.size for value in given if isinstance(value, np.ndarray))
            if _form == "numpy" or (_form == "auto" and self._seen < self.pays):
                return self.in_numpy(*given, **named)
            self._compiled = _loaded(self.loop) or self.in_numpy
        try:
            return self._compiled(*given, **named)
        except OSError:  # the disk of the cache filled up: compilation comes before the first step
            self._compiled = _loaded(self.loop, stored=False) or self.in_numpy
            return self._compiled(*given, **named)


def compiled(
    in_numpy: Callable[Given, Answer], pays: int = 100_000_000
) -> Callable[[Callable[Given, Answer]], Kernel[Given, Answer]]:
    """Decorates a loop that numba can compile; `in_numpy` takes the same arguments.

    `pays`: how many numbers of the largest argument NumPy handles in the time (about a second) that
    numba takes to load and compile.
    """
    return lambda loop: Kernel(loop, in_numpy, pays)


@contextmanager
def computing_in(form: Form) -> Iterator[None]:
    """Inside the `with`, every kernel takes this form ("numba": where it is installed)."""
    global _form
    before = _form
    _form = form
    try:
        yield
    finally:
        _form = before


def _loaded(loop: Callable[Given, Answer], stored: bool = True) -> Callable[Given, Answer] | None:
    """The loop, compiled on its first call; None where numba cannot be had.

    The machine code is stored beside the module, or where numba's settings say; where nothing can
    be written (a read-only installation without a home) it is compiled anew in each process.
    """
    try:
        from numba import config, njit
    except ImportError:  # not installed, or not made for this NumPy
        return None
    if getattr(config, "DISABLE_JIT", False):
        return None
    try:
        return cast(Callable[Given, Answer], njit(loop, cache=stored, nogil=True))
    except (RuntimeError, OSError):  # "no locator available": there is no place for a cache
        return cast(Callable[Given, Answer], njit(loop, cache=False, nogil=True))


def one_blas_thread() -> AbstractContextManager[object]:
    """Inside the `with`, numpy's and scipy's BLAS use one thread: that is faster for tall thin
    matrices, and the answer does not depend on the number of cores.
    """
    # scipy has a BLAS of its own: once it has been loaded the libraries are counted again.
    return _blas_libraries("scipy.linalg" in sys.modules)()


@cache
def _blas_libraries(
    with_scipy: bool,  # noqa: ARG001  (it is the key of the cache)
) -> Callable[[], AbstractContextManager[object]]:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # has no types

    return partial(ThreadpoolController().limit, limits=1, user_api="blas")
