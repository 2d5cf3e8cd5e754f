"""Finds the source of a function, and the folders of Python packages.

Python does not store the source of a function, and a file may change after it was loaded. So weft reads the file when a
function is decorated, soon after the file was loaded. When the function is first compiled, weft checks that Python
compiles the source to the code of the function.

A function that `exec` made has no file. Its source is often still in a variable or a constant of the caller, so weft
searches the frames of the current calls. The source of a simple function can also be rebuilt from its code. weft uses
only a source that compiles to the code of the function.
"""

from __future__ import annotations

import os
from _thread import RLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType
    from typing import Any, Literal

_VERSIONS = 4
"""The number of cached versions of a file: functions of a factory that is called after an edit have an older one."""

_FRAMES = 64
"""As many calls under way are searched for the text of a function without a file."""

_SEARCHED = 1 << 20
"""As many characters are compared with such a function."""

# Bits of a code object's flags.
_FUNCTION = 0x1  # a function, not a class or a module
_KIND = 0x2C  # ``*args``, ``**kwargs``, generator
_ASYNC = 0x280  # coroutine, asynchronous generator
_FUTURES = 0x1FF0000  # ``from __future__``

_LAMBDA = "lambda_"
"""The name of the function that is made of a lambda, in one line."""

_LOADERS = ("_frozen_importlib_external", "zipimport")
"""Modules of the loaders that run a file's code as it is."""

# `catch_warnings` swaps the process's filters: two threads that did so at once would leave wrong filters. The lock is
# reentrant, because a signal handler may run on the thread that holds it.
_lock = RLock()
# In the child of a fork, no other thread exists that could release it.
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


class Text:
    """The text of a file, as it was at one time."""

    def __init__(self, stamp: tuple[int, int] | None, content: bytes | list[str]) -> None:
        self.stamp = stamp
        self._content = content

    def lines(self) -> list[str]:
        """Its lines with their ends; none if it is not in the encoding that it declares."""
        content = self._content  # another thread may store the lines concurrently
        if isinstance(content, bytes):
            text = _decoded(content)
            content = self._content = [line + "\n" for line in text.split("\n")]
        return content


def _decoded(content: bytes) -> str:
    """Decode a file as Python does; gives nothing if it is not in the encoding that it declares."""
    try:
        if not content.startswith(b"\xef\xbb\xbf") and b"coding" not in b"".join(content.split(b"\n", 2)[:2]):
            # No encoding is declared. The module that parses declarations is slow to import.
            return content.decode().replace("\r\n", "\n").replace("\r", "\n")
        from importlib.util import decode_source

        return decode_source(content)
    except (SyntaxError, UnicodeDecodeError):
        return ""


_files: dict[str, list[Text]] = {}

_SMALL = "LOAD_SMALL_INT"


def keep(function: Callable[..., object]) -> Text | None:
    """Read the file of a function; gives None if there is none.

    Parameters
    ----------
    function
        A Python function.
    """
    text = _loaded(function)
    if text is None:
        import sys

        text = _executed(function, sys._getframe(1))
    return text


def _loaded(function: Callable[..., object]) -> Text | None:
    name = function.__code__.co_filename
    return (None if name.startswith("<") else _read(name)) or _registered(function)


def _read(name: str) -> Text | None:
    try:
        status = os.stat(name)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    stamp = (status.st_mtime_ns, status.st_size)
    versions = _files.setdefault(name, [])
    if versions and versions[-1].stamp == stamp:
        return versions[-1]
    text = _load(name, stamp)
    if text is not None:
        versions.append(text)
        del versions[:-_VERSIONS]
    return text


def _load(name: str, stamp: tuple[int, int] | None) -> Text | None:
    try:
        with open(name, "rb") as file:  # noqa: PTH123
            return Text(stamp, file.read())
    except (OSError, ValueError):
        return None


