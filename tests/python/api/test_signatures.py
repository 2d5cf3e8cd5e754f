"""Declared signatures: their syntax, conversions of arguments, and overload resolution."""

from __future__ import annotations

import numpy as np
import pytest
import weft
from weft import cuda


def fill_function(out, value):
    """Fills an array."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = value


def run(kernel, *args, threads=32):
    kernel[1, threads](*args)
    cuda.synchronize()


SIGNATURES = ["void(float32[:])", "(float32[:],)", "void(f4[::1])", (weft.float32[:],), weft.void(weft.float32[::1])]


@pytest.mark.parametrize("signature", SIGNATURES, ids=str)
def test_one_signature_is_compiled_at_once(signature):
    @cuda.jit(signature)
    def kernel(x):
        x[0] = 3.5

    assert len(kernel.overloads) == 1
    x = np.zeros(2, np.float32)
    kernel[1, 1](x)
    assert x[0] == 3.5


def test_a_list_of_signatures():
    @cuda.jit(["void(float32[:])", "void(int64[:])"])
    def kernel(x):
        x[0] = 3

    assert len(kernel.overloads) == 2
    for dtype in (np.float32, np.int64):
        x = np.zeros(1, dtype)
        kernel[1, 1](x)
        assert x[0] == 3
    with pytest.raises(TypeError, match="No matching definition"):
        kernel[1, 1](np.zeros(1, np.complex64))


def test_scalars_are_converted_to_the_signature():
    @cuda.jit("void(float64[:], int32, float32)")
    def kernel(x, n, a):
        x[0] = n
        x[1] = a

    x = np.zeros(2)
    kernel[1, 1](x, np.int64(5), 0.1)
    assert x.tolist() == [5, np.float32(0.1)]


def test_one_signature_converts_numbers() -> None:
    kernel = cuda.jit("void(complex64[:], complex64)")(fill_function)
    out = np.zeros(2, np.complex64)
    for value in (3, 2.5, 1j, np.int8(-1), True, np.uint64(2**63)):
        run(kernel, out, value)
        assert out.tolist() == [np.complex64(value)] * 2
    wrapping = cuda.jit("void(int32[:], int32)")(fill_function)
    ints = np.zeros(2, np.int32)
    run(wrapping, ints, 2**32 + 5)
    assert ints.tolist() == [5, 5]


def test_integers_as_a_declared_boolean() -> None:
    @cuda.jit("void(boolean, int32[::1])")
    def kernel(flag, out):
        out[0] = 1 if flag else 2

    for value, expected in ((0, 2), (1, 1), (256, 1), (-1, 1), (True, 1), (np.uint64(2**63), 1), (np.int8(0), 2)):
        out = np.zeros(1, np.int32)
        run(kernel, value, out)
        assert out[0] == expected
    with pytest.raises(TypeError, match="declares boolean, but the argument is float64"):
        run(kernel, 1.0, np.zeros(1, np.int32))


def test_one_signature_checks_arrays() -> None:
    kernel = cuda.jit("void(float32[::1], int32)")(fill_function)
    cases = [
        ((np.zeros(2), 1), r"argument 1 \(`out`\) of kernel `fill_function`: .* declares array\(float32, 1d, C\)"),
        ((np.zeros(2), 1), r"but the argument is array\(float64, 1d, C\)"),
        ((np.zeros(4, np.float32)[::2], 1), "1d, A"),
        ((np.zeros((2, 2), np.float32), 1), "2d, C"),
        ((np.zeros(2, np.float32), 1.5), r"argument 2 \(`value`\) .* declares int32, but the argument is float64"),
        ((3, 1), "but the argument is int64"),
    ]
    for args, text in cases:
        with pytest.raises(TypeError, match=text):
            run(kernel, *args)
    locked = np.zeros(2, np.float32)
    locked.flags.writeable = False
    with pytest.raises(TypeError, match="read-only"):
        run(kernel, locked, 1)


def test_several_signatures_choose_the_best() -> None:
    kernel = cuda.jit(["void(float32[:], float32)", "void(float32[:], int64)"])(fill_function)
    assert len(kernel.overloads) == 2
    out = np.zeros(1, np.float32)
    run(kernel, out, 3)
    run(kernel, out, np.float32(2.5))
    assert out.tolist() == [2.5]
    with pytest.raises(TypeError, match=r"No matching definition for .* array\(float64, 1d, C\), int64"):
        run(kernel, np.zeros(1), 3)
    ambiguous = cuda.jit(["void(float32[:], float32)", "void(float32[:], int32)"])(fill_function)
    with pytest.raises(TypeError, match="Ambiguous overloading"):
        run(ambiguous, out, 3)


def test_numbas_ranks_decide_between_signatures() -> None:
    kernel = cuda.jit(["void(float64[:], float32)", "void(float64[:], float64)"])(fill_function)
    out = np.zeros(1)
    # Numba counts uint16 to float32 as unsafe.
    run(kernel, out, np.uint16(3))
    assert out.tolist() == [3.0]
    # A more general array type is a safe conversion, which ranks below a promotion.
    kernel = cuda.jit(["void(float64[:], float32)", "void(float64[::1], float64)"])(fill_function)
    run(kernel, out, np.float32(0.5))
    assert out.tolist() == [0.5]


def test_signatures_are_compiled_at_once() -> None:
    with pytest.raises(weft.CompileError, match="E0201"):

        @cuda.jit("void(float32[:])")
        def wrong(x):
            x[0] = no_such_name  # noqa: F821

    with pytest.raises(TypeError, match="must have void return type"):
        cuda.jit("float32(float32[:], int32)")(fill_function)
    with pytest.raises(weft.CompileError, match="E0301"):
        cuda.jit("void(flot32[:])")


def numbas(kind: str, text: str, **attributes: object) -> object:
    """Similar to a Numba type: recognized by its class and module, read by its attributes."""
    class_ = type(kind, (), {"__module__": "numba.core.types", "__str__": lambda _: text})
    made = class_()
    made.__dict__.update(attributes)
    return made


def numbas_array(dtype: object, ndim: int, layout: str, mutable: bool = True, aligned: bool = True) -> object:
    return numbas("Array", "", dtype=dtype, ndim=ndim, layout=layout, mutable=mutable, aligned=aligned)


def test_types_of_numba_are_read() -> None:
    f4, i4, none = numbas("Float", "float32"), numbas("Integer", "int32"), numbas("NoneType", "none")
    pair = numbas("UniTuple", "UniTuple(int32 x 2)", types=(i4, i4))
    nested = numbas("NestedArray", "", dtype=i4, shape=(3,))
    fields = {"a": numbas("field", "", type=f4, offset=0), "b": numbas("field", "", type=nested, offset=4)}
    record = numbas("Record", "", fields=fields, size=16, aligned=False)
    args = (numbas_array(f4, 2, "C"), i4, pair, numbas("Boolean", "bool"), numbas_array(record, 1, "A", aligned=False))
    signature = numbas("Signature", "", return_type=none, args=args)
    dtype = np.dtype([("a", "f4"), ("b", "i4", (3,))])
    expected = weft.void(
        weft.float32[:, ::1], weft.int32, weft.types.UniTuple(weft.int32, 2), weft.boolean, weft.from_dtype(dtype)[:]
    )
    padded = np.dtype({"names": ["a", "b"], "formats": ["f4", ("i4", (3,))], "offsets": [0, 4], "itemsize": 16})
    assert padded == dtype
    assert weft.void(*args) == expected
    for declared in (signature, [signature], args):

        @cuda.jit(declared)
        def kernel(x, n, pair, flag, records):
            if flag:
                x[n, 1] = pair[1] + records[0].b[2]

        x = np.zeros((2, 2), np.float32)
        records = np.zeros(1, dtype)
        records["b"] = 5
        kernel[1, 1](x, 1, (2, 3), True, records)
        assert x.tolist() == [[0, 0], [0, 8]]
        assert kernel.signatures == [expected.args]


@pytest.mark.parametrize("aligned", [False, True])
def test_records_of_numba_are_aligned_as_their_dtype(aligned) -> None:
    """A declared signature is that of an array with the dtype from which Numba's record was made."""
    dtype = np.dtype([("s0", "u1"), ("s1", "u8")], align=aligned)
    u1, u8 = numbas("Integer", "uint8"), numbas("Integer", "uint64")
    offsets = [dtype.fields[name][1] for name in ("s0", "s1")]
    fields = {
        name: numbas("field", "", type=ty, offset=at)
        for name, ty, at in zip(dtype.names, (u1, u8), offsets, strict=True)
    }
    record = numbas("Record", "", fields=fields, size=dtype.itemsize, aligned=aligned)
    assert weft.void(numbas_array(record, 1, "C")) == weft.void(weft.from_dtype(dtype)[::1])

    @cuda.jit((numbas_array(record, 1, "C"), numbas("Integer", "int32")))
    def kernel(a, n):
        i = cuda.grid(1)
        if i < n:
            a[i]["s1"] += 1

    a = cuda.to_device(np.zeros(4, dtype))
    kernel[1, 4](a, 3)
    assert a.copy_to_host()["s1"].tolist() == [1, 1, 1, 0]


