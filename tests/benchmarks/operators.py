"""Measures kernels as operators of PyTorch and calls of JAX beside what a call costs without them, and checks them.

Each part runs alone and reports its error if it fails. `--only torch,capture,block,jax` chooses parts. It needs a C++
compiler, PyTorch or JAX, and on a GPU Triton for the block's comparison.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from weft import cuda

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FIGURES: dict[str, Any] = {}

FLOOR = """
#include <torch/library.h>
static void f4(const at::Tensor &, const at::Tensor &, const at::Tensor &, at::Tensor &) {}
TORCH_LIBRARY(weft_floor, m) {
  m.def("f4(Tensor x, Tensor y, Tensor z, Tensor(a!) out) -> ()");
  m.impl("f4", c10::DispatchKey::CPU, f4);
  m.impl("f4", c10::DispatchKey::CUDA, f4);
}
"""

# A handler that does nothing, by the structures of XLA's c_api.h 0.1 and on.
EMPTY_HANDLER = """
#include <stddef.h>
#include <stdint.h>
struct ext { size_t size; int32_t type; struct ext *next; };
void *weft_empty(char *frame) {
    for (struct ext *e = *(struct ext **)(frame + 8); e; e = e->next)
        if (e->type == 1) {
            char *m = *(char **)((char *)e + 24), *api = *(char **)(frame + 16);
            int32_t minor = api ? *(int32_t *)(api + 36) : 1;
            *(int32_t *)(m + 24) = 0, *(int32_t *)(m + 28) = minor < 3 ? minor : 3, *(uint32_t *)(m + 32) = 1;
        }
    return 0;
}
"""


@cuda.jit
def add_three(x, y, z, out):
    """A kernel that does next to nothing."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i] + z[i]


SIGNATURE = "void(float32[::1], float32[::1], float32[::1], float32[::1])"


def blocks(x: Any) -> Any:
    """The launch rule of `add_three`."""
    return (x.size + 127) // 128, 128


def report(name: str, value: float, unit: str = "µs") -> None:
    """Print a figure, and keep it."""
    print(f"| {name} | {value:.2f} {unit} |", flush=True)
    FIGURES[name] = value


def check(name: str, *, is_right: bool) -> None:
    """Print whether something holds."""
    print(f"| {name} | {'yes' if is_right else 'NO'} |", flush=True)
    FIGURES[name] = is_right


def timed(roads: dict[str, Callable[[], Any]], wait: Callable[[], Any], *, calls: int = 200, rounds: int = 60) -> None:
    """Time calls in turns and in short slices; the least of each is reported. The device is idle before each slice."""
    best = dict.fromkeys(roads, float("inf"))
    for road in roads.values():
        road()
    for _ in range(rounds):
        for name, road in roads.items():
            wait()
            begin = time.perf_counter()
            for _ in range(calls):
                road()
            best[name] = min(best[name], (time.perf_counter() - begin) / calls)
    wait()
    for name, seconds in best.items():
        report(name, seconds * 1e6)


def built(source: str, suffix: str, *options: str) -> str:
    """Compile a shared library; its path."""
    folder = Path(tempfile.mkdtemp())
    path = folder / f"source{suffix}"
    path.write_text(source)
    library = folder / "library.so"
    compiler = "g++" if suffix == ".cpp" else "gcc"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", str(path), "-o", str(library), *options], check=True)
    return str(library)