def _registered(function: Callable[..., object]) -> Text | None:
    """Look into Python's own table of lines: notebook cells, doctests, modules in archives.

    From Python 3.13 on it also has the source typed into a plain interpreter, or passed with ``-c``.
    """
    import linecache
    import sys

    name = function.__code__.co_filename
    lines = linecache.getlines(name, function.__globals__)
    if not lines and name.startswith("<") and sys.version_info >= (3, 13):
        import contextlib
        import inspect

        # All such sources have the same name, so the code object identifies the source.
        with contextlib.suppress(OSError):
            lines = inspect.findsource(function)[0]
    return Text(None, lines) if lines else None


def _executed(function: Callable[..., object], frame: FrameType | None) -> Text | None:
    """Find the text of a function that `exec` made among the strings of the calls under way."""
    code = function.__code__
    left = _SEARCHED
    for text in _strings(frame, code.co_name):
        left -= len(text)
        if left < 0:
            break
        lines = [line + "\n" for line in text.split("\n")]
        # The text may have been stripped or appended to another: try all definitions of this name.
        starts = [i for i, line in enumerate(lines, 1) if line.split("(")[0].split() == ["def", code.co_name]]
        for start in sorted({max(code.co_firstlineno, 1), *starts}):
            block = _block(lines, start)
            if block is None or not _is_of(code, block, lines):
                continue
            if start == code.co_firstlineno:
                return Text(None, lines)
            return _beginning(code.co_firstlineno, block)
    from weft import _rebuild

    for rebuilt in _rebuild.rebuilt_sources(function):
        if _is_of(code, rebuilt, []):
            return _beginning(code.co_firstlineno, rebuilt)
    return None


def _beginning(first: int, block: str) -> Text:
    """Put a definition where its function's code says that it begins."""
    return Text(None, ["\n"] * (first - 1) + block.splitlines(keepends=True))


def _strings(frame: FrameType | None, name: str) -> Iterator[str]:
    """Give the strings that may define a function: of variables and constants of the calls under way, innermost first.

    A string comes once.
    """
    seen: set[int] = set()
    for _ in range(_FRAMES):
        if frame is None:
            break
        # Copies: another thread may bind names meanwhile.
        values = [*frame.f_locals.values(), *frame.f_code.co_consts]
        if id(frame.f_globals) not in seen:
            seen.add(id(frame.f_globals))
            values += frame.f_globals.values()
        for value in values:
            if type(value) is str and id(value) not in seen and name in value and "def" in value:
                seen.add(id(value))
                yield value
        frame = frame.f_back


def of(function: Callable[..., object], source: str | None, cached: Text | None) -> tuple[str, str, int, str | None]:
    """Name of the file, text, number of its first line, and the class around it.

    The text is that of one function with its decorators, indented as in the file.

    Parameters
    ----------
    function
        A Python function.
    source
        Its source, if the user passed it.
    cached
        The result of `keep` when the function was decorated.
    """
    code = function.__code__
    name, first = code.co_filename, max(code.co_firstlineno, 1)
    if source is not None:
        _check_given(function, source)
        return name, source, first if function.__name__ == _LAMBDA else 1, enclosing_class(code)
    found = False
    for text in _candidates(function, cached):
        lines = text.lines()
        block = _indented(lines, code)
        if block is not None and (
            _same(code, _compile_directly(block, code)) or _same(code, _compile(block, code, imports=code.co_names))
        ):
            return name, block, first, enclosing_class(code)
        block = _block(lines, first)
        if block is not None and (_is_of(code, block, lines) or (text is cached and _is_rewritten(function, block))):
            return name, block, first, enclosing_class(code)
        # All code without a file shares names such as `<string>`.
        found = found or not name.startswith("<")
    from weft.errors import SourceError

    if found:
        msg = (
            f"the text at {name}:{first} is not that of `{function.__qualname__}`: the file was changed after it was "
            "loaded, or the function was made by exec under the file's name. Load the module again, or pass the "
            "function's text with cuda.jit(source=text)"
        )
    else:
        msg = (
            f"weft compiles the text of `{function.__qualname__}`, but Python has none for it ({name}): it was made "
            "by exec from a text that is in no variable any more, or typed into a plain interpreter of a Python before "
            "3.13. Put it into a file or a notebook cell, decorate it where its text is at hand, or pass its text with "
            "cuda.jit(source=text)"
        )
    raise SourceError(msg) from None


