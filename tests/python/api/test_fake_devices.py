"""Attributes, occupancy, clusters and a driver's PTX version, over the fake driver: see `test_fake_gpu.py`."""

from __future__ import annotations


def test_an_attribute_that_the_driver_does_not_know(run) -> None:
    run(
        """
        device = cuda.get_current_device()
        assert device.CLUSTER_LAUNCH == 1 and device.MULTIPROCESSOR_COUNT == device.__getattr__("MULTIPROCESSOR_COUNT")
        assert not hasattr(device, "LOCALITY_DOMAIN_COUNT")
        try:
            device.LOCALITY_DOMAIN_COUNT
        except AttributeError as error:
            assert str(error) == (
                "the driver, which is for CUDA 12.4, does not know the device attribute 'LOCALITY_DOMAIN_COUNT'"
            ), error
        """
    )


def test_detect_prints_as_numba(run) -> None:
    told = run("assert cuda.detect()", FAKE_DEVICES="2", FAKE_CC1="70")
    lines = told.splitlines()
    assert lines[0] == "Found 2 CUDA devices"
    assert lines[1] == "id 0    " + f"{'Fake GPU 0':>20}" + " " + f"{'[SUPPORTED]':>40}"
    assert f"{'Compute Capability':>40}: 9.0" in lines
    assert f"{'PCI Device ID':>40}: 5" in lines
    assert f"{'PCI Bus ID':>40}: 1" in lines
    assert f"{'UUID':>40}: GPU-00010203-0405-0607-0809-0a0b0c0d0e0f" in lines
    assert f"{'Watchdog':>40}: Disabled" in lines
    assert f"{'FP32/FP64 Performance Ratio':>40}: 2" in lines
    assert "[NOT SUPPORTED: CC < 7.5]" in told
    assert lines[-2:] == ["Summary:", "\t1/2 devices are supported"]


def test_the_blocks_of_forall_are_those_that_fill_the_device(run, tmp_path) -> None:
    calls = tmp_path / "calls"
    run(
        """
        out = cuda.device_array(1, int)
        sum3.forall(10000)(out, 1, 2)
        (kernel,) = sum3.overloads.values()
        # 96 registers a thread: 672 threads, which blocks of 224 are.
        assert kernel.max_potential_block_size() == (3 * 132, 224)
        assert kernel.max_potential_block_size(100_000) == (132, 640)
        assert kernel.max_potential_block_size(lambda threads: 1000 * threads, 128) == (2 * 132, 96)
        assert kernel.active_blocks_per_multiprocessor((16, 4)) == 10
        context = cuda.current_context()
        assert context.get_active_blocks_per_multiprocessor(kernel, 224, 0) == 3
        assert context.get_max_potential_block_size(kernel, None, 300_000, 0) == (0, 0)
        asked = open(TRACE).read().count("cuOccupancy")
        sum3.forall(10000)(out, 1, 2)
        assert open(TRACE).read().count("cuOccupancy") == asked
        """.replace("TRACE", repr(str(calls))),
        FAKE_TRACE=str(calls),
    )
    assert "cuOccupancyMaxActiveBlocksPerMultiprocessor" in calls.read_text()


def test_explain_reports_registers_and_occupancy(run, tmp_path) -> None:
    ptxas = tmp_path / "ptxas"
    ptxas.write_text(PTXAS)
    ptxas.chmod(0o755)
    code = """
        import os
        out = cuda.device_array(1, int)
        bound = cuda.jit(sum3.py_func, coarsen=1, launch_bounds=128)
        bound.compile("void(int64[::1], int64, int64)")
        print(bound.explain())
        sum3[2, 224, None, 1000](out, 1, 2)
        print(sum3.explain())
        os.environ["PATH"] = TOOLS
        print(sum3.explain())
        """
    ran = run(code.replace("TOOLS", repr(str(tmp_path))), PATH="/absent", WEFT_COARSEN="off")
    bound, launched, by_ptxas = ran.strip().split("\n\n")
    uses = "96 registers a thread, 4096 bytes of shared memory a block, 24 bytes of local memory a thread"
    # If the machine has ptxas, spills follow here.
    assert uses in bound
    of_bound = (
        "; occupancy with 128 threads a block (as in launch_bounds): 31 % (20 of 64 warps), limited by registers\n"
    )
    assert of_bound in bound + "\n"
    assert uses in launched
    of_launch = (
        "; occupancy with 224 threads a block (as in the last launch): 33 % (21 of 64 warps), limited by registers\n"
    )
    assert of_launch in launched + "\n"
    assert f"{uses}, spills: 16 bytes stored, 20 bytes loaded; occupancy" in by_ptxas


