"""Captured arrays: constants in the code, and device arrays."""

import numpy as np
import pytest
import weft
from harness import module
from weft import cuda

ROW = np.array([1.5, 2, -3])
TABLE = np.arange(12, dtype=np.int16).reshape(3, 4)
FORTRAN = np.asfortranarray(np.arange(12.0).reshape(3, 4))
STRIDED = np.arange(24.0).reshape(4, 6)[::2, ::-3]
COMPLEX = np.array([[1 + 2j, 3], [4j, -1]], np.complex64)
FLAGS = np.array([True, False, True])
HALVES = np.array([0.5, 1.5], np.float16)
RECORDS = np.array([(1, 0.5, (1, 2)), (-2, 1.25, (3, 4))], [("a", "i1"), ("b", "f8"), ("c", "i4", (2,))])
LARGE = np.arange(20000, dtype=np.float64)
SCALAR = np.array(42.0)
EMPTY = np.zeros((0, 3))


@cuda.jit
def numbers(out):
    i = cuda.grid(1)
    if i >= out.shape[0]:
        return
    out[i, 0] = ROW[i]
    out[i, 1] = TABLE[i, 3] + TABLE.shape[1]
    out[i, 2] = FORTRAN[i, 1] + FORTRAN[-1, i]
    out[i, 3] = STRIDED[i % 2, 1] + STRIDED[i % 2][0]
    out[i, 4] = COMPLEX[i % 2, 0].imag + COMPLEX.real[0, 1]
    out[i, 5] = FLAGS[i]
    out[i, 6] = HALVES[i % 2]
    out[i, 7] = SCALAR[()]
    out[i, 8] = EMPTY.size + len(ROW)


def test_arrays_of_numbers():
    out = np.zeros((3, 9))
    numbers[1, 32](out)
    for i in range(3):
        expected = [
            ROW[i],
            TABLE[i, 3] + 4,
            FORTRAN[i, 1] + FORTRAN[-1, i],
            STRIDED[i % 2, 1] + STRIDED[i % 2][0],
            COMPLEX[i % 2, 0].imag + 3,
            FLAGS[i],
            HALVES[i % 2],
            42,
            3,
        ]
        assert out[i].tolist() == [float(x) for x in expected]


@cuda.jit
def records(out):
    for i, record in enumerate(RECORDS):
        out[i] = record["a"] + record["b"] + record["c"][1] * 100
    out[2] = RECORDS["c"][1, 0]
    out[3] = RECORDS[-1].b


def test_arrays_of_records():
    out = np.zeros(4)
    records[1, 1](out)
    assert out.tolist() == [201.5, 399.25, 3, 1.25]


@cuda.jit
def beyond_constant_memory(out):
    i = cuda.grid(1)
    if i < LARGE.size:
        out[i] = LARGE[LARGE.size - 1 - i] + ROW[i % 3]


def test_more_than_constant_memory_holds():
    out = np.zeros(20000)
    beyond_constant_memory[100, 256](out)
    np.testing.assert_array_equal(out, LARGE[::-1] + np.resize(ROW, 20000))


@cuda.jit
def array_like(out):
    table = cuda.const.array_like(TABLE)
    i = cuda.grid(1)
    if i < 12:
        out[i] = table[i // 4, i % 4] * 2


def test_const_array_like():
    out = np.zeros(12)
    array_like[1, 32](out)
    np.testing.assert_array_equal(out, 2 * TABLE.ravel())


@cuda.jit(device=True)
def total(a):
    s = 0.0
    for row in a:
        for x in row:
            s += x
    return s


@cuda.jit
def passed_on(out):
    out[0] = total(FORTRAN)
    out[1] = total(STRIDED)
    out[2] = total(FORTRAN[1:, ::2].T)
    out[3] = ROW.sum() + max(ROW) + (2.0 in ROW)
    chosen = ROW if out.size > 2 else LARGE
    out[4] = chosen[2]


def test_captured_arrays_are_arrays():
    out = np.zeros(5)
    passed_on[1, 1](out)
    assert out.tolist() == [FORTRAN.sum(), STRIDED.sum(), FORTRAN[1:, ::2].sum(), 3.5, -3]


def test_closures_capture_arrays_of_their_own():
    def make(table):
        @cuda.jit
        def kernel(out):
            i = cuda.grid(1)
            if i < table.size:
                out[i] = table[i]

        return kernel

    for table in (np.arange(3.0), np.arange(3.0) * 2, np.arange(3)[::-1]):
        out = np.zeros(3)
        make(table)[1, 32](out)
        assert out.tolist() == table.tolist()


def test_what_is_captured_is_the_array_when_the_kernel_was_compiled():
    made = module(
        """
        import numpy as np
        from weft import cuda

        table = np.array([1.0, 2.0])

        @cuda.jit
        def kernel(out):
            out[0] = table[0]
        """
    )
    out = np.zeros(1)
    made.kernel[1, 1](out)
    made.table[0] = 100
    made.kernel[1, 1](out)
    assert out[0] == 1


def test_captured_arrays_are_not_written():
    @cuda.jit
    def kernel(out):
        ROW[0] = out[0]

    with pytest.raises(weft.CompileError, match="read-only"):
        kernel[1, 1](np.zeros(1))


def test_device_arrays_are_captured_by_address():
    device = cuda.to_device(np.arange(6.0).reshape(2, 3))
    turned = cuda.to_device(np.asfortranarray(np.arange(6.0).reshape(2, 3)))

    @cuda.jit
    def kernel(out):
        i = cuda.grid(1)
        if i < 6:
            out[i] = device[i // 3, i % 3] + turned[i // 3, i % 3]
            device[i // 3, i % 3] = -i

    out = np.zeros(6)
    kernel[1, 32](out)
    assert out.tolist() == [0, 2, 4, 6, 8, 10]
    # Unlike a constant, it is accessed in place.
    assert device.copy_to_host().ravel().tolist() == [0, -1, -2, -3, -4, -5]
    kernel[1, 32](out)
    assert out.tolist() == [0] * 6