def named(function: Any) -> tuple[Any, str | None]:
    """Give a function and its text, if there is something to say of it: that of a lambda is a definition's.

    Parameters
    ----------
    function
        A Python function, which is returned unchanged unless it is a lambda.
    """
    if getattr(function, "__name__", "") != "<lambda>" or not hasattr(function, "__code__"):
        return function, None
    import ast
    import types

    code = function.__code__
    cached = _loaded(function)
    try:
        tree = _quietly("".join(cached.lines() if cached else []), code, ast.PyCF_ONLY_AST)
    except (SyntaxError, ValueError):
        tree = ast.Module([], [])
    # Of nested lambdas, match the inner one first: the code of the outer one contains it.
    for node in reversed(list(ast.walk(tree))):
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno and _is_lambda(code, node):
            text = f"def {_LAMBDA}({ast.unparse(node.args)}): return {ast.unparse(node.body)}\n"
            own = code.replace(co_name=_LAMBDA, co_qualname=code.co_qualname.replace("<lambda>", _LAMBDA))
            made = types.FunctionType(own, function.__globals__, _LAMBDA, function.__defaults__, function.__closure__)
            made.__module__ = function.__module__
            made.__doc__ = function.__doc__
            return made, text
    from weft.errors import SourceError

    msg = f"{code.co_filename}:{code.co_firstlineno}: the source of this lambda was not found: use def"
    raise SourceError(msg)


def _is_lambda(code: CodeType, node: ast.Lambda) -> bool:
    """Whether Python makes a lambda's code of an expression."""
    import ast

    for imports in (code.co_names, ()):
        statement: Any = ast.copy_location(ast.Expr(node), node)
        try:
            module = _quietly(_enclosed(statement, code, imports), code)
        except (SyntaxError, ValueError):
            continue
        if any(_same(code, found) for found in _functions(module, code)):
            return True
    return False


def enclosing_class(code: CodeType) -> str | None:
    """Name the innermost class around a function, which goes into its private names.

    Parameters
    ----------
    code
        The function's code.
    """
    import itertools

    # `C.m.<locals>.f` is in the class `C`. A comprehension has a scope without `<locals>`, but is not a class.
    path = code.co_qualname.split(".")
    classes = [a for a, b in itertools.pairwise(path) if b != "<locals>" and not a.startswith("<")]
    return classes[-1] if classes else None


def mangled(name: str, class_: str | None) -> str:
    """Give a name as code in a class has it: ``__x`` in ``C`` is ``_C__x``.

    Parameters
    ----------
    name
        The name as the text has it.
    class_
        The class, if there is one.
    """
    around = (class_ or "").lstrip("_")
    private = around and name.startswith("__") and not name.endswith("__")
    return f"_{around}{name}" if private else name


def _check_given(function: Callable[..., object], source: str) -> None:
    """Raise an error if a text that the user gave does not define one function, of the right name."""
    import ast

    from weft.errors import SourceError

    try:
        tree = ast.parse("if 1:\n" + source if source[:1].isspace() else source)
    except (SyntaxError, ValueError):
        return  # The compiler reports the location.
    body = tree.body[0].body if source[:1].isspace() and isinstance(tree.body[0], ast.If) else tree.body
    names = [node.name for node in body if isinstance(node, ast.FunctionDef)]
    wanted = function.__code__.co_name
    if len(names) > 1:
        msg = f"the source of `{wanted}` defines {len(names)} functions ({', '.join(names)}): pass only one"
        raise SourceError(msg)
    if names and names != [wanted]:
        msg = f"the source of `{wanted}` defines `{names[0]}`"
        raise SourceError(msg)


def _candidates(function: Callable[..., object], cached: Text | None) -> Iterator[Text]:
    """Yield sources that may contain the function: as decorated, then older ones, then the current one."""
    name = function.__code__.co_filename
    if cached is not None:
        yield cached
    yield from (text for text in reversed(_files.get(name, [])) if text is not cached)
    # A stamp does not show a change that preserves the file's size and time.
    now = None if name.startswith("<") else _load(name, None)
    if now is not None:
        yield now
    registered = _registered(function)
    if registered is not None:
        yield registered
    if name.startswith("<"):
        import sys

        executed = _executed(function, sys._getframe(1))
        if executed is not None:
            yield executed


