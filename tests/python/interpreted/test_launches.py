"""`WEFT_DEVICE=python`: compares kernels in Python's interpreter with NumPy. `weft-dev` also runs the conformance tests
in this way."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.cpu

HEAD = """
import math
import numpy as np
import weft
from weft import cuda
from weft.cuda import cg, coop, random
"""


def run(program: str, tmp_path, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "program.py"
    path.write_text(HEAD + textwrap.dedent(program))
    return subprocess.run(
        [sys.executable, *options, path],
        env=os.environ | {"WEFT_DEVICE": "python"} | env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def passes(tmp_path):
    def passed(program: str, **env: str) -> str:
        done = run(program, tmp_path, "-W", "error", **env)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return passed


def test_it_is_python_that_runs(passes):
    """A kernel can use objects that only the interpreter supports, and prints by Python's own `print`."""
    out = passes(
        """
        import sys

        seen = []

        @cuda.jit
        def kernel(x):
            i = cuda.grid(1)
            seen.append((int(i), sys._getframe().f_code.co_filename == __file__))
            print(f"{i}: {x[i]:.1f}", cuda.threadIdx)

        kernel[1, 2](np.array([1.5, 2.5]))
        assert seen == [(0, True), (1, True)]
        """
    )
    assert out == "0: 1.5 (0, 0, 0)\n1: 2.5 (1, 0, 0)\n"


def test_numbers_have_the_types_of_kernels(passes):
    passes(
        """
        @cuda.jit
        def kernel(i32, u8, f32, out):
            out[0] = i32[0] * i32[0]  # 64 bits
            out[1] = u8[0] - u8[1]  # wraps at 64 bits
            out[2] = i32[0] // (i32[0] - i32[0])
            out[3] = -7 // i32[1]
            h = np.uint64(14695981039346656037)
            for k in range(3):
                h = (h ^ np.uint64(k)) * np.uint64(1099511628211)
            out[4] = h
            f32[1] = f32[0] * np.float32(0.1) + f32[0] / 3
            f32[2] = math.sin(f32[0])
            u8[2] = 300
            i32[2] = 1e30

        i32, u8 = np.array([2**31 - 1, 2, 0], np.int32), np.array([1, 2, 0], np.uint8)
        f32, out = np.array([1.7, 0, 0], np.float32), np.zeros(5, np.uint64)
        kernel[1, 1](i32, u8, f32, out)
        h = 14695981039346656037
        for k in range(3):
            h = (h ^ k) * 1099511628211 % 2**64
        assert out.tolist() == [(2**31 - 1) ** 2, 2**64 - 1, 0, 2**64 - 4, h]
        x = np.float32(1.7)
        assert f32[1] == np.float32(np.float64(x * np.float32(0.1)) + np.float64(x) / 3)
        assert abs(f32[2] - np.sin(x)) < 1e-7
        assert (u8[2], i32[2]) == (44, 2**31 - 1)
        """
    )


def test_barriers_warps_and_groups(passes):
    passes(
        """
        @cuda.jit
        def kernel(x, sums, lanes, scans):
            part = cuda.shared.array(64, np.float64)
            t, b = cuda.threadIdx.x, cuda.blockIdx.x
            part[t] = x[cuda.grid(1)]
            cuda.syncthreads()
            step = 32
            while step > 0:
                if t < step:
                    part[t] += part[t + step]
                cuda.syncthreads()
                step //= 2
            if t == 0:
                sums[b] = part[0]
            lanes[cuda.grid(1)] = cuda.shfl_down_sync(0xFFFFFFFF, cuda.laneid, 3)
            tile = cg.tiled_partition(cg.this_thread_block(), 8)
            scans[cuda.grid(1), 0] = cg.inclusive_scan(tile, x[cuda.grid(1)])
            scans[cuda.grid(1), 1] = coop.block.exclusive_sum(x[cuda.grid(1)])
            scans[cuda.grid(1), 2] = cuda.syncthreads_count(t % 3)

        x = np.arange(192.0)
        sums, lanes, scans = np.zeros(3), np.zeros(192, np.int32), np.zeros((192, 3))
        kernel[3, 64](x, sums, lanes, scans)
        assert (sums == x.reshape(3, 64).sum(axis=1)).all()
        lane = np.arange(192) % 32
        assert (lanes == np.where(lane + 3 < 32, lane + 3, lane)).all()
        assert (scans[:, 0] == np.cumsum(x.reshape(-1, 8), axis=1).ravel()).all()
        blocks = x.reshape(3, 64)
        assert (scans[:, 1] == (np.cumsum(blocks, axis=1) - blocks).ravel()).all()
        assert (scans[:, 2] == 42).all()
        """
    )