def test_texts_and_times_of_numba_are_read() -> None:
    name, label = numbas("CharSeq", "[char x 4]", count=4), numbas("UnicodeCharSeq", "[unichr x 3]", count=3)
    date, span = numbas("NPDatetime", "datetime64[ns]", unit="ns"), numbas("NPTimedelta", "timedelta64[D]", unit="D")
    types = {"name": (name, "S4"), "label": (label, "U3"), "date": (date, "M8[ns]"), "span": (span, "m8[D]")}
    dtype = np.dtype([(key, code) for key, (_, code) in types.items()])
    fields = {key: numbas("field", "", type=ty, offset=dtype.fields[key][1]) for key, (ty, _) in types.items()}
    record = numbas("Record", "", fields=fields, size=dtype.itemsize, aligned=False)
    assert weft.void(numbas_array(record, 1, "C")) == weft.void(weft.from_dtype(dtype)[::1])
    for ty, code in types.values():
        assert weft.void(numbas_array(ty, 2, "A")) == weft.void(weft.from_dtype(np.dtype(code))[:, :])


def test_types_of_numba_that_there_are_not() -> None:
    with pytest.raises(NotImplementedError, match="unaligned"):
        weft.void(numbas_array(numbas("Float", "float32"), 1, "C", aligned=False))
    with pytest.raises(ValueError, match="there is no type `list`"):
        weft.void(numbas("List", "list"))
    with pytest.raises(TypeError, match="is not a signature"):
        cuda.compile_ptx(lambda x: None, numbas("Float", "float32"))
