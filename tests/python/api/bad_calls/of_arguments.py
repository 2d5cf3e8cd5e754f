"""Wrong arguments of kernels."""

from __future__ import annotations

from bad_calls.cases import call

CASES = [
    # Number and names of arguments.
    call("two[1, 1](x())", "TypeError", "n", "2|two"),
    call("two[1, 1]()", "TypeError", "x", "2|two"),
    call("inc[1, 1](x(), 5)", "TypeError", "1 |one|takes"),
    call("two[1, 1](x(), nn=5)", "TypeError", "nn"),
    call("two[1, 1](x(), 5, n=5)", "TypeError", "`?n`?"),
    call("two[1, 1](*[x()] * 9)", "TypeError", "2|two"),
    call("inc.forall(8)(x(), 1, 2)", "TypeError", "1 |one|takes"),
    # Kinds of arguments.
    call("inc[1, 1]([1, 2, 3])", "TypeError", "`x`", "array|tuple"),
    call("inc[1, 1]({})", "TypeError", "`x`", "pass"),
    call("inc[1, 1]({1})", "TypeError", "`x`", "pass"),
    call("inc[1, 1](object())", "TypeError", "`x`", "pass|array"),
    call("two[1, 1](x(), len)", "TypeError", "`n`"),
    call("two[1, 1](x(), print)", "TypeError", "`n`"),
    call("two[1, 1](x(), np)", "TypeError", "`n`", "global|module|pass|kernel"),
    call("two[1, 1](x(), np.float32)", "TypeError|CompileError", "`n`|number|type|float32"),
    call("two[1, 1](x(), slice(1, 2))", "TypeError", "`n`", "pass"),
    call("two[1, 1](x(), range(3))", "TypeError", "`n`|range"),
    call("two[1, 1](x(), ...)", "TypeError", "`n`"),
    call("two[1, 1](x(), memoryview(b'a'))", "TypeError|CompileError", "`n`|[Aa]rray|write|memoryview"),
    call("two[1, 1](x(), __import__('decimal').Decimal(1))", "TypeError", "`n`", "float"),
    call("two[1, 1](x(), __import__('fractions').Fraction(1, 2))", "TypeError", "`n`", "float"),
    call("two[1, 1](x(), __import__('pathlib').Path('a'))", "TypeError", "`n`"),
    call("two[1, 1](x(), __import__('datetime').date(2020, 1, 1))", "TypeError", "`n`", "datetime64|pass"),
    call("inc[1, 1](i for i in range(3))", "TypeError", "`x`", "array|tuple"),
    call("inc[1, 1](map(float, [1]))", "TypeError", "`x`", "array|tuple"),
    call("inc[1, 1]((1, [2]))", "TypeError", "list", "array|tuple"),
    call("inc[1, 1]((1, {}))", "TypeError", "dict"),
    call("inc[1, 1](type('Series', (), {'values': x()})())", "TypeError", "`x`", "array|pass"),
    call("two[1, 1](x(), cuda.stream())", "TypeError", "`n`", r"kernel\[|configuration|pass"),
    call("two[1, 1](x(), inc)", "TypeError", "`n`", "kernel|device"),
    call("two[1, 1](x(), cuda.event())", "TypeError", "`n`"),
    call("inc[1, 1](cuda)", "TypeError", "`x`"),
    call("inc[1, 1](cuda.In([1, 2]))", "TypeError", "list|In", "array"),
    call("two[1, 1](x(), cuda.Out(5))", "TypeError", "Out|int", "array"),
    call("inc[1, 1](cuda.InOut(None))", "TypeError", "InOut|None", "array"),
    call("inc[1, 1](cuda.In())", "TypeError", "argument"),
    # Arrays.
    call("inc[1, 1](np.array([None]))", "TypeError", "object", "astype|dtype"),
    call("inc[1, 1](np.array(['a', 'b'], object))", "TypeError", "object"),
    call("inc[1, 1](x().astype('>f4'))", "TypeError", ">|big|byte", "astype|newbyteorder|byte"),
    call("inc[1, 1](x(8, np.longdouble))", "TypeError", "longdouble|float128", "float64"),
    call("inc[1, 1](x(8, np.clongdouble))", "TypeError", "longdouble|complex256", "complex128"),
    call("inc[1, 1](np.ma.masked_array(x(), mask=[1] * 8))", "TypeError", "mask", "filled|data"),
    call("inc[1, 1](np.zeros((1,) * 8))", "TypeError", "`x`", "7"),
    call("inc[1, 1](np.zeros(3, [('a', object)]))", "TypeError", "'O'"),
    call("inc[1, 1](np.zeros(3, 'V5'))", "TypeError", "V5|void"),
    call(
        "a = x(); a.setflags(write=False); inc[1, 1](a)",
        "TypeError|CompileError|ValueError",
        "read.?only|not be written",
    ),
    call(
        "inc[1, 8](np.broadcast_to(np.float32(1), 8))", "TypeError|CompileError|ValueError", "read.?only|not be written"
    ),
    call("inc[1, 1](b'abc')", "TypeError|CompileError", "bytes|char|read.?only"),
    call(
        "inc[1, 1](type('A', (), {'__cuda_array_interface__': {'version': 3}})())",
        "TypeError|ValueError",
        "typestr|shape|data|interface",
    ),
    call(
        "inc[1, 1](type('A', (), {'__cuda_array_interface__': 5})())",
        "TypeError|ValueError",
        "interface",
        "dict",
    ),
    call(
        "a = dict(shape=(-1,), typestr='<f4', data=(1, False), version=3)\n"
        "inc[1, 1](type('A', (), {'__cuda_array_interface__': a})())",
        "TypeError|ValueError",
        "shape|-1",
    ),
    call(
        "a = dict(shape=(2,), typestr='<q9', data=(1, False), version=3)\n"
        "inc[1, 1](type('A', (), {'__cuda_array_interface__': a})())",
        "TypeError|ValueError",
        "q9|typestr",
    ),
    call(
        "inc[1, 1](type('A', (), {'__array_interface__': {'version': 3}})())",
        "TypeError|ValueError|AttributeError",
        "`x`|interface|typestr|shape",
    ),
    # Numbers.
    call("two[1, 1](x(), 2**64)", "OverflowError", "`n`", "2\\*\\*64|64|array|float"),
    call("two[1, 1](x(), -2**63 - 1)", "OverflowError", "`n`", "64|array|float"),
    call("two[1, 1](x(), (1, 2**80))", "OverflowError", "`n`|large"),
    # Arguments that contradict a declared signature.
    call("cuda.jit('void(float32[:], int32)')(two.py_func)[1, 1](x(), 1.5)", "TypeError", "`n`", "int32"),
    call("cuda.jit('void(float32[:], int32)')(two.py_func)[1, 1](x(), x())", "TypeError", "`n`|array", "int32"),
    call("cuda.jit('void(float32[:], int32)')(two.py_func)[1, 1](5, 1)", "TypeError", "`x`|int64", "float32"),
    call(
        "cuda.jit('void(float32[:], int32)')(two.py_func)[1, 1](x(8, np.float64), 1)", "TypeError", "float64", "float32"
    ),
    call(
        "cuda.jit('void(float32[:], int32)')(two.py_func)[1, 1](np.zeros((2, 2), np.float32), 1)",
        "TypeError",
        "2d",
        "1d",
    ),
    call(
        "cuda.jit('void(float32[::1], int32)')(two.py_func)[1, 1](x(16)[::2], 1)",
        "TypeError",
        r"\bA\b",
        r"\bC\b|contiguous",
    ),
    call(
        "cuda.jit('void(float32[:, ::1], int32)')(two.py_func)[1, 1](np.zeros((2, 3), 'f4', 'F'), 1)",
        "TypeError",
        r"\bF\b",
        r"\bC\b",
    ),
    call("cuda.jit('void(float32[:], boolean)')(two.py_func)[1, 1](x(), 'yes')", "TypeError", "`n`", "bool"),
]