def test_matrix_tiles(passes):
    passes(
        """
        T = cuda.mma.tile(32, 8, 16, a=np.float16, b=np.float16, c=np.float32)

        @cuda.jit
        def kernel(a, b, out):
            acc = T.mma(T.a(a, 0, 1), T.b(b.T, 1, 0), T.zeros())
            for r in range(len(acc)):
                row, column = T.coord(r)
                out[row, column] = acc[r] + 1

        a = (np.arange(32 * 17).reshape(32, 17) % 7).astype(np.float16)
        b = (np.arange(8 * 17).reshape(8, 17) % 5).astype(np.float16)
        out = np.zeros((32, 8), np.float32)
        kernel[1, 32](a, b, out)
        assert (out == a[:, 1:].astype(np.float32) @ b[:, 1:].T.astype(np.float32) + 1).all()
        """
    )


def test_asynchronous_copies(passes):
    passes(
        """
        @cuda.jit
        def kernel(a, out):
            s = cuda.shared.array((2, 32), np.float32)
            own = cuda.local.array(1, np.float32)
            i = cuda.threadIdx.x
            s[0, i] = s[1, i] = own[0] = np.float32(-1)
            for k in range(2):
                cuda.copy_async(s, (k, i), a, (k, i))
                cuda.copy_commit()
            out[0, i] = s[0, i]
            cuda.copy_wait(1)
            out[1, i] = s[0, i]
            out[2, i] = s[1, i]
            cuda.copy_wait()
            out[3, i] = s[1, i]
            cuda.copy_async(s, (0, i), own, 0)  # from another memory: at once
            out[4, i] = s[0, i]

        @cuda.jit
        def vectors(a, out):
            s = cuda.shared.array(0, np.float32)
            to, source = s.view(cuda.float32x4), a.view(cuda.float32x4)
            i = cuda.threadIdx.x
            cuda.copy_async(to, i, source, i)
            cuda.copy_commit()
            cuda.copy_wait()
            cuda.syncthreads()
            out[i] = s[127 - i]

        a, out = np.arange(64, dtype=np.float32).reshape(2, 32), np.zeros((5, 32), np.float32)
        kernel[1, 32](a, out)
        missing = np.full(32, -1)
        assert (out == [missing, a[0], missing, a[1], missing]).all()
        a, out = np.arange(128, dtype=np.float32), np.zeros(32, np.float32)
        vectors[1, 32, 0, 512](a, out)
        assert (out == a[::-1][:32]).all()
        """
    )


def test_threads_that_wait_for_each_other(passes):
    passes(
        """
        @cuda.jit
        def in_turn(order, turn):
            i = cuda.gridsize(1) - 1 - cuda.grid(1)  # the last block goes first
            while cuda.atomic.cas(turn, 0, i, i) != i:
                pass
            order[i] = cuda.grid(1)
            cuda.atomic.add(turn, 0, 1)

        @cuda.jit
        def locked(lock, total):
            while cuda.atomic.cas(lock, 0, 0, 1) != 0:
                pass
            cuda.threadfence()
            total[0] = total[0] + 1
            cuda.threadfence()
            cuda.atomic.exch(lock, 0, 0)

        @cuda.jit
        def by_flag(flag, out):
            if cuda.grid(1) == 1:
                out[0] = 7
                cuda.threadfence()
                flag[0] = 1
            else:
                while flag[0] == 0:
                    pass
                out[1] = out[0]

        @cuda.jit
        def over_the_grid(x):
            grid = cg.this_grid()
            i = grid.thread_rank()
            for _ in range(3):
                value = x[(i + 1) % x.size]
                grid.sync()
                x[i] = value
                grid.sync()

        order = np.full(12, -1)
        in_turn[3, 4](order, np.zeros(1, np.int64))
        assert (order == np.arange(12)[::-1]).all()
        total = np.zeros(1, np.int64)
        locked[2, 40](np.zeros(1, np.int32), total)
        assert total[0] == 80
        out = np.zeros(2)
        by_flag[2, 1](np.zeros(1, np.int32), out)
        assert (out == 7).all()
        x = np.arange(32)
        over_the_grid[4, 8](x)
        assert (x == np.roll(np.arange(32), -3)).all()
        """
    )