def _indented(lines: list[str], code: CodeType) -> str | None:
    """Cut out a function by its indentation: quickly, but wrong where a text at its end goes on further left."""
    first = max(code.co_firstlineno, 1)
    last = max(_last_line(code), first)
    if last > len(lines):
        return None
    width = len(lines[first - 1]) - len(lines[first - 1].lstrip())
    end = last
    for number, line in enumerate(lines[last:], last + 1):
        bare = line.lstrip()
        if bare and not bare.startswith("#"):
            if len(line) - len(bare) <= width:
                break
            end = number
    return "".join(lines[first - 1 : end])


def _last_line(code: CodeType) -> int:
    """Find the last line that a function's code has something of."""
    lines = [end or line or 0 for line, end, _, _ in code.co_positions()]
    inner = [_last_line(constant) for constant in code.co_consts if hasattr(constant, "co_code")]
    return max([*lines, *inner], default=0)


def _block(lines: list[str], first: int) -> str | None:
    """Cut out the definition that begins at line number ``first``, whatever its form."""
    import inspect
    import tokenize

    if first > len(lines):
        return None
    try:
        return "".join(inspect.getblock(lines[first - 1 :]))
    except (tokenize.TokenError, SyntaxError):
        return None


def _is_of(code: CodeType, text: str, lines: list[str]) -> bool:
    """Whether Python makes a function's code of a text, which is part of these lines."""
    # Whether `a.f()` loads a method depends on whether the module imports `a`. Parsing the whole file is slow.
    # If warnings are errors, Python does not fold expressions that it warns about, such as `~True` from 3.12.
    for imports in (code.co_names, ()):
        if any(_same(code, _compile(text, code, imports=imports, warns=warns)) for warns in ("ignore", "error")):
            return True
    whole = _compile_file("".join(lines), code)
    return any(code.co_firstlineno == found.co_firstlineno and _same(code, found) for found in whole)


def _is_rewritten(function: Callable[..., object], text: str) -> bool:
    """Whether a function's code may be that of a text, rewritten by a loader that is not Python's own.

    Pytest's rewrites assertions, a type checker's adds checks. The names and constants of the text, without its
    assertions, must be in the code.
    """
    loader = function.__globals__.get("__loader__")
    if loader is None or isinstance(loader, type) or type(loader).__module__ in _LOADERS:
        return False
    code, bare = function.__code__, _compile(text, function.__code__, optimize=1)
    return bare is not None and _contains(code, bare)


def _compile(
    text: str,
    like: CodeType,
    *,
    imports: tuple[str, ...] = (),
    optimize: int = -1,
    warns: Literal["ignore", "error"] = "ignore",
) -> CodeType | None:
    """Compile the definition in a text; gives None if there is none of that name."""
    import ast

    # Keep the indentation of the file: removing it would change strings.
    indented = text[:1].isspace()
    try:
        tree = _quietly("if 1:\n" + text if indented else text, like, ast.PyCF_ONLY_AST)
        definition = (tree.body[0].body if indented else tree.body)[0]
        if not isinstance(definition, ast.FunctionDef) or definition.name != like.co_name:
            return None
        definition.decorator_list = []
        module = _quietly(_enclosed(definition, like, imports), like, optimize=optimize, warns=warns)
    except (SyntaxError, ValueError, IndexError, Warning):
        return None
    return next(_functions(module, like), None)


