"""Kernels as operators of PyTorch and calls of JAX: neither library is imported before one is made.

Here are the decorators; the methods of the same name do the work.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from weft._operators.jax_call import JaxCall
    from weft._operators.torch_op import TorchOperator


def as_torch_op(
    name: str, launch: Any = None, out: Any = None, *, backward: Any = None, signature: Any = None
) -> Callable[[Any], TorchOperator]:
    """Make an operator of PyTorch of the decorated kernel or function, as the method of kernels does.

    Parameters
    ----------
    name, launch, out, backward, signature
        As those of the method `as_torch_op` of kernels.

    Returns
    -------
    decorator
        It takes a kernel, or a function, of which it makes a kernel, and returns the operator.

    Raises
    ------
    ImportError, TypeError, ValueError, CompileError
        As those of the method.

    Examples
    --------
    >>> @cuda.as_torch_op("mylib::double", launch=lambda x: (x.size, 1), out=cuda.like("x"))  # doctest: +SKIP
    ... @cuda.jit("void(float32[:], float32[:])")
    ... def double(x, out):
    ...     out[cuda.grid(1)] = 2 * x[cuda.grid(1)]
    """
    return lambda of: _kernel(of).as_torch_op(name, launch, out, backward=backward, signature=signature)


def as_jax_call(
    launch: Any = None, out: Any = None, *, backward: Any = None, signature: Any = None, name: str | None = None
) -> Callable[[Any], JaxCall]:
    """Make a function of JAX of the decorated kernel or function, as the method of kernels does.

    Parameters
    ----------
    launch, out, backward, signature, name
        As those of the method `as_jax_call` of kernels.

    Returns
    -------
    decorator
        It takes a kernel, or a function, of which it makes a kernel, and returns the function of JAX.

    Raises
    ------
    ImportError, TypeError, ValueError, CompileError
        As those of the method.

    Examples
    --------
    >>> @cuda.as_jax_call(launch=lambda x: (x.size, 1), out=cuda.like("x"))  # doctest: +SKIP
    ... @cuda.jit("void(float32[:], float32[:])")
    ... def double(x, out):
    ...     out[cuda.grid(1)] = 2 * x[cuda.grid(1)]
    """
    return lambda of: _kernel(of).as_jax_call(launch, out, backward=backward, signature=signature, name=name)


def _kernel(of: Any) -> Any:
    """Return a kernel, made of a function if that is given."""
    from weft._weft import Dispatcher
    from weft.cuda._jit import jit

    return of if isinstance(of, Dispatcher) else jit(of)
