"""Hooks of a launch: extensions that prepare arguments, callbacks before it, and its configuration."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import weft
from harness import module
from weft import cuda
from weft.cuda import launchconfig
from weft.cuda._args import wrap_arg


def add_function(out, value):
    i = cuda.grid(1)
    if i < out.size:
        out[i] += value


class Recorder:
    """An extension that changes nothing and records its arguments."""

    def __init__(self):
        self.seen = []

    def prepare_args(self, ty, val, stream, retr):
        self.seen.append((ty, type(val), stream, len(retr)))
        return ty, val


class Table:
    """An object that kernels do not accept."""

    def __init__(self, column):
        self.column = column


class Columns:
    """Convert a table to an array, and record the end of the launch."""

    def __init__(self, log):
        self.log = log

    def prepare_args(self, ty, val, stream, retr):
        if not isinstance(val, Table):
            return ty, val
        assert ty is None
        device = cuda.to_device(val.column)

        def write_back():
            device.copy_to_host(val.column)
            self.log.append("written back")

        retr.append(write_back)
        return weft.typeof(device), device


def test_extensions_see_each_argument_from_the_last_one_to_the_first() -> None:
    order = []

    class Named(Recorder):
        def prepare_args(self, ty, val, stream, retr):
            order.append((self.name, type(val)))
            return super().prepare_args(ty, val, stream, retr)

    first, second = Named(), Named()
    first.name, second.name = "first", "second"
    kernel = cuda.jit(extensions=[first, second])(add_function)
    stream = cuda.stream()
    x = np.zeros(4)
    kernel[1, 4, stream](x, 2.0)
    stream.synchronize()
    assert x.tolist() == [2] * 4
    assert order == [("second", np.ndarray), ("first", np.ndarray), ("second", float), ("first", float)]
    assert [seen[0] for seen in first.seen] == [weft.float64[::1], weft.float64]
    assert all(seen[2] is stream for seen in first.seen)
    kernel[1, 4](x, 2.0)
    assert first.seen[-1][2] == 0


def test_an_extension_makes_an_argument_of_what_no_kernel_takes() -> None:
    log = []
    kernel = cuda.jit(extensions=[Columns(log)])(add_function)
    table = Table(np.zeros(5, np.float32))
    kernel[1, 32](table, 3)
    assert table.column.tolist() == [3] * 5
    kernel.forall(5)(table, 1)
    assert table.column.tolist() == [4] * 5
    assert log == ["written back"] * 2
    with pytest.raises(TypeError, match=r"argument 1 .`out`. of kernel `add_function`: a .*Table cannot"):
        cuda.jit(add_function)[1, 32](table, 3)


def test_the_list_of_extensions_can_be_changed() -> None:
    """As in programs for numba, with a hint for host arrays."""

    class DefaultIn:
        def prepare_args(self, ty, val, **kwargs):
            return ty, wrap_arg(val, default=cuda.In) if isinstance(val, np.ndarray) else val

    kernel = cuda.jit(add_function)
    assert kernel.extensions == []
    x = np.zeros(4)
    kernel[1, 4](x, 1)
    kernel.extensions.append(DefaultIn())
    kernel[1, 4](x, 1)
    assert x.tolist() == [1] * 4
    given = [DefaultIn()]
    assert cuda.jit(extensions=given)(add_function).extensions is given
    assert kernel.specialize(x, 1).extensions is kernel.extensions


def test_a_number_is_passed_as_the_type_that_an_extension_says() -> None:
    class Narrow:
        def prepare_args(self, ty, val, stream, retr):
            return (weft.float32, val) if ty == weft.float64 else (ty, val)

    kernel = cuda.jit(extensions=[Narrow()])(add_function)
    x = np.zeros(1)
    kernel[1, 1](x, 0.1)
    assert x[0] == np.float32(0.1)
    assert list(kernel.overloads) == [(weft.float64[::1], weft.float32)]


def test_extensions_of_a_specialized_kernel_get_its_types() -> None:
    extension = Recorder()
    kernel = cuda.jit("void(float32[::1], float32)", extensions=[extension])(add_function)
    kernel[1, 1](np.zeros(1, np.float32), 2)
    assert [seen[0] for seen in extension.seen] == [weft.float32[::1], weft.float32]


def test_wrong_extensions_are_refused() -> None:
    with pytest.raises(TypeError, match="must have a `prepare_args` method, which int has not"):
        cuda.jit(extensions=[1])
    with pytest.raises(TypeError, match="must be a list of objects"):
        cuda.jit(extensions=Recorder())

    class Silent:
        def prepare_args(self, ty, val, stream, retr):
            pass

    kernel = cuda.jit(extensions=[Silent()])(add_function)
    with pytest.raises(
        TypeError, match="Silent must return a type and a value for argument 1 of kernel `add_function`"
    ):
        kernel[1, 1](np.zeros(1), 1)


def test_what_an_extension_raises_ends_the_launch() -> None:
    class Refuses:
        def prepare_args(self, ty, val, stream, retr):
            raise LookupError("no column")

    x = np.zeros(1)
    with pytest.raises(LookupError, match="no column"):
        cuda.jit(extensions=[Refuses()])(add_function)[1, 1](x, 1)
    assert x[0] == 0


def test_a_prepared_launch_has_prepared_arguments() -> None:
    kernel = cuda.jit(extensions=[Columns([])])(add_function)
    on_device = cuda.to_device(np.zeros(3))
    launch = kernel[1, 32].prepare(on_device, 1)
    launch()
    assert on_device.copy_to_host().tolist() == [1] * 3


def test_a_prepared_launch_and_a_recorded_one_cannot_call_back() -> None:
    class CallsBack:
        def prepare_args(self, ty, val, stream, retr):
            retr.append(list)
            return ty, val

    kernel = cuda.jit(extensions=[CallsBack()])(add_function)
    on_device = cuda.to_device(np.zeros(3))
    with pytest.raises(TypeError, match="only possible for a launch that runs at once"):
        kernel[1, 32].prepare(on_device, 1)
    graph = cuda.graph()
    with pytest.raises(TypeError, match="only possible for a launch that runs at once"), graph:
        kernel[1, 32](on_device, 1)


def test_callbacks_are_called_before_each_launch() -> None:
    kernel = cuda.jit(add_function)
    seen = []

    def before(compiled, config):
        seen.append((compiled.argument_types, config.griddim, config.args))

    config = kernel[2, 16]
    config.pre_launch_callbacks.append(before)
    x = np.zeros(20)
    config(x, 1)
    kernel[1, 32](x, 1)
    # The same configuration object is returned.
    kernel[2, 16](x, 2)
    types = (weft.float64[::1], weft.int64)
    assert [entry[:2] for entry in seen] == [(types, (2, 1, 1))] * 2
    assert seen[0][2][0] is x
    assert [entry[2][1] for entry in seen] == [1, 2]
    assert config.args is None
    assert x.tolist() == [4] * 20
    config.pre_launch_callbacks.clear()
    config(x, 1)
    assert len(seen) == 2


def test_what_a_callback_raises_ends_the_launch() -> None:
    kernel = cuda.jit(add_function)
    x = np.zeros(4)

    def refuse(compiled, config):
        raise PermissionError("not now")

    kernel[1, 4].pre_launch_callbacks.append(refuse)
    with pytest.raises(PermissionError, match="not now"):
        kernel[1, 4](x, 1)
    assert x.tolist() == [0] * 4
    assert kernel[1, 4].args is None


@cuda.jit
def importable(x):
    x[0] += 1


def test_a_configuration_with_callbacks_cannot_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(importable[3, 4])).griddim == (3, 1, 1)
    importable[3, 4].pre_launch_callbacks.append(print)
    with pytest.raises(pickle.PicklingError, match="pre-launch callbacks"):
        pickle.dumps(importable[3, 4])


OVERLOADED = """
from weft import cuda
from weft.cuda import launchconfig
from weft.cuda.extending import overload