def torch_overhead() -> None:
    """Time a call with four tensors."""
    import torch
    from torch.utils import cpp_extension

    device = "cuda" if torch.cuda.is_available() else "cpu"
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    includes = [f"-I{path}" for path in cpp_extension.include_paths()]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"
    folder = Path(torch.__file__).parent / "lib"
    libraries = [f"-L{folder}", f"-Wl,-rpath,{folder}", "-ltorch_cpu", "-lc10"]
    torch.ops.load_library(built(FLOOR, ".cpp", "-std=c++20", abi, *includes, *libraries))
    op = add_three.as_torch_op("weft_bench::add_three_", launch=blocks, signature=SIGNATURE)
    functional = add_three.as_torch_op("weft_bench::add_three", launch=blocks, out=cuda.like("x"), signature=SIGNATURE)

    schema = "(Tensor x, Tensor y, Tensor z, Tensor(a!) out) -> ()"

    @torch.library.custom_op("weft_bench::custom", mutates_args=("out",), schema=schema)
    def custom(x, y, z, out):
        pass

    x, y, z, out = (torch.ones(64, device=device) for _ in range(4))
    op(x, y, z, out)
    check("the operator's result", is_right=bool((out == 3).all()))
    check("the functional operator's result", is_right=bool((functional(x, y, z) == 3).all()))
    configured = add_three[1, 128]
    # A prepared launch takes no array of the host.
    prepared = configured.prepare(x, y, z, out) if device == "cuda" else lambda: configured(x, y, z, out)
    floor = torch.ops.weft_floor.f4.default
    roads: dict[str, Callable[[], Any]] = {
        "launch, prepared": prepared,
        "launch": lambda: configured(x, y, z, out),
        "empty C++ operator": lambda: floor(x, y, z, out),
        "operator": lambda: op(x, y, z, out),
        "operator, torch's own (`.op`)": lambda: op.op(x, y, z, out),
        "functional operator": lambda: functional(x, y, z),
        "functional operator, torch's own (`.op`)": lambda: functional.op(x, y, z),
        "torch.empty_like": lambda: torch.empty_like(x),
        "torch.add(x, y, out=out)": lambda: torch.add(x, y, out=out),
        "torch.library.custom_op": lambda: custom(x, y, z, out),
    }
    timed(roads, wait)
    limit = 1.2 * (FIGURES["launch, prepared"] + FIGURES["empty C++ operator"])
    report("limit: 1.2 (prepared launch + empty operator)", limit)


