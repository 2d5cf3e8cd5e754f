"""PyTorch CPU tensors, if PyTorch is installed: as arguments, as device arrays, and made from device arrays.

`test_dlpack.py` has the same without PyTorch.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
import weft
from weft import cuda

torch = pytest.importorskip("torch")


@cuda.jit
def add(x: Any, y: Any) -> None:
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        x[i] += y[i]


@cuda.jit
def transpose(x: Any, out: Any) -> None:
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        out[j, i] = x[i, j]


@cuda.jit
def store(x: Any, value: Any) -> None:
    x[()] = value


DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64")


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes(name: str) -> None:
    x = torch.tensor([1, 0, 3]).to(getattr(torch, name))
    out = torch.zeros((3, 1), dtype=x.dtype)
    transpose[1, (4, 4)](x[None, :], out)
    assert torch.equal(out[:, 0], x)
    assert str(weft.typeof(x)) == f"array({name.replace('bool', 'boolean') if name == 'bool' else name}, 1d, C)"


def test_views() -> None:
    x = torch.arange(24.0).reshape(4, 6)
    for view in (x, x.T, x[1:, ::2], x[:, 3:], x[2:2], x.expand(4, 6)):
        out = torch.zeros(tuple(view.T.shape))
        transpose[1, (8, 8)](view, out)
        assert torch.equal(out, view.T)
    point = torch.tensor(0.0)
    store[1, 1](point, 5)
    assert point.item() == 5
    broad = torch.tensor([[1.0], [2.0]]).expand(2, 3)
    out = torch.zeros(3, 2)
    transpose[1, (4, 4)](broad, out)
    assert torch.equal(out, broad.T)


def test_memory_that_is_shared_with_numpy() -> None:
    host = np.arange(6.0)
    tensor = torch.from_numpy(host)
    add[1, 32](tensor, host)
    np.testing.assert_array_equal(host, 2 * np.arange(6.0))
    add[1, 1](host, tensor)
    add[1, 1](tensor[:3], np.ones(3))
    np.testing.assert_array_equal(host, 4 * np.arange(6.0) + [1, 1, 1, 0, 0, 0])


class Derived(torch.Tensor):
    pass


def test_classes_of_tensors() -> None:
    parameter = torch.nn.Parameter(torch.zeros(3), requires_grad=False)
    derived = torch.ones(3).as_subclass(Derived)
    add[1, 1](parameter, derived)
    add[1, 1](derived, parameter.data)
    assert parameter.tolist() == [1, 1, 1]
    assert derived.tolist() == [2, 2, 2]


class Asked(torch.Tensor):
    """A subclass that overrides attributes: these are read as for any other library."""

    asked: list[str]
    gradient = False
    negative = False

    @property
    def requires_grad(self) -> bool:  # type: ignore[override]
        self.asked.append("requires_grad")
        return self.gradient

    def is_neg(self) -> bool:
        self.asked.append("is_neg")
        return self.negative

    __torch_function__ = torch._C._disabled_torch_function_impl

    def __dlpack__(self, *args: Any, **given: Any) -> Any:
        msg = "not this one"
        raise BufferError(msg)


def test_classes_with_attributes_of_their_own() -> None:
    for dtype, asked in ((torch.float32, ["requires_grad", "is_neg"]), (torch.int64, ["requires_grad"])):
        x = torch.ones(3, dtype=dtype).as_subclass(Asked)
        x.asked = []
        add[1, 1](x, np.ones(3))
        assert x.asked == asked
        assert x.as_subclass(torch.Tensor).tolist() == [2, 2, 2]
        x.gradient = True
        with pytest.raises(BufferError, match="not this one"):
            add[1, 1](x, np.ones(3))
    x.gradient, x.negative = False, True
    y = torch.ones(3).as_subclass(Asked)
    y.asked, y.negative = [], True
    with pytest.raises(BufferError, match="the negative bit is set"):
        add[1, 1](y, np.ones(3))


class Watched(torch.Tensor):
    """A subclass that intercepts all operations."""

    asked: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.asked.append(getattr(function, "__name__", ""))
        return super().__torch_function__(function, types, args, kwargs or {})


def test_classes_that_see_to_calls() -> None:
    x = torch.ones(3).as_subclass(Watched)
    Watched.asked.clear()
    add[1, 1](x, np.ones(3))
    assert "is_neg" in Watched.asked
    assert x.as_subclass(torch.Tensor).tolist() == [2, 2, 2]


def test_negatives_are_refused_whatever_view_they_are() -> None:
    """Their strides are even; a tensor with an odd stride is rejected."""
    whole = torch.arange(24.0).reshape(4, 6).to(torch.complex64).conj().imag
    views = {
        "whole": whole,
        "transposed": whole.T,
        "row": whole[0],
        "column": whole[:, 0],
        "element": whole[0, 0],
        "one": whole[:1, :1],
        "one in one dimension": whole[0, :1],
        "empty": whole[:0],
        "steps": whole[1:, ::3],
        "flat": whole.view(24),
        "deep": whole.view(2, 2, 3, 2),
        "diagonal": whole.diagonal(),
        "windows": whole.unfold(1, 3, 1),
        "broad": whole[:, :1].expand(4, 3),
        "more": whole[None, :, None],
        "class": whole.as_subclass(Derived),
        "real": whole.to(torch.complex64).conj().imag,
        "double": whole.to(torch.complex128).conj().imag[::2],
    }
    for name, view in views.items():
        assert view.is_neg(), name
        with pytest.raises(BufferError, match="the negative bit is set"):
            weft.typeof(view)
        weft.typeof(view.resolve_neg())
    # Resolved tensors have their elements in memory, with unusual strides.
    for view in (whole.clone().resolve_neg(), whole.contiguous().resolve_neg(), -whole, whole + 0, whole.double()):
        out = torch.zeros(tuple(view.T.shape), dtype=view.dtype)
        transpose[1, (8, 8)](view.resolve_neg(), out)
        assert torch.equal(out, view.T)


def test_conjugates_are_refused_whatever_view_they_are() -> None:
    whole = torch.ones(4, 6, dtype=torch.complex64).conj()
    for view in (whole, whole.T, whole[0], whole[0, 0], whole[:, ::2], whole.as_subclass(Derived)):
        with pytest.raises(BufferError, match="conjugate bit set"):
            weft.typeof(view)
        weft.typeof(view.resolve_conj())
        weft.typeof(view.conj())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64])
def test_gradients_are_refused_whatever_the_dtype(dtype: Any) -> None:
    for tensor in (
        torch.ones(3, dtype=dtype, requires_grad=True),
        torch.ones(4, 4, dtype=dtype, requires_grad=True)[::2],
    ):
        with pytest.raises(BufferError, match="require gradient"):
            weft.typeof(tensor)
        with pytest.raises(BufferError, match="require gradient"):
            weft.typeof(tensor.as_subclass(Derived))
        weft.typeof(tensor.detach())


@cuda.jit
def copy_and_widen(x: Any, same: Any, wide: Any) -> None:
    i = cuda.grid(1)
    if i < x.size:
        same[i] = np.float32(x[i])
        wide[i] = np.float32(x[i])


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_floats_of_8_bits(dtype: Any) -> None:
    bits = torch.arange(256, dtype=torch.int32).to(torch.uint8)
    x = bits.view(dtype)
    name = str(dtype).removeprefix("torch.")
    assert str(weft.typeof(x)) == f"array({name}, 1d, C)"
    same, wide = torch.zeros(256).to(dtype), torch.zeros(256)
    copy_and_widen[1, 256](x, same, wide)
    expected = x.float()
    assert torch.equal(wide.isnan(), expected.isnan())
    assert torch.equal(wide[~expected.isnan()], expected[~expected.isnan()])
    finite = expected.isfinite()
    assert torch.equal(same.view(torch.uint8)[finite], bits[finite])


def refused() -> dict[str, tuple[Any, type[Exception], str]]:
    complex_ones = torch.ones(3, dtype=torch.complex64)
    return {
        "gradient": (torch.ones(3, requires_grad=True), BufferError, "require gradient, use tensor.detach"),
        "parameter": (torch.nn.Parameter(torch.ones(3)), BufferError, "require gradient, use tensor.detach"),
        "conjugate": (complex_ones.conj(), BufferError, "conjugate bit set"),
        "negative": (complex_ones.conj().imag, BufferError, "negative bit is set.*resolve_neg"),
        "sparse": (torch.ones(3).to_sparse(), Exception, "^argument 1"),
        "meta": (torch.ones(3, device="meta"), Exception, "^argument 1"),
        "zeros": (torch._efficientzerotensor((3,)), BufferError, "no memory"),
        "float8": (torch.ones(3).to(torch.float8_e5m2fnuz), TypeError, "dtype float8_e5m2fnuz are not supported"),
    }


@pytest.mark.parametrize("name", refused())
def test_tensors_that_are_refused(name: str) -> None:
    tensor, error, message = refused()[name]
    with pytest.raises(error, match=message) as caught:
        add[1, 1](tensor, np.ones(3))
    assert str(caught.value).startswith("argument 1 (`x`) of kernel `add`: ")
    assert "C++" not in str(caught.value)
    with pytest.raises((error, RuntimeError, TypeError, NotImplementedError)):
        add[1, 1](np.ones(3), tensor)


def test_gradients_do_not_come_along() -> None:
    weights = torch.ones(3, requires_grad=True)
    add[1, 1](weights.detach(), torch.ones(3))
    assert weights.tolist() == [2, 2, 2]


@pytest.mark.cpu
def test_device_arrays_of_tensors_and_tensors_of_device_arrays() -> None:
    tensor = torch.arange(6.0).reshape(2, 3)
    array = cuda.from_dlpack(tensor.T)
    assert array.address == tensor.data_ptr()
    array[2, 1] = 50
    assert tensor[1, 2] == 50
    own = cuda.to_device(np.arange(6).reshape(2, 3))
    there = torch.from_dlpack(own)
    there[0, 1] = 70
    assert own[0, 1] == 70
    del own
    assert there.tolist() == [[0, 70, 2], [3, 4, 5]]
    transposed = cuda.to_device(np.arange(6).reshape(2, 3)).T
    assert torch.from_dlpack(transposed).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert torch.from_dlpack(cuda.to_device(np.ones(2)), copy=True).tolist() == [1, 1]


def test_copies_and_ufuncs() -> None:
    tensor = torch.arange(4.0)
    copy = cuda.to_device(tensor)
    copy[0] = 9
    assert tensor[0] == 0

    @weft.vectorize
    def twice(x: Any) -> Any:
        return x + x

    np.testing.assert_array_equal(twice(tensor), 2 * np.arange(4, dtype=np.float32))
    out = torch.zeros(4)
    twice(tensor, out=out)
    assert out.tolist() == [0, 2, 4, 6]
