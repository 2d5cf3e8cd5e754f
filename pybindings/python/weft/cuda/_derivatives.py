"""Derivatives of kernels: `vjp` makes the adjoint kernel of a kernel, `jvp` the tangent kernel.

The compiler derives both (`docs/design/derivatives.md`). This module chooses the parameters that have
adjoints or tangents, and checks those of a launch.
"""

from __future__ import annotations

import functools
import types
import weakref

from weft._weft import Dispatcher, interprets_kernels, typeof_value
from weft.cuda._jit import device_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from weft._weft import Type

# Options of the kernel that its adjoint kernel does not have. The kernel has raised its exceptions; its rules and
# coarsening factors are for its own arguments and code.
_DROPPED = {
    "debug": False,
    "exceptions": False,
    "boundscheck": False,
    "coarsen": None,
    "coarsen_blocks": None,
    "tune": False,
    "launch": None,
    "out": None,
}

# The derived kernels.
_made: weakref.WeakSet[Dispatcher] = weakref.WeakSet()

# The elements of arrays that have derivatives.
FLOATS = {"float32", "float64", "complex64", "complex128"}


class _Derived:
    """A kernel that is derived from a kernel, for arguments of any types.

    The first launch with arguments of new types compiles.
    """

    # What a parameter has: an adjoint or a tangent, and the kernel's name.
    _what = "adjoint"
    _is_forward = False

    def __init__(self, kernel: Dispatcher, wrt: tuple[str, ...] | None) -> None:
        code = kernel.py_func.__code__
        self._params = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        unknown = [name for name in wrt or () if name not in self._params]
        if unknown:
            msg = f"`{kernel.__name__}` has no parameter `{unknown[0]}`; its parameters are {', '.join(self._params)}"
            raise ValueError(msg)
        self._kernel = kernel
        self._wrt = wrt
        self._by_types: dict[tuple[Type, ...], tuple[int, ...]] = {}
        self._by_numbers: dict[tuple[int, ...], Dispatcher] = {}

    @property
    def kernel(self) -> Dispatcher:
        """The kernel that it is derived from."""
        return self._kernel

    def dispatcher(self, *args: Any) -> Dispatcher:
        """Give the derived kernel for arguments, to inspect its code.

        Parameters
        ----------
        *args
            Arguments of the kernel.

        Raises
        ------
        TypeError
            The kernel takes another number of arguments.
        CompileError
            weft cannot compile the kernel for these arguments.
        """
        self._check_count(args)
        return self._derived(self._numbers(args))

    def __getitem__(self, configuration: Any) -> _Launcher:
        return _Launcher(self, configuration)

    def __call__(self, *_args: Any) -> Any:
        msg = f"launch it with a configuration: kernel[griddim, blockdim](*args, *{self._what}s)"
        raise ValueError(msg)

    def __repr__(self) -> str:
        wrt = "" if self._wrt is None else f", wrt={self._wrt!r}"
        return f"<{self._what} kernel of {self._kernel.__name__}({', '.join(self._params)}){wrt}>"

    def _names(self, args: tuple[Any, ...]) -> tuple[str, ...]:
        self._check_count(args)
        return tuple(self._params[number] for number in self._numbers(args))

    def _check_count(self, args: Sequence[Any]) -> None:
        if len(args) != len(self._params):
            msg = f"`{self._kernel.__name__}` takes {len(self._params)} arguments, not {len(args)}"
            raise TypeError(msg)

    def _numbers(self, args: Sequence[Any]) -> tuple[int, ...]:
        """Give the numbers of the parameters that have adjoints or tangents."""
        types = tuple(map(typeof_value, args))
        known = self._by_types.get(types)
        if known is None:
            known = self._by_types[types] = tuple(self._chosen(types))
        return known

    def _chosen(self, types: tuple[Type, ...]) -> list[int]:
        has_derivative = [_has_derivative(ty) for ty in types]
        if self._wrt is None:
            return [number for number, has in enumerate(has_derivative) if has]
        effects = self._kernel.effects(types)
        return [
            number
            for number, name in enumerate(self._params)
            if name in self._wrt or (has_derivative[number] and effects[name].writes)
        ]

    def _derived(self, numbers: tuple[int, ...]) -> Dispatcher:
        known = self._by_numbers.get(numbers)
        if known is None:
            wrt = [self._params.index(name) for name in self._wrt or ()]
            known = derived_kernel(self._kernel, numbers, wrt, has_old_contents=True, is_forward=self._is_forward)
            self._by_numbers[numbers] = known
        return known

    def _launch(self, configuration: Any, args: tuple[Any, ...]) -> None:
        count = len(self._params)
        if len(args) < count:
            self._check_count(args)
        numbers = self._numbers(args[:count])
        if len(args) - count != len(numbers):
            names = ", ".join(f"`{self._params[number]}`" for number in numbers)
            msg = (
                f"the {self._what} kernel of `{self._kernel.__name__}` takes its {count} arguments and {len(numbers)} "
                f"{self._what}s, of {names}: got {len(args) - count} {self._what}s"
            )
            raise TypeError(msg)
        for number, given in zip(numbers, args[count:], strict=True):
            _check_given(self._what, self._params[number], args[number], given)
        if isinstance(configuration, tuple) and len(configuration) > 3:
            grid, block, stream, shared, *rest = configuration
            configuration = (grid, block, stream, shared_bytes(shared), *rest)
        self._derived(numbers)[configuration](*args)