PTXAS = """#!/bin/sh
while read -r line; do
    case "$line" in *.entry*) name=${line##*.entry }; name=${name%%(*} ;; esac
done
echo "ptxas info    : Compiling entry function '$name' for 'sm_90'" >&2
echo "ptxas info    : Function properties for $name" >&2
echo "    24 bytes stack frame, 16 bytes spill stores, 20 bytes spill loads" >&2
echo "ptxas info    : Used 96 registers, used 1 barriers, 4096 bytes smem" >&2
"""


def test_clusters(run, tmp_path) -> None:
    calls = tmp_path / "calls"
    run(
        """
        out = cuda.device_array(1, int)
        sum3[(8, 2), 32, 0, 0, (4, 2)](out, 1, 2)
        assert out.copy_to_host()[0] == 3
        sum3[8, 32, 0, 0, 1](out, 3, 4)
        prepared = sum3[8, 32, 0, 0, 2].prepare(out, 5, 6)
        prepared()
        assert out.copy_to_host()[0] == 11
        with cuda.graph() as graph:
            sum3[8, 32, 0, 0, 8](out, 7, 8)
        graph.launch()
        assert out.copy_to_host()[0] == 15
        """,
        FAKE_TRACE=str(calls),
    )
    launches = [call for call in calls.read_text().splitlines() if call.startswith("cuLaunchKernelEx")]
    assert [launch.split(" ", 1)[1] for launch in launches] == ["cluster 4 2 1", "cluster 2 1 1", "cluster 8 1 1"]


def test_clusters_of_a_device_without_them(run) -> None:
    run(
        """
        try:
            sum3[2, 32, 0, 0, 2](cuda.device_array(1, int), 1, 2)
        except weft.LaunchError as error:
            assert "clusters need 9.0 or higher" in str(error)
        else:
            raise AssertionError
        """,
        FAKE_CC="86",
    )


PTX = """
@cuda.jit
def own(x):
    cuda.inline_ptx("TEXT")


def code(kernel):
    array = cuda.device_array(1, int)
    kernel[1, 32](array)
    (compiled,) = kernel.overloads.values()
    return compiled.code.decode()

"""


def version(run, text: str, **env: str) -> str:
    shown = "print([line for line in code(own).splitlines() if line[:4] in ('.ver', '.tar')])"
    return run(PTX.replace("TEXT", text) + shown, **env)


def test_the_version_of_ptx_is_one_that_the_driver_takes(run) -> None:
    assert "'.version 8.4', '.target sm_90'" in version(run, "nanosleep.u32 1;")
    assert "'.version 8.8'" in version(run, "nanosleep.u32 1;", FAKE_VERSION="12090")
    # Properties of this GPU alone.
    assert "'.target sm_90a'" in version(run, "wgmma.fence.sync.aligned;")
    # Code without user PTX works with every driver.
    run(
        """
        array = cuda.device_array(1, int)
        sum3[1, 32](array, 1, 2)
        (compiled,) = sum3.overloads.values()
        assert ".version 7.8" in compiled.code.decode()
        """
    )


def test_ptx_that_the_driver_or_the_gpu_lacks(run) -> None:
    for text, told, env in (
        (
            "elect.sync _|p, 1;",
            "`elect.sync` needs PTX 8.0, but the driver supports at most 7.8: it needs a driver for CUDA 12.0 or newer",
            {"FAKE_VERSION": "11080"},
        ),
        ("barrier.cluster.arrive;", "`barrier.cluster.arrive` needs `sm_90` or newer", {"FAKE_CC": "89"}),
        ("wgmma.fence.sync.aligned;", "`wgmma.fence.sync.aligned` needs `sm_90a`", {"FAKE_CC": "100"}),
    ):
        run(
            PTX.replace("TEXT", text)
            + f"""
try:
    code(own)
except weft.CompileError as error:
    assert {told!r} in str(error), error
    assert error.diagnostics[0]["code"] == "E0308"
else:
    raise AssertionError
""",
            **env,
        )