def chosen():
    pass

seen = []

@overload(chosen)
def implementation():
    config = launchconfig.current_launch_config()
    seen.append(config)
    if config is None:
        return lambda: 0
    if SENSITIVE:
        config.dispatcher.mark_launch_config_sensitive()
    threads = config.blockdim[0]
    return lambda: threads

SENSITIVE = False

@cuda.jit
def kernel(out):
    out[0] = chosen()
"""


def test_the_launch_that_is_compiled_for_can_be_asked_for() -> None:
    known = module(OVERLOADED)
    out = np.zeros(1)
    with launchconfig.capture_compile_config(known.kernel) as record:
        known.kernel[1, 7](out)
    assert out[0] == 7
    assert record["config"] is known.seen[0] is known.kernel[1, 7]
    with launchconfig.capture_compile_config(known.kernel) as record:
        known.kernel[1, 8](out)
    assert record["config"] is None
    assert out[0] == 7
    assert launchconfig.current_launch_config() is None
    with pytest.raises(RuntimeError, match="No launch config set for this thread"):
        launchconfig.ensure_current_launch_config()
    known.kernel.compile("void(int64[::1])")
    assert known.seen[-1] is None
    with pytest.raises(TypeError, match="dispatcher is required"), launchconfig.capture_compile_config(None):
        pass


def test_a_kernel_for_each_configuration_of_one_that_depends_on_it() -> None:
    known = module(OVERLOADED)
    known.SENSITIVE = True
    out = np.zeros(1)
    found = []
    for threads in (7, 8, 7, 9):
        known.kernel[1, threads](out)
        found.append(out[0])
    assert found == [7, 8, 7, 9]
    (kernel,) = known.kernel.overloads.values()
    assert kernel.launch_config_sensitive
    assert [config.blockdim[0] for config in known.seen] == [7, 8, 9]
    known.kernel.forall(1, tpb=11)(out)
    assert out[0] == 11
    assert not cuda.jit(add_function).kernel_for(out, 1).launch_config_sensitive


def test_only_what_is_being_compiled_can_be_marked() -> None:
    with pytest.raises(RuntimeError, match="No launch config set"):
        cuda.jit(add_function).mark_launch_config_sensitive()
