"""The compiled code of a dispatcher, as in numba's dispatchers: overloads, results of compilations, metadata."""

from __future__ import annotations

from weft._weft import Kernel, Signature, parse_signature
from weft.cuda._code.results import CodeLibrary, CompileResult
from weft.cuda._jit import _make
from weft.errors import TypingError
from weft.types import none

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from weft._weft import Dispatcher, Type

Types = tuple["Type", ...]


def overloads(dispatcher: Dispatcher) -> dict[Types, CompileResult]:
    """Give what was compiled of a device function by the types of its arguments: all signatures are."""
    known = _known(dispatcher)
    for signature in dispatcher.declared_signatures:
        if signature.args not in known:
            compile_device(dispatcher, signature.args)
    return dict(known)


def signatures(dispatcher: Dispatcher) -> list[Signature]:
    """Give the signatures that a dispatcher has compiled."""
    return [made.signature for made in dispatcher.overloads.values()]


def compile_device(dispatcher: Dispatcher, args: Any, return_type: Any = None) -> CompileResult:
    """Compile a function as a device function, once for each tuple of types.

    Parameters
    ----------
    dispatcher
        The result of `cuda.jit`, which may also be a kernel.
    args
        The types of its arguments, or a signature.
    return_type
        The type that its result is converted to; the function's own if nothing is said.

    Raises
    ------
    CompileError
        The function cannot be compiled for these types.
    TypeError
        The numbers of types and parameters differ, or an argument is not a type.
    """
    types = parse_signature(args).args
    known = _known(dispatcher)
    made = known.get(types)
    if made is not None:
        return made
    function = dispatcher
    if return_type is not None or not dispatcher.device:
        options = {**dispatcher.targetoptions, "device": True}
        declared = [] if return_type is None else [parse_signature(return_type(*types))]
        function = _make(dispatcher, options=options, signatures=declared, source=dispatcher.given_source)
    declared_type = next((each.return_type for each in function.declared_signatures if each.args == types), none)
    returned = function.result_type(types) if declared_type == none else declared_type
    signature = Signature(none if returned is None else returned, types)
    library = CodeLibrary(dispatcher.__name__, function, types)
    # Compile the code here, so that errors are reported here.
    library.get_asm_str()
    # Another thread may have been faster.
    return known.setdefault(types, CompileResult(signature, library, {"name": dispatcher.__name__, "device": True}))


def get_overload(dispatcher: Dispatcher, sig: Any) -> Kernel | CompileResult:
    """Give what was compiled for a signature.

    Raises
    ------
    KeyError
        Nothing was.
    """
    found: Kernel | CompileResult = dispatcher.overloads[parse_signature(sig).args]
    return found


def get_compile_result(dispatcher: Dispatcher, sig: Any) -> Kernel | CompileResult:
    """Give what is compiled for a signature, and compile it if it was not.

    Raises
    ------
    TypingError
        Nothing was compiled for the types, and compilation is disabled.
    """
    types = parse_signature(sig).args
    if dispatcher.device:
        return compile_device(dispatcher, types)
    try:
        return dispatcher.compile(types)
    except RuntimeError as error:
        if types in dispatcher.overloads or not str(error).startswith("Compilation disabled"):
            raise
        msg = f"{sig} not available and compilation disabled"
        raise TypingError(msg) from None


def get_metadata(dispatcher: Dispatcher, signature: Any = None) -> dict[Any, Any]:
    """Return the metadata of a compilation: of that for a signature, or of each by the types of its arguments.

    Returns
    -------
    dict
        Of a kernel its ``name``, its ``symbol`` in the code, its ``target``, and whether it is ``cooperative`` and
        ``launch_config_sensitive``; of a device function its ``name``. ``device`` says which of them it is.
    """
    known = dispatcher.overloads
    if signature is not None:
        return _metadata(dispatcher, known[parse_signature(signature).args])
    return {types: _metadata(dispatcher, made) for types, made in known.items()}


def _metadata(dispatcher: Dispatcher, made: Kernel | CompileResult) -> dict[str, Any]:
    if isinstance(made, CompileResult):
        return made.metadata
    return {
        "name": dispatcher.__name__,
        "device": False,
        "symbol": made.entry_name,
        "target": made.target,
        "cooperative": made.cooperative,
        "launch_config_sensitive": made.launch_config_sensitive,
    }


def _known(dispatcher: Dispatcher) -> dict[Types, CompileResult]:
    known: dict[Types, CompileResult] = dispatcher.__dict__.setdefault("_device_overloads", {})
    return known