class Vjp(_Derived):
    """The adjoint kernel of a kernel, for arguments of any types; `vjp` makes it.

    ``bwd[griddim, blockdim, stream](*args, *adjoints)`` launches it. The first launch with arguments of new types
    compiles.
    """

    def adjoints(self, *args: Any) -> tuple[str, ...]:
        """Give the names of the parameters that have adjoints, in order.

        Parameters
        ----------
        *args
            Arguments of the kernel, without adjoints.

        Raises
        ------
        TypeError
            The kernel takes another number of arguments.
        CompileError
            weft cannot compile the kernel for these arguments.
        """
        return self._names(args)

    def __reduce__(self) -> tuple[Any, ...]:
        return vjp, (self._kernel, self._wrt)


class Jvp(_Derived):
    """The tangent kernel of a kernel, for arguments of any types; `jvp` makes it.

    ``fwd[griddim, blockdim, stream](*args, *tangents)`` launches it. The first launch with arguments of new types
    compiles.
    """

    _what = "tangent"
    _is_forward = True

    def tangents(self, *args: Any) -> tuple[str, ...]:
        """Give the names of the parameters that have tangents, in order.

        Parameters
        ----------
        *args
            Arguments of the kernel, without tangents.

        Raises
        ------
        TypeError
            The kernel takes another number of arguments.
        CompileError
            weft cannot compile the kernel for these arguments.
        """
        return self._names(args)

    def __reduce__(self) -> tuple[Any, ...]:
        return jvp, (self._kernel, self._wrt)


class _Launcher:
    """A derived kernel with a launch configuration."""

    def __init__(self, derived: _Derived, configuration: Any) -> None:
        self._derived = derived
        self._configuration = configuration

    def __call__(self, *args: Any) -> None:
        self._derived._launch(self._configuration, args)


def vjp(kernel: Dispatcher, wrt: str | Sequence[str] | None = None) -> Vjp:
    """Make the adjoint kernel of a kernel: its vector-Jacobian product, for gradients in reverse mode.

    The adjoint kernel takes the kernel's arguments and then their adjoints, in the order of the parameters. The adjoint
    of an array has the type and the shape of the array; that of a scalar is an array of one element. A
    launch, with the kernel's grid and block,

    - adds the gradients to the adjoints of what the kernel reads,
    - reads the adjoints of what the kernel writes, and sets those of overwritten elements to 0.

    It writes none of the kernel's arguments. An array that the kernel updates in place must have the contents from
    before the kernel's launch, if the gradients need them: ``y[i] = math.sin(y[i])``.

    Parameters
    ----------
    kernel
        The kernel. It must have no races; neither its arguments nor the adjoints may overlap.
    wrt
        The names of the parameters whose gradients are computed; by default all arrays and scalars of float32 and
        float64, and arrays of complex numbers. Arrays that the kernel writes always have adjoints.

    Returns
    -------
    Vjp
        An object that is launched like a kernel.

    Raises
    ------
    TypeError
        The first argument is not a kernel.
    ValueError
        The kernel has no parameter of that name.
    NotImplementedError
        Kernels run in Python's interpreter.

    Examples
    --------
    >>> @cuda.jit
    ... def square(x, y):
    ...     i = cuda.grid(1)
    ...     if i < x.size:
    ...         y[i] = x[i] * x[i]
    >>> x, y = np.array([1.0, 2.0, 3.0]), np.zeros(3)
    >>> dx, dy = np.zeros(3), np.ones(3)
    >>> cuda.vjp(square)[1, 32](x, y, dx, dy)
    >>> assert dx.tolist() == [2.0, 4.0, 6.0]
    >>> assert not dy.any()
    """
    return Vjp(_differentiable("vjp", kernel), _tuple(wrt))