def test_memory_of_the_device_records_and_random_numbers(passes):
    passes(
        """
        point = np.dtype([("x", "f4"), ("n", "i4")])

        @cuda.jit
        def move(points, states, draws, matrix):
            i = cuda.grid(1)
            if i < points.size:
                p = points[i]
                p.x += 0.5
                points[i]["n"] = cuda.popc(p.n)
                draws[i] = random.xoroshiro128p_uniform_float64(states, i)
                cuda.atomic.add(matrix, (i % 2, 1), p.n)

        points = np.zeros(4, point)
        points["n"] = [0, 1, 3, 7]
        on_device = cuda.to_device(points)
        states = random.create_xoroshiro128p_states(4, seed=1)
        matrix = cuda.to_device(np.zeros((2, 3))[:, ::-1])
        draws = cuda.device_array(4)
        move[1, 8](on_device, states, draws, matrix)
        assert on_device.copy_to_host().tolist() == [(0.5, 0), (0.5, 1), (0.5, 2), (0.5, 3)]
        assert abs(draws.copy_to_host()[0] - 0.13312315) < 1e-8
        assert matrix.copy_to_host()[:, 1].tolist() == [2, 4]
        # Kernels that weft itself launches are compiled: a sum of many numbers takes no time.
        many = cuda.to_device(np.ones(1_000_000))
        assert many.sum() == 1_000_000
        """
    )


def test_device_functions_signatures_and_ufuncs(passes):
    passes(
        """
        import sys
        from weft import config

        calls = []
        sys.breakpointhook = lambda: calls.append(1)
        config.DEBUG_THREAD = config.DEBUG_BLOCK = None

        @cuda.jit("float32(float32)", device=True)
        def third(v):
            return v / 3

        @cuda.jit("void(int32[:], float32)")
        def declared(x, scale):
            x[cuda.grid(1)] = third(scale) * 300

        @cuda.jit(device=True)
        def inner(f, v):
            return f(v) + 1

        @cuda.jit
        def with_lambda(x):
            k = 10
            x[0] = inner(lambda v: v * k, x[0])

        @weft.vectorize(["float64(float64, float64)"], target="cuda")
        def twice(a, b):
            breakpoint()
            return 2 * a + b

        x = np.zeros(2, np.int32)
        declared[1, 2](x, 1)
        assert (x == 100).all() and not declared.overloads
        x = np.array([4])
        with_lambda[1, 1](x)
        assert x[0] == 41
        assert (twice(np.arange(5.0), 1.0) == 2 * np.arange(5.0) + 1).all() and len(calls) == 5
        """
    )


def test_rules_of_derivatives(passes):
    passes("""
        @cuda.custom_vjp(backward=lambda x, k, y, g: 2.0 * g)
        @cuda.jit(device=True)
        def scaled(x, k):
            return x * k

        @cuda.jit
        def kernel(x, y):
            i = cuda.grid(1)
            if i < x.size:
                a, b = cuda.stop_gradient((x[i], 2))
                y[i] = scaled(a, b) + cuda.stop_gradient(x[i])

        x, y = np.arange(5.0), np.zeros(5)
        kernel[1, 32](x, y)
        assert y.tolist() == (3 * x).tolist()
        for refused in (lambda: cuda.vjp(kernel), lambda: cuda.tape().__enter__()):
            try:
                refused()
            except NotImplementedError as error:
                assert "do not run in Python's interpreter" in str(error)
            else:
                raise AssertionError
    """)


