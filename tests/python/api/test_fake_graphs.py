"""Graphs as the driver sees them, without a GPU: over the fake driver, as in `test_fake_gpu.py`."""

from __future__ import annotations

import textwrap

GRAPH = """
out, copy = cuda.to_device(np.zeros(1, int)), cuda.to_device(np.zeros(1, int))
with cuda.graph() as graph:
    sum3[1, 1](out, 1, 2)
    copy.copy_to_device(out)
    sum3[1, 1](out, 4, 5)
"""


def test_a_graph_is_one_call(run, tmp_path):
    trace = tmp_path / "trace"
    code = f"""
    with open({str(trace)!r}, "a") as file:
        print("launch", file=file)
    graph.launch()
    graph.launch()
    print(out[0], copy[0])
    del graph
    """
    run(GRAPH + textwrap.dedent(code), FAKE_TRACE=str(trace))
    before, behind = trace.read_text().split("launch\n")
    made = [call for call in before.splitlines() if "Graph" in call]
    node = "cuGraphAddKernelNode_v2"
    assert made == ["cuGraphCreate", node, "cuGraphAddMemcpyNode", node, "cuGraphInstantiateWithFlags"]
    assert "cuLaunchKernel" not in before
    used = [call for call in behind.splitlines() if "Graph" in call]
    assert used == ["cuGraphLaunch", "cuGraphLaunch", "cuGraphExecDestroy", "cuGraphDestroy"]
    # The driver launches each node.
    assert behind.count("cuLaunchKernel") == 4


def test_arguments_of_a_graphs_nodes_change(run):
    code = """
    print(out[0], copy[0])
    graph.launch()
    print(out[0], copy[0])
    graph.set_args(0, out, 10, 20)
    graph.set_args(1, copy, 7, 8)
    graph.launch()
    print(out[0], copy[0])
    """
    assert run(GRAPH + textwrap.dedent(code)).splitlines() == ["0 0", "9 3", "30 15"]


def test_a_graph_with_a_cooperative_launch_is_one_call_a_step(run, tmp_path):
    trace = tmp_path / "trace"
    code = """
    @cuda.jit
    def sum2(out, a):
        out[0] = a
        cuda.cg.this_grid().sync()

    out = cuda.to_device(np.zeros(1, int))
    with cuda.graph() as graph:
        sum2[1, 1](out, 6)
    graph.launch()
    print(out[0])
    """
    assert run(code, FAKE_TRACE=str(trace)) == "6\n"
    calls = trace.read_text()
    assert "Graph" not in calls
    assert calls.count("cuLaunchCooperativeKernel") == 1


def test_a_graph_that_the_driver_refuses_is_given_back(run, tmp_path):
    trace = tmp_path / "trace"
    code = """
    from weft import errors
    out = cuda.to_device(np.zeros(1, int))
    try:
        with cuda.graph() as graph:
            sum3[1, 1](out, 1, 2)
    except errors.DriverError as error:
        print(error)
    print(len(graph))
    sum3[1, 1](out, 1, 2)
    """
    shown = run(code, FAKE_TRACE=str(trace), FAKE_NODES="2")
    assert "cuGraphAddKernelNode" in shown
    assert shown.splitlines()[-1] == "0"
    calls = trace.read_text().splitlines()
    assert calls.count("cuGraphCreate") == calls.count("cuGraphDestroy") == 1
    assert calls.count("cuLaunchKernel") == 1


HOST_COPIES = """
rows, out = np.arange(12).reshape(3, 4), np.zeros((3, 4), int)
there = cuda.to_device(np.zeros((3, 4), int))
with cuda.graph() as graph:
    there[:, 1:3].copy_to_device(rows[:, 1:3])
    sum3[1, 1](there[0], 20, 22)
    there.copy_to_host(out)
"""


def test_copies_of_the_host_are_nodes(run, tmp_path):
    trace = tmp_path / "trace"
    code = """
    assert not out.any()
    graph.launch()
    assert out.tolist() == [[42, 1, 2, 0], [0, 5, 6, 0], [0, 9, 10, 0]], out
    rows *= 10
    graph.launch(cuda.stream())
    assert out.tolist() == [[42, 10, 20, 0], [0, 50, 60, 0], [0, 90, 100, 0]], out
    with open(trace, "a") as file:
        print("end", file=file)
    # Returning the arrays waits for the last launch.
    del graph
    """
    run(HOST_COPIES + f"trace = {str(trace)!r}\n" + textwrap.dedent(code), FAKE_TRACE=str(trace))
    before, behind = trace.read_text().split("end\n")
    calls = before.splitlines()
    assert calls.count("cuGraphAddMemcpyNode") == 2
    assert [calls[at + 1] for at, call in enumerate(calls) if call == "cuGraphLaunch"] == ["cuLaunchKernel"] * 2
    assert calls.count("cuEventRecord") == 2
    ended = [call for call in behind.splitlines() if call.startswith(("cuEvent", "cuGraph"))]
    assert ended[:3] == ["cuEventSynchronize", "cuGraphExecDestroy", "cuGraphDestroy"]