def jvp(kernel: Dispatcher, wrt: str | Sequence[str] | None = None) -> Jvp:
    """Make the tangent kernel of a kernel: its Jacobian-vector product, for derivatives in forward mode.

    The tangent kernel takes the kernel's arguments and then their tangents, in the order of the parameters. The tangent
    of an array has the type and the shape of the array; that of a scalar is an array of one element. A launch, with the
    kernel's grid and block, does what the kernel does, and sets the tangent of each element that it writes. This is the
    derivative in a direction, which the tangents of the arguments give.

    Parameters
    ----------
    kernel
        The kernel. Neither its arguments nor the tangents may overlap.
    wrt
        The names of the parameters that have tangents; by default all arrays and scalars of float32 and float64, and
        arrays of complex numbers. Others are constants. Arrays that the kernel writes always have tangents.

    Returns
    -------
    Jvp
        An object that is launched like a kernel.

    Raises
    ------
    TypeError
        The first argument is not a kernel.
    ValueError
        The kernel has no parameter of that name.
    NotImplementedError
        Kernels run in Python's interpreter.

    Examples
    --------
    >>> @cuda.jit
    ... def square(x, y):
    ...     i = cuda.grid(1)
    ...     if i < x.size:
    ...         y[i] = x[i] * x[i]
    >>> x, y = np.array([1.0, 2.0, 3.0]), np.zeros(3)
    >>> dx, dy = np.array([1.0, 0.0, 1.0]), np.zeros(3)
    >>> cuda.jvp(square)[1, 32](x, y, dx, dy)
    >>> assert y.tolist() == [1.0, 4.0, 9.0]
    >>> assert dy.tolist() == [2.0, 0.0, 6.0]
    """
    return Jvp(_differentiable("jvp", kernel), _tuple(wrt))


def custom_vjp(function: Callable[..., Any] | None = None, backward: Callable[..., Any] | None = None) -> Any:
    """Make a device function whose derivative is computed by another device function.

    In kernels, it is ``function``. In adjoint kernels, ``backward(*args, *results, *adjoints)`` gives the derivative.
    It takes the arguments of the call, its results, and the adjoints of those results that are floats or complex
    numbers. It returns the adjoint of each argument that is a float or a complex number: a number for one, a tuple for
    several. It may return one for each integer, too, which is ignored.
    Both functions compute from numbers only: they take and access no arrays, and raise no exceptions.

    Parameters
    ----------
    function
        The device function, or a Python function. It returns a number or a tuple of numbers.
    backward
        The function that computes the adjoints of the arguments: a device function, or a Python function.

    Returns
    -------
    Dispatcher or decorator
        A device function where ``function`` was given, else a decorator.

    Raises
    ------
    TypeError
        An argument is neither a device function nor a Python function.

    Examples
    --------
    The square root, with the derivative 0 at 0:

    >>> def root_backward(x, y, g):
    ...     return g * 0.5 / y if y > 0.0 else 0.0
    >>> @cuda.custom_vjp(backward=root_backward)
    ... def root(x):
    ...     return x**0.5
    >>> @cuda.jit
    ... def roots(x, y):
    ...     i = cuda.grid(1)
    ...     if i < x.size:
    ...         y[i] = root(x[i])
    >>> x, y = np.array([0.0, 4.0]), np.zeros(2)
    >>> dx, dy = np.zeros(2), np.ones(2)
    >>> cuda.vjp(roots)[1, 32](x, y, dx, dy)
    >>> assert dx.tolist() == [0.0, 0.25]
    """
    if backward is None:
        msg = "custom_vjp() needs the function that computes the adjoints: custom_vjp(function, backward)"
        raise TypeError(msg)
    rule = _device("backward", backward)
    if function is None:
        return lambda function: custom_vjp(function, rule)
    own = _device("function", function)
    made = Dispatcher(
        own.py_func, own.targetoptions, own.declared_signatures, own.given_source, own.cached_source, None, rule
    )
    functools.update_wrapper(made, own.py_func)
    return made