def capture() -> None:
    """Check streams, CUDA graphs, opcheck, vmap and errors on a GPU."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    op = add_three.as_torch_op("weft_bench::add_three_", launch=blocks, signature=SIGNATURE)
    functional = add_three.as_torch_op("weft_bench::add_three", launch=blocks, out=cuda.like("x"), signature=SIGNATURE)
    x, y, z, out = (torch.ones(1000, device=device) for _ in range(4))
    for name, of, args in (("mutating", op, (x, y, z, out)), ("functional", functional, (x, y, z))):
        results = torch.library.opcheck(of.op, args)
        check(f"opcheck, {name}", is_right=all(result == "SUCCESS" for result in results.values()))
    batch = torch.randn(5, 1000, device=device)
    mapped = torch.vmap(functional, (0, None, None))(batch, y, z)
    check("vmap", is_right=torch.allclose(mapped, batch + 2))
    with contextlib.suppress(RuntimeError):
        functional(x, y.to("meta"), z)
        check("an error for a meta tensor", is_right=False)
    if device == "cpu":
        return
    with contextlib.suppress(RuntimeError):
        functional(x, y.cpu(), z)
        check("an error for mixed devices", is_right=False)
    check("CPU tensors beside the GPU", is_right=bool((functional(x.cpu(), y.cpu(), z.cpu()) == 3).all()))
    # A kernel in a stream runs after the slow work that is there, not before.
    stream = torch.cuda.Stream()
    source = torch.zeros(1000, device=device)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        source.fill_(7)
        op(source, y, z, out)
    stream.synchronize()
    check("the current stream is used", is_right=bool((out == 9).all()))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        op(x, y, z, out)
        functional(x, y, z)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    fresh = torch.full((1000,), 1.0, device=device)
    with torch.cuda.graph(graph):
        op(fresh, y, z, out)
        again = functional(out, y, z)
    fresh.fill_(10)
    graph.replay()
    torch.cuda.synchronize()
    check("CUDA graph", is_right=bool((out == 12).all()) and bool((again == 14).all()))
    # A kernel that the captured call is the first to need.
    late = add_three.as_torch_op("weft_bench::late", launch=blocks, out=cuda.like("x"), signature=SIGNATURE)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        first = late(fresh, y, z)
    graph.replay()
    torch.cuda.synchronize()
    check("CUDA graph, compiled while captured", is_right=bool((first == 12).all()))


def loaded(name: str) -> Any:
    """An example as a module."""
    path = next(EXAMPLES.glob(f"{name}*.py"))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def triton_block(example: Any) -> Any:
    """The example's block with Triton's kernels as `triton_op`s."""
    import torch
    import triton
    import triton.language as tl
    from torch.library import triton_op, wrap_triton

    @triton.jit
    def norm_kernel(x, w, out, width, eps, SIZE: tl.constexpr):
        row = tl.program_id(0)
        columns = tl.arange(0, SIZE)
        mask = columns < width
        values = tl.load(x + row * width + columns, mask, other=0.0)
        scale = tl.rsqrt(tl.sum(values * values, 0) / width + eps)
        tl.store(out + row * width + columns, values * scale * tl.load(w + columns, mask), mask)

    @triton.jit
    def rotary_kernel(x, out, heads, pairs, sign, total, position_stride, head_stride, SIZE: tl.constexpr):
        i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
        mask = i < total
        position, head, pair = i // (heads * pairs), i // pairs % heads, i % pairs
        angle = position * tl.exp(-9.210340371976184 * pair / pairs)
        c, s = tl.cos(angle), sign * tl.sin(angle)
        at = x + position * position_stride + head * head_stride + pair
        first, second = tl.load(at, mask), tl.load(at + pairs, mask)
        to = out + (position * heads + head) * 2 * pairs + pair
        tl.store(to, first * c - second * s, mask)
        tl.store(to + pairs, first * s + second * c, mask)

    def norm(x, weight, eps):
        out = torch.empty_like(x)
        size = triton.next_power_of_2(x.shape[1])
        wrap_triton(norm_kernel)[(x.shape[0],)](x, weight, out, x.shape[1], eps, SIZE=size)
        return out

    def rotary(x, sign):
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        heads, pairs = x.shape[1], x.shape[2] // 2
        total = x.numel() // 2
        wrap_triton(rotary_kernel)[(triton.cdiv(total, 256),)](
            x, out, heads, pairs, sign, total, x.stride(0), x.stride(1), SIZE=256
        )
        return out

    tensor = torch.Tensor
    norm.__annotations__ = {"x": tensor, "weight": tensor, "eps": float, "return": tensor}
    rotary.__annotations__ = {"x": tensor, "sign": float, "return": tensor}
    norm = triton_op("weft_bench_triton::norm", norm, mutates_args={})
    rotary = triton_op("weft_bench_triton::rotary", rotary, mutates_args={})

    class TritonBlock(example.Block):  # type: ignore[misc,name-defined]  # of a module that is loaded by path
        def norm(self, x: Any, weight: Any) -> Any:
            return norm(x, weight, 1e-6)

        def rotate(self, x: Any) -> Any:
            return rotary(x, 1.0)

    return TritonBlock


def block() -> None:
    """Time the example's transformer block under torch.compile, beside Triton's and eager."""
    import torch

    example = loaded("15_")
    example.main()
    if not torch.cuda.is_available():
        return
    torch.manual_seed(0)
    for width, heads, length in ((256, 4, 128), (2048, 16, 2048)):
        kinds = {"weft": example.Block, "torch": example.Reference}
        with contextlib.suppress(ImportError):
            kinds["triton"] = triton_block(example)
        x = torch.randn(length, width, device="cuda")
        roads: dict[str, Callable[[], Any]] = {}
        expected = None
        state = example.Block(width, heads).state_dict()
        with torch.no_grad():
            for name, kind in kinds.items():
                model = kind(width, heads).cuda()
                model.load_state_dict(state)
                compiled = torch.compile(model, fullgraph=True)
                value = compiled(x)
                expected = value if expected is None else expected
                check(f"block {width}, {name}: values", is_right=torch.allclose(value, expected, rtol=1e-3, atol=1e-3))
                check(
                    f"block {width}, {name}: compiled as eager",
                    is_right=torch.allclose(value, model(x), rtol=1e-3, atol=1e-3),
                )
                roads[f"block {width}, {name}, compiled"] = lambda compiled=compiled, x=x: compiled(x)
                if name == "weft":
                    roads[f"block {width}, weft, eager"] = lambda model=model, x=x: model(x)

            def waiting(road: Callable[[], Any]) -> Callable[[], Any]:
                def run() -> None:
                    road()
                    torch.cuda.synchronize()

                return run

            timed({name: waiting(road) for name, road in roads.items()}, torch.cuda.synchronize, calls=10, rounds=20)


def jax_calls() -> None:
    """Time calls of JAX beside an empty call, and run the example."""
    import ctypes

    import jax
    import jax.numpy as jnp

    example = loaded("16_")
    example.main()
    u = jnp.asarray(np.random.default_rng(0).random((48, 64), np.float32))
    rates = jnp.asarray([0.1, 0.2], np.float32)
    expected = jnp.stack([example.step(u, 0.1), example.step(u, 0.2)])
    found = jnp.stack([example.step(u, rate) for rate in rates])
    check("a number that JAX computes", is_right=bool(jnp.allclose(found, expected)))
    mapped = jax.jit(jax.vmap(example.step, (None, 0)))(u, rates)
    check("a batch of numbers", is_right=bool(jnp.allclose(mapped, expected)))
    handler = ctypes.CDLL(built(EMPTY_HANDLER, ".c")).weft_empty
    for platform in ("cpu", "CUDA"):
        jax.ffi.register_ffi_target("weft_empty", jax.ffi.pycapsule(handler), platform=platform)
    call = add_three.as_jax_call(launch=blocks, out=cuda.like("x"), signature=SIGNATURE)
    x, y, z = (jnp.ones(64, np.float32) for _ in range(3))
    spec = jax.ShapeDtypeStruct(x.shape, x.dtype)

    def empty(x: Any, y: Any, z: Any) -> Any:
        return jax.ffi.ffi_call("weft_empty", spec)(x, y, z)

    def chain(function: Callable[..., Any], count: int) -> Callable[[], Any]:
        def run(x: Any, y: Any, z: Any) -> Any:
            for _ in range(count):
                x = function(x, y, z)
            return x

        jitted = jax.jit(run)
        return lambda: jax.block_until_ready(jitted(x, y, z))

    check("the call's result", is_right=bool((call(x, y, z) == 3).all()))
    check("a chain's result", is_right=bool((chain(call, 20)() == 41).all()))
    with_xla = jax.jit(lambda x, y, z: x + y + z)
    with_empty, with_weft = jax.jit(empty), jax.jit(call)
    last: list[Any] = []

    def wait() -> None:
        jax.block_until_ready(last)
        last.clear()

    def road(function: Callable[..., Any]) -> Callable[[], Any]:
        def run() -> None:
            last[:] = [function(x, y, z)]

        return run

    timed(
        {
            "jax: x + y + z": road(with_xla),
            "jax: empty call": road(with_empty),
            "jax: call": road(with_weft),
            "jax: call, not jitted by the caller": road(call),
        },
        wait,
    )
    timed(
        {
            "jax: 101 empty calls in a program, waited for": chain(empty, 101),
            "jax: 101 calls in a program, waited for": chain(call, 101),
        },
        wait,
        calls=10,
    )
    FIGURES["jax"] = jax.__version__


PARTS = {"torch": torch_overhead, "capture": capture, "block": block, "jax": jax_calls}


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas")
    options = parser.parse_args()
    failed = []
    for name in options.only.split(","):
        begin = time.perf_counter()
        print(f"\n## {name}\n\n| what | |\n| --- | --- |", flush=True)
        try:
            PARTS[name]()
        except Exception:
            traceback.print_exc()
            failed.append(name)
        print(f"\n{name}: {time.perf_counter() - begin:.0f} s", flush=True)
    if out := os.environ.get("OUT"):
        Path(out, "operators.json").write_text(json.dumps(FIGURES, indent=1))
    if failed or not all(value is not False for value in FIGURES.values()):
        sys.exit(f"failed: {', '.join(failed) or 'a check'}")


if __name__ == "__main__":
    main()
