"""Arrays of other libraries on a GPU: PyTorch by C functions, CuPy by its interface, JAX; each if installed."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import weft
import weft.errors
from weft import cuda

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.cuda


@cuda.jit
def add(x: Any, y: Any) -> None:
    i = cuda.grid(1)
    if i < x.size:
        x[i] += y[i]


@cuda.jit
def transpose(x: Any, out: Any) -> None:
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        out[j, i] = x[i, j]


@pytest.fixture(scope="module")
def torch() -> Any:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch finds no GPU")
    return torch


@pytest.fixture(scope="module")
def cupy() -> Any:
    return pytest.importorskip("cupy")


def test_tensors_where_they_are(torch: Any) -> None:
    x, y = torch.arange(1000.0, device="cuda"), torch.ones(1000, device="cuda")
    add[8, 128](x, y)
    assert torch.equal(x, torch.arange(1000.0, device="cuda") + 1)
    for dtype in (torch.bfloat16, torch.float16, torch.int8, torch.bool, torch.complex64):
        given = torch.arange(12, device="cuda").reshape(3, 4).to(dtype)
        out = torch.zeros((4, 3), dtype=dtype, device="cuda")
        transpose[1, (8, 8)](given, out)
        assert torch.equal(out, given.T)
        out = torch.zeros((2, 3), dtype=dtype, device="cuda")
        transpose[1, (8, 8)](given[:, ::2], out)
        assert torch.equal(out, given[:, ::2].T)


def test_tensors_of_the_host_are_copied(torch: Any) -> None:
    host, there = torch.zeros(100), torch.ones(100, device="cuda")
    add[1, 128](host, there)
    assert host.tolist() == [1.0] * 100
    pinned = torch.zeros(100).pin_memory()
    add[1, 128](pinned, there)
    torch.cuda.synchronize()
    assert pinned.tolist() == [1.0] * 100


def test_tensors_that_are_refused(torch: Any) -> None:
    for wrong in (torch.ones(3, device="cuda", requires_grad=True), torch.ones(3, 2, device="cuda")[0].to_sparse()):
        with pytest.raises(Exception, match=r"^argument 1 \(`x`\) of kernel `add`"):
            add[1, 1](wrong, wrong)
    with pytest.raises(BufferError, match="gradient"):
        add[1, 1](torch.ones(3, device="cuda", requires_grad=True), np.ones(3))


def test_a_launch_comes_after_what_the_producer_has_queued(torch: Any) -> None:
    """In a separate stream without ordering with other streams."""
    one = torch.ones(1 << 20, device="cuda")
    producer, own = torch.cuda.Stream(), cuda.stream()
    for ask in (lambda x: x, cuda.from_dlpack):
        for stream in (0, own):
            with torch.cuda.stream(producer):
                x = torch.zeros(1 << 20, device="cuda")
                torch.cuda._sleep(50_000_000)
                x += 1
                given = ask(x) if ask is not cuda.from_dlpack else cuda.from_dlpack(x, stream)
                add[1 << 13, 128, stream](given, one)
            cuda.synchronize()
            assert bool((x == 2).all())


def test_tensors_and_device_arrays_of_one_memory(torch: Any) -> None:
    x = torch.arange(6.0, device="cuda").reshape(2, 3)
    array = cuda.from_dlpack(x.T)
    assert array.address == x.data_ptr()
    assert array.strides == (4, 12)
    array[2, 1] = 50
    assert x[1, 2] == 50
    assert cuda.to_device(x).address == x.data_ptr()
    assert cuda.as_cuda_array(x.detach()).address == x.data_ptr()
    own = cuda.to_device(np.arange(6).reshape(2, 3))
    there = torch.from_dlpack(own)
    assert there.data_ptr() == own.address
    there[0, 1] = 70
    torch.cuda.synchronize()
    assert own[0, 1] == 70
    del own
    gc.collect()
    assert there.tolist() == [[0, 70, 2], [3, 4, 5]]
    bound = cuda.to_device(np.arange(6)).bind(cuda.stream())
    with torch.cuda.stream(torch.cuda.Stream()):
        assert torch.from_dlpack(bound).sum().item() == 15
    assert np.from_dlpack(cuda.to_device(np.arange(3)), device="cpu").tolist() == [0, 1, 2]


def test_ufuncs_of_tensors(torch: Any) -> None:
    @weft.vectorize
    def twice(x: Any) -> Any:
        return x + x

    x = torch.arange(4.0, device="cuda")
    assert twice(x).copy_to_host().tolist() == [0, 2, 4, 6]


def test_arrays_of_cupys(cupy: Any) -> None:
    x, y = cupy.arange(100.0), cupy.ones(100)
    add[1, 128](x, y)
    cupy.testing.assert_array_equal(x, cupy.arange(100.0) + 1)
    out = cupy.zeros((4, 3))
    transpose[1, (8, 8)](cupy.arange(12.0).reshape(3, 4), out)
    cupy.testing.assert_array_equal(out, cupy.arange(12.0).reshape(3, 4).T)
    array = cuda.from_dlpack(x)
    assert array.address == x.data.ptr
    back = cupy.from_dlpack(array)
    assert back.data.ptr == x.data.ptr
    with cupy.cuda.Stream(non_blocking=True):
        assert float(cupy.from_dlpack(cuda.to_device(np.ones(5))).sum()) == 5


SPIN = """
extern "C" __global__ void spin(long long cycles) {
    for (long long begin = clock64(); clock64() - begin < cycles;) {}
}
"""


def test_a_launch_comes_after_what_cupy_has_queued(cupy: Any) -> None:
    """In a separate stream without ordering with other streams; each thread has its own current stream."""
    spin = cupy.RawKernel(SPIN, "spin")
    one = cupy.ones(1 << 20)
    add[1, 1](cupy.zeros(1), one)
    cupy.cuda.Device().synchronize()

    def launch(stream: Any) -> Any:
        with cupy.cuda.Stream(non_blocking=True):
            x = cupy.zeros(1 << 20)
            spin((1,), (1,), (50_000_000,))
            x += 1
            add[1 << 13, 128, stream](x, one)
            # Without an explicit stream of the launch, the next operation is ordered after it.
            if not stream:
                x += 1
        return x

    own = cuda.stream()
    with ThreadPoolExecutor(4) as threads:
        for stream in (0, own):
            made = [launch(stream), *threads.map(launch, [stream] * 8)]
            cuda.synchronize()
            cupy.cuda.Device().synchronize()
            for x in made:
                assert bool((x == (2 if stream else 3)).all())


def test_cupys_arrays_are_what_their_interface_says(cupy: Any) -> None:
    class Interface:
        def __init__(self, array: Any) -> None:
            self.array = array
            self.__cuda_array_interface__ = array.__cuda_array_interface__

    grid = cupy.arange(24.0).reshape(4, 6)
    wide = cupy.arange(24, dtype=cupy.int16).reshape(2, 3, 4)
    views = [grid, grid.T, grid[1:, ::2], grid[::-1, 1:3], grid[:, :0], cupy.broadcast_to(grid[0], (3, 6)), wide[1].T]
    for x in views:
        for array in (x, Interface(x)):
            out = cupy.zeros(x.shape[::-1], x.dtype)
            transpose[1, (8, 8)](array, out)
            cupy.testing.assert_array_equal(out, x.T)
    others = [wide, cupy.asfortranarray(wide), cupy.zeros(()), cupy.zeros((1, 1)), grid[2:2], grid[:1, :1], grid[0]]
    for x in (*views, *others, *(cupy.zeros(3, row) for row in "? b h i l B H I L e f d F D".split())):
        assert str(weft.typeof(x)) == str(weft.typeof(Interface(x)))


@pytest.mark.parametrize(
    "env", [{}, {"CUPY_CUDA_ARRAY_INTERFACE_EXPORT_VERSION": "2"}, {"CUPY_CUDA_PER_THREAD_DEFAULT_STREAM": "1"}]
)
def test_cupys_settings(cupy: Any, env: dict[str, str], tmp_path: Path) -> None:
    """Settings that CuPy reads when it is imported: version 2 has no stream; the per-thread default stream is 2."""
    del cupy
    script = tmp_path / "settings.py"
    script.write_text(
        textwrap.dedent("""
        import threading
        import cupy, numpy as np
        from weft import cuda

        @cuda.jit
        def add(x, y):
            i = cuda.grid(1)
            if i < x.size:
                x[i] += y[i]

        one = cupy.ones(1 << 20)

        def work():
            for _ in range(50):
                x = cupy.zeros(1 << 20)
                x += 1
                # A launch on the per-thread stream is ordered after it; no stream is ordered after the legacy one.
                add[1 << 13, 128](x, one)
                cupy.cuda.Device().synchronize()
                cuda.synchronize()
                assert bool((x == 2).all())

        threads = [threading.Thread(target=work) for _ in range(3)]
        faults = []
        threading.excepthook = lambda given: faults.append(given)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        work()
        assert not faults, faults
        """)
    )
    subprocess.run([sys.executable, script], check=True, env={**os.environ, **env}, timeout=300)


def test_negatives_and_integers_of_pytorchs(torch: Any) -> None:
    whole = torch.ones(4, 6, dtype=torch.complex64, device="cuda").conj().imag
    for view in (whole, whole.T, whole[0], whole[0, 0], whole.view(24), whole[:0], whole[None, ::2]):
        assert view.is_neg()
        with pytest.raises(BufferError, match="the negative bit is set"):
            weft.typeof(view)
    x, y = torch.arange(100, device="cuda"), torch.ones(200, dtype=torch.int64, device="cuda")[::2]
    add[1, 128](x, y)
    assert torch.equal(x, torch.arange(100, device="cuda") + 1)


def test_launches_in_a_graph_that_torch_captures(torch: Any) -> None:
    x, y, own = torch.zeros(1000, device="cuda"), torch.zeros(1000, device="cuda"), cuda.to_device(np.zeros(1000))
    # Compiled and loaded before the capture.
    add[8, 128](x, y)
    add[8, 128](own, x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        add[8, 128](x, y)
        doubled = x * 2
        add[8, 128, torch.cuda.current_stream()](doubled, y)
        add[8, 128, torch.cuda.current_stream()](own, doubled)
    own.copy_to_device(np.zeros(1000))
    total = np.zeros(1000)
    for n in (1.0, 2.0, 5.0):
        x.fill_(n)
        y.copy_(torch.arange(1000.0, device="cuda"))
        graph.replay()
        torch.cuda.synchronize()
        expected = 2 * (n + np.arange(1000.0)) + np.arange(1000.0)
        np.testing.assert_array_equal(x.cpu().numpy(), n + np.arange(1000.0))
        np.testing.assert_array_equal(doubled.cpu().numpy(), expected)
        total += expected
        np.testing.assert_array_equal(own.copy_to_host(), total)


def test_what_torch_cannot_capture_is_refused_and_the_capture_goes_on(torch: Any) -> None:
    x, y, host = torch.zeros(100, device="cuda"), torch.ones(100, device="cuda"), np.zeros(100)
    own = cuda.to_device(host)
    add[1, 128](x, y)
    add[1, 128](own, host)
    gc.collect()  # now: other libraries free what other tests left in ways that end a capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        stream = torch.cuda.current_stream()
        for call, words in (
            (lambda: cuda.device_array(3, stream=stream), "cannot allocate"),
            (lambda: add[1, 128, stream](own, host), "cannot allocate"),
            (lambda: own.copy_to_device(host, stream=stream), "cannot copy from the host"),
            (lambda: own.copy_to_host(host, stream=stream), "cannot copy to the host"),
            (cuda.external_stream(stream.cuda_stream).synchronize, "cannot wait for"),
        ):
            with pytest.raises(weft.errors.DriverError, match=words):
                call()
        # weft allocates and frees its own memory at the same time.
        large = cuda.device_array(1 << 25)
        del large
        gc.collect()
        add[1, 128](x, y)
    x.zero_()
    graph.replay()
    graph.replay()
    torch.cuda.synchronize()
    assert x.tolist() == [2.0] * 100


def test_what_is_released_during_a_capture_does_not_end_it(torch: Any) -> None:
    x, y = torch.zeros(100, device="cuda"), torch.ones(100, device="cuda")
    stream, event, own = cuda.stream(), cuda.event(), cuda.to_device(np.ones(1 << 16))
    host = np.zeros(1 << 16)
    with cuda.graph() as recorded:
        add[1, 128](x, y)
        own.copy_to_host(host)
    recorded.launch()
    event.record(stream)
    add[1, 128](x, y)
    torch.cuda.synchronize()
    x.zero_()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        add[1, 128](x, y)
        del stream, event, own, recorded
        gc.collect()
        add[1, 128](x, y)
    graph.replay()
    torch.cuda.synchronize()
    assert x.tolist() == [2.0] * 100


@pytest.mark.parametrize("non_blocking", [True, False])
def test_launches_in_a_graph_that_cupy_captures(cupy: Any, non_blocking: bool) -> None:
    x, y = cupy.zeros(1000), cupy.ones(1000)
    add[8, 128](x, y)
    stream = cupy.cuda.Stream(non_blocking=non_blocking)
    cupy.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        add[8, 128, stream](x, y)
        add[8, 128](x, y)
        graph = stream.end_capture()
    for n in (1.0, 4.0):
        x[:], y[:] = n, cupy.arange(1000.0)
        cupy.cuda.Device().synchronize()
        graph.launch(stream)
        stream.synchronize()
        np.testing.assert_array_equal(cupy.asnumpy(x), n + 2 * np.arange(1000.0))


def test_arrays_of_jaxs(monkeypatch) -> None:
    # JAX would reserve three quarters of the device memory.
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX finds no GPU")
    x = jax.numpy.arange(100, dtype="float32")
    out = cuda.to_device(np.zeros(100, np.float32))
    add[1, 128](out, x)
    np.testing.assert_array_equal(out.copy_to_host(), np.arange(100))
    np.testing.assert_array_equal(cuda.from_dlpack(x).copy_to_host(), np.arange(100))
    back = jax.numpy.from_dlpack(cuda.to_device(np.arange(4, dtype=np.float32)))
    assert back.tolist() == [0, 1, 2, 3]