def _device(name: str, function: Callable[..., Any]) -> Dispatcher:
    """Give the device function of an argument of `custom_vjp`."""
    if not isinstance(function, Dispatcher):
        if not isinstance(function, types.FunctionType):
            msg = f"`{name}` of custom_vjp() is a device function or a Python function, not {function!r}"
            raise TypeError(msg)
        return device_function(function)
    if not function.device:
        msg = f"`{name}` of custom_vjp() is a device function, not the kernel `{function.__name__}`"
        raise TypeError(msg)
    return function


def _differentiable(name: str, kernel: Dispatcher) -> Dispatcher:
    given: Any = kernel
    if not isinstance(given, Dispatcher) or given.device:
        msg = f"{name}() takes a kernel, not {given!r}"
        raise TypeError(msg)
    if interprets_kernels():
        msg = "derivatives of kernels are compiled: they do not run in Python's interpreter"
        raise NotImplementedError(msg)
    return kernel


def _tuple(wrt: str | Sequence[str] | None) -> tuple[str, ...] | None:
    return (wrt,) if isinstance(wrt, str) else None if wrt is None else tuple(wrt)


def derived_kernel(
    kernel: Dispatcher,
    numbers: Sequence[int],
    wrt: Sequence[int] = (),
    *,
    has_old_contents: bool = False,
    is_forward: bool = False,
) -> Dispatcher:
    """Make the adjoint kernel with adjoints of some parameters, which are its last parameters.

    Parameters
    ----------
    kernel
        The kernel.
    numbers
        The parameters that have adjoints.
    wrt
        Those whose gradients are requested: it is an error if a derivative by one of them reaches no output.
    has_old_contents
        Arguments that the kernel writes have the contents from before the kernel's launch.
    is_forward
        Make the tangent kernel, with tangents instead of adjoints.

    Raises
    ------
    NotImplementedError
        The kernel is a derived one.
    """
    if kernel in _made:
        msg = f"`{kernel.__name__}` is an adjoint or tangent kernel: second derivatives are not supported"
        raise NotImplementedError(msg)
    options = {**kernel.targetoptions, **_DROPPED}
    made = Dispatcher(
        kernel.py_func,
        options,
        [],
        kernel.given_source,
        kernel.cached_source,
        (list(numbers), list(wrt), has_old_contents, is_forward),
    )
    functools.update_wrapper(made, kernel.py_func)
    _made.add(made)
    return made


def shared_bytes(given: Any) -> Any:
    """Give the dynamic shared memory of a launch of a derived kernel: the kernel's, and that of the adjoints."""
    if not hasattr(given, "__index__") or (count := given.__index__()) < 0:
        # The launch raises the error.
        return given
    return -(-count // 16) * 16 + count


def _has_derivative(ty: Type) -> bool:
    dtype = getattr(ty, "dtype", None)
    if dtype is None:
        return str(ty) in ("float32", "float64")
    return str(dtype) in FLOATS


def _check_given(what: str, name: str, value: Any, adjoint: Any) -> None:
    """Check that an adjoint or a tangent has the shape of its array, and an element for each of its elements."""
    shape = getattr(value, "shape", None)
    given = getattr(adjoint, "shape", None)
    if shape is None or shape == ():
        if given is not None and tuple(given) != (1,):
            msg = f"the {what} of the scalar `{name}` is an array of one element, not of shape {tuple(given)}"
            raise ValueError(msg)
        return
    if given is not None and tuple(given) != tuple(shape):
        msg = f"the {what} of `{name}` has shape {tuple(given)}, but `{name}` has shape {tuple(shape)}"
        raise ValueError(msg)
    strides = getattr(adjoint, "strides", None)
    if strides is not None and any(stride == 0 for stride, extent in zip(strides, shape, strict=True) if extent > 1):
        msg = f"elements of the {what} of `{name}` overlap: a stride is 0"
        raise ValueError(msg)