def test_a_graph_without_nodes_copies_from_and_to_the_host(run, tmp_path):
    trace = tmp_path / "trace"
    code = """
    @cuda.jit
    def sum2(out, a):
        out[0] = a
        cuda.cg.this_grid().sync()

    host, there = np.zeros(4, int), cuda.to_device(np.zeros(4, int))
    with cuda.graph() as graph:
        there.copy_to_device(host)
        sum2[1, 1](there, 6)
        there.copy_to_host(host)
    host[1] = 5
    graph.launch()
    # With one call per step, the launching thread waits.
    assert host.tolist() == [6, 5, 0, 0]
    """
    run(code, FAKE_TRACE=str(trace), FAKE_BUSY="1")
    calls = trace.read_text().splitlines()
    assert calls.count("cuMemcpy3DAsync_v2") == 2
    assert "cuGraphCreate" not in calls


SHARED_COPIES = """
there = cuda.to_device(np.zeros(4, int))
shared = [cuda.mapped_array(4, int), cuda.managed_array(4, int), cuda.pinned_array(4, int)]
with cuda.graph() as graph:
    for each in shared:
        there.copy_to_device(each)
        sum3[1, 1](there, 1, 2)
        there.copy_to_host(each)
for number, each in enumerate(shared):
    each[:] = number
graph.launch()
cuda.synchronize()
assert [each.tolist() for each in shared] == [[3, n, n, n] for n in range(3)], shared


class Manager(cuda.HostOnlyCUDAMemoryManager):
    def initialize(self):
        pass

    def memalloc(self, size):
        return self.memallocmanaged(size)

    def get_ipc_handle(self, memory):
        raise NotImplementedError

    def get_memory_info(self):
        raise NotImplementedError

    @property
    def interface_version(self):
        return 1


# A manager's memory may be any.
cuda.set_memory_manager(Manager)
lent = cuda.to_device(np.arange(4))
with cuda.graph() as graph:
    there.copy_to_device(lent)
graph.launch()
assert there.copy_to_host().tolist() == [0, 1, 2, 3]
"""


def test_the_memory_of_copies_is_named_as_what_it_is(run):
    # The fake driver rejects other types.
    run(SHARED_COPIES)
    run(SHARED_COPIES, FAKE_CONCURRENT="0")


BRANCHES = """
a, b, c, d = (cuda.to_device(np.zeros(1, int)) for _ in range(4))
host = np.zeros(1, int)
one, other, third = cuda.stream(), cuda.stream(), cuda.external_stream(0x1230)
begun, done = cuda.event(), cuda.event()


def chain(*streams):
    with cuda.graph() as graph:
        for stream in streams:
            sum3[1, 1, stream](a, 1, 2)
    graph.launch()


def branches():
    with cuda.graph() as graph:
        sum3[1, 1, one](a, 1, 2)
        begun.record(one)
        begun.wait(other)
        b.copy_to_device(a, stream=one)
        c.copy_to_device(a, stream=other)
        sum3[1, 1, other](a, 20, 30)
        sum3[1, 1, third](d, 7, 8)
        done.record(other)
        done.wait(one)
        a.copy_to_host(host, stream=one)
        sum3[1, 1](b.bind(0), 100, 0)
    # The driver made of C takes those that may come next from the last to the first.
    graph.launch(one)
    assert [x[0] for x in (a, b, c, d, host)] == [50, 100, 3, 15, 50]
"""


def test_streams_of_a_recording_are_branches_of_the_graph(run, tmp_path):
    def behind(code):
        trace = tmp_path / "trace"
        trace.write_text("")
        run(BRANCHES + code, FAKE_TRACE=str(trace))
        nodes = [line.split()[2:] for line in trace.read_text().splitlines() if line.startswith("node after")]
        return [[int(number) for number in node] for node in nodes]

    assert behind("chain(0, 0, None, cuda.default_stream(), cuda.legacy_default_stream())") == [[], [0], [1], [2], [3]]
    assert behind("chain(one, other, one, other)") == [[], [], [0], [1]]
    assert behind("chain(one, third, 0, other, one, 0)") == [[], [], [0, 1], [2], [2], [3, 4]]
    assert behind("chain(cuda.per_thread_default_stream(), one, cuda.per_thread_default_stream())") == [[], [], [0]]
    assert behind("branches()") == [[], [0], [0], [2], [], [1, 3], [3, 4, 5]]
