"""Derivatives of kernels: `vjp` makes the adjoint kernel of a kernel, `jvp` the tangent kernel.

The compiler derives both (`docs/design/derivatives.md`). This module chooses the parameters that have
adjoints or tangents, and checks those of a launch.
"""

from __future__ import annotations

import functools
import types
from typing import NamedTuple

from weft._weft import Dispatcher, interprets_kernels, typeof_value
from weft.cuda._derived_kernel import DerivedKernel, shared_bytes
from weft.cuda._jit import device_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from weft._weft import Type

# The elements of arrays that have derivatives.
FLOATS = {"float16", "bfloat16", "float32", "float64", "complex64", "complex128"}


class _ForTypes(NamedTuple):
    """The parameters of a kernel and its derived kernel, for arguments of some types."""

    # The names of the parameters of the kernel.
    params: tuple[str, ...]
    # Those that have adjoints or tangents.
    numbers: tuple[int, ...]
    # The derived kernel; None if there are too few arguments.
    derived: DerivedKernel | None


class _Derived:
    """A kernel that is derived from a kernel, for arguments of any types.

    The first launch with arguments of new types compiles.
    """

    # What a parameter has: an adjoint or a tangent, and the kernel's name.
    _what = "adjoint"
    _is_forward = False

    def __init__(self, kernel: Dispatcher | _Derived, wrt: tuple[str, ...] | None) -> None:
        self._kernel = kernel
        self._wrt = wrt
        first = self._first
        code = first.py_func.__code__
        self._params = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        known: tuple[str, ...] = self._params
        for order in range(1, self._order):
            known = (*known, *(_adjoint_name(name, order) for name in known))
        unknown = [name for name in wrt or () if name not in known]
        if unknown:
            msg = f"`{first.__name__}` has no parameter `{unknown[0]}`; its parameters are {', '.join(known)}"
            raise ValueError(msg)
        self._by_types: dict[tuple[Type, ...], _ForTypes] = {}
        self._by_numbers: dict[tuple[Dispatcher, tuple[int, ...]], DerivedKernel] = {}

    @property
    def kernel(self) -> Dispatcher | _Derived:
        """The kernel that it is derived from, or the object, of a second derivative."""
        return self._kernel

    @property
    def _order(self) -> int:
        return 1 if isinstance(self._kernel, Dispatcher) else 1 + self._kernel._order

    @property
    def _first(self) -> Dispatcher:
        """The program's kernel."""
        return self._kernel if isinstance(self._kernel, Dispatcher) else self._kernel._first

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
        types = tuple(map(typeof_value, args))
        return self._checked(types)[1].dispatcher(types)[0]

    def explain(self, *args: Any) -> str:
        """Say which memory a launch takes beside its arguments, and which variants of the kernel it runs.

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
        types = tuple(map(typeof_value, args))
        known, derived = self._checked(types)
        return derived.explained(types, known.params)

    def __getitem__(self, configuration: Any) -> _Launcher:
        return _Launcher(self, configuration)

    def __call__(self, *_args: Any) -> Any:
        msg = f"launch it with a configuration: kernel[griddim, blockdim](*args, *{self._what}s)"
        raise ValueError(msg)

    def __repr__(self) -> str:
        wrt = "" if self._wrt is None else f", wrt={self._wrt!r}"
        of: Any = self._kernel
        if isinstance(of, Dispatcher):
            of = f"{of.__name__}({', '.join(self._params)})"
        return f"<{self._what} kernel of {of}{wrt}>"

    def _names(self, args: tuple[Any, ...]) -> tuple[str, ...]:
        known, _ = self._checked(tuple(map(typeof_value, args)))
        return tuple(known.params[number] for number in known.numbers)

    def _checked(self, types: tuple[Type, ...]) -> tuple[_ForTypes, DerivedKernel]:
        """Give the parameters and the derived kernel for arguments of some types, and check their number."""
        known = self._for_types(types)
        if known.derived is None or len(types) != len(known.params):
            msg = f"`{self._first.__name__}` takes {len(known.params)} arguments, not {len(types)}"
            raise TypeError(msg)
        return known, known.derived

    def _for_types(self, types: tuple[Type, ...]) -> _ForTypes:
        """Give the parameters for arguments that begin with some types, and those that have adjoints or tangents."""
        known = self._by_types.get(types)
        if known is not None:
            return known
        kernel, params = self._subject(types)
        if len(types) < len(params):
            return _ForTypes(params, (), None)
        numbers = tuple(self._chosen(kernel, params, types[: len(params)]))
        derived = self._by_numbers.get((kernel, numbers))
        if derived is None:
            missing = [name for name in self._wrt or () if name not in params]
            if missing:
                msg = f"`{missing[0]}` is no parameter of {self._kernel!r} for these types: {', '.join(params)}"
                raise ValueError(msg)
            wrt = [params.index(name) for name in self._wrt or ()]
            derived = self._by_numbers[kernel, numbers] = DerivedKernel(kernel, numbers, wrt, self._is_forward)
        known = self._by_types[types] = _ForTypes(params, numbers, derived)
        return known

    def _subject(self, types: tuple[Type, ...]) -> tuple[Dispatcher, tuple[str, ...]]:
        """Give the kernel whose derivative it is, and the names of its parameters."""
        if isinstance(self._kernel, Dispatcher):
            return self._kernel, self._params
        inner = self._kernel._for_types(types)
        order = self._kernel._order
        added = (_adjoint_name(inner.params[number], order) for number in inner.numbers)
        plain = self._first if inner.derived is None else inner.derived.plain
        return plain, (*inner.params, *added)

    def _chosen(self, kernel: Dispatcher, params: tuple[str, ...], types: tuple[Type, ...]) -> list[int]:
        has_derivative = [_has_derivative(ty) for ty in types]
        if self._wrt is None:
            return [number for number, has in enumerate(has_derivative) if has]
        effects = list(kernel.effects(types).values())
        return [
            number
            for number, name in enumerate(params)
            if name in self._wrt or (has_derivative[number] and effects[number].writes)
        ]

    def _launch(self, configuration: Any, args: tuple[Any, ...]) -> None:
        known = self._for_types(tuple(map(typeof_value, args)))
        name, count = self._first.__name__, len(known.params)
        if known.derived is None:
            msg = f"`{name}` takes {count} arguments, not {len(args)}"
            raise TypeError(msg)
        if len(args) - count != len(known.numbers):
            names = ", ".join(f"`{known.params[number]}`" for number in known.numbers)
            msg = (
                f"the {self._what} kernel of `{name}` takes its {count} arguments and {len(known.numbers)} "
                f"{self._what}s, of {names}: got {len(args) - count} {self._what}s"
            )
            raise TypeError(msg)
        for number, given in zip(known.numbers, args[count:], strict=True):
            _check_given(self._what, known.params[number], args[number], given)
        if isinstance(configuration, tuple) and len(configuration) > 3:
            grid, block, stream, shared, *rest = configuration
            configuration = (grid, block, stream, self._shared_bytes(shared), *rest)
        known.derived.launch(configuration, args)

    def _shared_bytes(self, given: Any) -> Any:
        inner = given if isinstance(self._kernel, Dispatcher) else self._kernel._shared_bytes(given)
        return shared_bytes(inner)


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


def vjp(kernel: Dispatcher | Vjp | Jvp, wrt: str | Sequence[str] | None = None) -> Vjp:
    """Make the adjoint kernel of a kernel: its vector-Jacobian product, for gradients in reverse mode.

    The adjoint kernel takes the kernel's arguments and then their adjoints, in the order of the parameters. The adjoint
    of an array has the type and the shape of the array; that of a scalar is an array of one element. A
    launch, with the kernel's grid and block,

    - adds the gradients to the adjoints of what the kernel reads,
    - reads the adjoints of what the kernel writes, and sets those of overwritten elements to 0.

    It writes none of the kernel's arguments. An array that the kernel updates in place must have the contents from
    before the kernel's launch, if the gradients need them: ``y[i] = math.sin(y[i])``.

    A launch allocates memory, and waits for a kernel that counts it, if the gradients need values of loops without a
    constant bound; ``explain(*args)`` says so.

    Parameters
    ----------
    kernel
        The kernel. It must have no races; neither its arguments nor the adjoints may overlap. An object of `vjp` or
        `jvp` gives second derivatives.
    wrt
        The names of the parameters whose gradients are computed; by default all arrays and scalars of floats, and
        arrays of complex numbers. Arrays that the kernel writes always have adjoints.

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


