# weft: sig = "void(int32[::1], float32)"
"""Python of 3.12 to 3.14 that the parser does not know: places behind it are right, and errors in it are at theirs."""

import math
from typing import Any

from weft import cuda

table = {"a": 1, "é": 2}
label = f"{table["é"]:>{table["a"]}} {"\n".join(("x", "y"))} {  # a comment with a } and a "
    table['''a''']!r
}"
page = t"{label!r:>10} and {table["a"]}" rt'\d{label}'


class Pair[T: int = int, *Ts = *tuple[int, ...], **P = [int, str]]:
    def first[U = T](self, é: U = f"{table["é"]}") -> U: ...


type Alias[T = dict[str, int]] = list[T]


def host(*names, path=None):
    with (open(path) as one, open(f"{path["b"]}") as other):
        pass
    try:
        pass
    except ValueError, KeyError:
        pass
    finally:
        return None
    try:
        pass
    except* OSError, EOFError,:
        pass
    match names:
        case [str() as first, *rest] if (n := len(rest)) > 1:
            return f'{first}{'é'}'
        case {"x": 1, **others} | {"y": others}:
            return lambda *, a, **k: a


@cuda.jit
def newer_syntax(x, y):
    "é"; unknown_1  # error: [E0201] "unknown_1"
    print(f"{x["a"]}", unknown_2)  # error: [E0207] "no field `a`" # error: [E0201] "unknown_2"
    print(f'{'é'}{x[0]:{'>5'}}{"\n"}', unknown_3)  # error: [E0201] "unknown_3"
    print(f"{x[0] # why: }"
        + unknown_4}")  # error: [E0201] "unknown_4"
    print(f"{f"{f"{unknown_5}"}"}")  # error: [E0201] "unknown_5"
    print(f'{y:{'x'}}')  # error: [E0211] "does not take a float"
    print(f"{y = !r:{unknown_6['w']}}")  # error: [E0211] "compile-time constant" # error: [E0201] "unknown_6"
    z = t"{x["a"]}"; unknown_7  # error: [E0103] "template string" # error: [E0201] "unknown_7"
    try:  # error: [E0102] "`try` statement"
        pass
    except ValueError, KeyError:
        pass
    unknown_8  # error: [E0201] "unknown_8"
    type Inner[T = int] = list[T]  # error: [E0102] "`type` statement"

    def helper[T = int](a: T = f"{'a'}") -> T:
        return a + unknown_9  # error: [E0201] "unknown_9"

    x[0] = helper(1) + unknown_10  # error: [E0201] "unknown_10"