def _compile_directly(text: str, like: CodeType) -> CodeType | None:
    """Do the same as `_compile` with all names imported, in a third of the time; returns None for some sources.

    The enclosing class and function are added as source, without a tree. The decorators remain: they are not part of
    the function's code.
    """
    class_ = enclosing_class(like)
    around = [f"def __enclosing__({', '.join(like.co_freevars)}):"] if like.co_freevars else []
    if class_ is not None:
        around.append(f"class {class_}:")
    width = len(text) - len(text.lstrip(" \t"))
    if width and not around:
        around.append("if 1:")
    if width < len(around) or like.co_flags & _ASYNC:
        return None
    lines = [f"{' ' * depth}{line}\n" for depth, line in enumerate(around)]
    if like.co_names:
        lines.insert(0, f"import {', '.join(like.co_names)}\n")
    try:
        return next(_functions(_quietly("".join([*lines, text]), like), like), None)
    except (SyntaxError, ValueError):
        return None


def _compile_file(text: str, like: CodeType) -> Iterator[CodeType]:
    try:
        return _functions(_quietly(text, like), like)
    except (SyntaxError, ValueError):
        return iter(())


def _quietly(
    what: str | ast.Module,
    like: CodeType,
    flags: int = 0,
    optimize: int = -1,
    warns: Literal["ignore", "error"] = "ignore",
) -> Any:
    """Compile without the warnings that Python gave when it loaded the function."""
    import warnings

    with _lock, warnings.catch_warnings():
        warnings.simplefilter(warns)
        return compile(what, "", "exec", flags | like.co_flags & _FUTURES, dont_inherit=True, optimize=optimize)


def _enclosed(definition: ast.FunctionDef, like: CodeType, imports: tuple[str, ...]) -> ast.Module:
    """Put a definition inside of what its code depends on: imports, bindings of its free names, a class."""
    import ast

    inner: list[ast.stmt] = [definition]
    class_ = enclosing_class(like)
    if class_ is not None:
        around = ast.parse(f"class {class_}: pass")
        around.body[0].body = inner  # type: ignore[attr-defined]
        inner = around.body
    if like.co_freevars:
        around = ast.parse(f"def __enclosing__({', '.join(like.co_freevars)}): pass")
        around.body[0].body = inner  # type: ignore[attr-defined]
        inner = around.body
    if imports:
        inner = [*ast.parse(f"import {', '.join(imports)}").body, *inner]
    return ast.Module(inner, [])


def _functions(code: CodeType, like: CodeType) -> Iterator[CodeType]:
    """Find the functions of one name in a module's code."""
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            if constant.co_name == like.co_name and constant.co_flags & _FUNCTION:
                yield constant
            yield from _functions(constant, like)


def _same(code: CodeType, other: CodeType | None) -> bool:
    """Whether two code objects do the same, independent of their position."""
    return other is not None and _essence(code) == _essence(other)


def _essence(code: CodeType) -> tuple[object, ...]:
    return (
        code.co_name,
        code.co_code,
        (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & _KIND),
        (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
        [_constant(constant) for constant in code.co_consts],
    )


def _constant(value: object) -> object:
    """Make constants comparable, such that equal means the same: 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    if hasattr(value, "co_code"):
        return _essence(value)  # type: ignore[arg-type]
    if isinstance(value, tuple):
        return tuple, [_constant(item) for item in value]
    if isinstance(value, frozenset):
        return frozenset, value
    return type(value), repr(value)


def _contains(code: CodeType, part: CodeType) -> bool:
    names = {*code.co_names, *code.co_varnames}
    constants = _constants(code)
    arguments = part.co_argcount + part.co_kwonlyargcount
    return (
        (code.co_argcount, code.co_kwonlyargcount) == (part.co_argcount, part.co_kwonlyargcount)
        and code.co_varnames[:arguments] == part.co_varnames[:arguments]
        and code.co_freevars == part.co_freevars
        and names.issuperset((*part.co_names, *part.co_varnames))
        and all(constant in constants for constant in _constants(part))
    )


def _constants(code: CodeType) -> list[object]:
    """Give what a function's instructions load: Python 3.14 has small integers in these alone."""
    import dis

    found = [step for step in dis.get_instructions(code) if step.opcode in dis.hasconst or step.opname == _SMALL]
    return [_constant(step.argval) for step in found if not hasattr(step.argval, "co_code")]


def site_packages() -> list[str]:
    """Folders with installed packages, where libdevice may be."""
    import sys

    return [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