def jvp(kernel: Dispatcher | Vjp | Jvp, wrt: str | Sequence[str] | None = None) -> Jvp:
    """Make the tangent kernel of a kernel: its Jacobian-vector product, for derivatives in forward mode.

    The tangent kernel takes the kernel's arguments and then their tangents, in the order of the parameters. The tangent
    of an array has the type and the shape of the array; that of a scalar is an array of one element. A launch, with the
    kernel's grid and block, does what the kernel does, and sets the tangent of each element that it writes. This is the
    derivative in a direction, which the tangents of the arguments give.

    Parameters
    ----------
    kernel
        The kernel. Neither its arguments nor the tangents may overlap. An object of `vjp` or `jvp` gives second
        derivatives: of `vjp`, products with the Hessian.
    wrt
        The names of the parameters that have tangents; by default all arrays and scalars of floats, and arrays of
        complex numbers. Others are constants. Arrays that the kernel writes always have tangents.

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
    several. It may return one for each integer, too, which is ignored. Tangent kernels call it for each result, with
    the adjoint 1 for this one and 0 for the others.
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
        own.py_func, own.targetoptions, own.declared_signatures, own.given_source, own.cached_source, (), rule
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


def _differentiable(name: str, kernel: Any) -> Any:
    given: Any = kernel
    if isinstance(given, _Derived):
        return given
    if not isinstance(given, Dispatcher) or given.device:
        msg = f"{name}() takes a kernel, not {given!r}"
        raise TypeError(msg)
    if interprets_kernels():
        msg = "derivatives of kernels are compiled: they do not run in Python's interpreter; set WEFT_DEVICE=cpu"
        raise NotImplementedError(msg)
    return kernel


def _adjoint_name(param: str, order: int) -> str:
    """Give the name of the adjoint of a parameter, of a derivative of some order, as the compiler does."""
    return f"{param}.adjoint" if order == 1 else f"{param}.adjoint{order}"


def _tuple(wrt: str | Sequence[str] | None) -> tuple[str, ...] | None:
    return (wrt,) if isinstance(wrt, str) else None if wrt is None else tuple(wrt)


def _has_derivative(ty: Type) -> bool:
    dtype = getattr(ty, "dtype", None)
    if dtype is None:
        return str(ty) in ("float16", "bfloat16", "float32", "float64")
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