def test_pointers(passes):
    passes(
        """
        @cuda.jit("int64(CPointer(int64), int64)", device=True)
        def second(p, i):
            return p[i + 1]

        @cuda.jit("void(CPointer(int64), int64[:])")
        def kernel(p, out):
            p[0] = 7
            out[0] = second(p, 0)

        x, out = np.arange(5, 8), np.zeros(1, np.int64)
        kernel[1, 1](x.ctypes.data, out)
        assert x.tolist() == [7, 6, 7] and out[0] == 6

        @cuda.jit
        def wrong(x):
            x[0] = second(x[0], 0)

        try:
            wrong[1, 1](x)
        except TypeError as error:
            assert "only a launch makes one of an address" in str(error)
        else:
            raise AssertionError
        """
    )


def test_an_exception_names_thread_block_and_kernel(tmp_path):
    done = run(
        """
        @cuda.jit(device=True)
        def at(x, i):
            return x[i]

        @cuda.jit
        def kernel(x, out):
            i = cuda.grid(1)
            out[i] = at(x, i)

        kernel[2, 4](np.zeros(6), np.zeros(8))
        """,
        tmp_path,
    )
    assert done.returncode == 1
    assert "IndexError: index 6 is out of bounds for axis 0 with size 6" in done.stderr
    assert "Raised by thread (2, 0, 0) of block (1, 0, 0) of the kernel `kernel`" in done.stderr
    lines = done.stderr.splitlines()
    places = [line.strip() for line in lines if "program.py" in line]
    assert [place.rpartition(" in ")[2] for place in places] == ["<module>", "kernel", "at"]


def test_an_exception_of_a_thread_among_barriers(passes):
    passes(
        """
        @cuda.jit
        def kernel(x):
            cuda.syncthreads()
            if cuda.threadIdx.x == 5:
                raise ValueError("five")
            cuda.syncthreads()
            x[cuda.threadIdx.x] = 1

        import threading

        before = threading.active_count()
        for _ in range(3):
            try:
                kernel[1, 64](np.zeros(64))
            except ValueError as error:
                assert error.args == ("five",)
                assert error.__notes__ == ["Raised by thread (5, 0, 0) of block (0, 0, 0) of the kernel `kernel`"]
            else:
                raise AssertionError
        assert threading.active_count() == before
        """
    )


def test_threads_that_wait_for_ever_are_told(passes):
    passes(
        """
        @cuda.jit
        def kernel(x):
            if cuda.threadIdx.x < 3:
                cg.this_grid().sync()
            else:
                cuda.syncthreads()

        try:
            kernel[1, 8](np.zeros(8))
        except RuntimeError as error:
            text = str(error)
            assert "wait for other threads forever" in text
            assert "3 at sync() in kernel" in text and "5 at syncthreads() in kernel" in text
            assert "program.py:" in text
        else:
            raise AssertionError
        """
    )


def test_what_no_device_can_run(passes):
    passes(
        """
        @cuda.jit
        def kernel(x):
            x[0] = 1

        for grid, block, shared in [(0, 1, 0), (1, 2048, 0), (1, (1, 1, 65), 0), (1, 1, 1 << 20)]:
            try:
                kernel[grid, block, 0, shared](np.zeros(1))
            except weft.LaunchError as error:
                assert "kernel `kernel`" in str(error)
            else:
                raise AssertionError((grid, block, shared))
        try:
            kernel[1, 1]({})
        except TypeError as error:
            assert "dict" in str(error)
        else:
            raise AssertionError
        try:
            on_device = cuda.to_device(np.zeros(1))
            with cuda.graph():
                kernel[1, 1](on_device)
        except RuntimeError as error:
            assert "WEFT_DEVICE=cpu" in str(error)
        else:
            raise AssertionError
        kernel.forall(3)(x := np.zeros(1))
        assert x[0] == 1
        """
    )
