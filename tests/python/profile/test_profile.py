"""The profiler: its counts against numbers that follow from the access pattern, its findings, and its command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import planted
import planted_more
import pytest
from planted import exchanged, picture, saxpy, tile_column, transpose, vector
from weft import cuda
from weft.errors import LaunchError
from weft.profile import Access, Profile, Request, profile

pytestmark = pytest.mark.skipif(os.environ["WEFT_DEVICE"] != "cpu", reason="profiles are counted on the CPU")

FAULTS = planted.FAULTS | planted_more.FAULTS
CLEAN = planted.CLEAN | planted_more.CLEAN

PROGRAM = """
import numpy as np
from weft import cuda


@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2


@cuda.jit
def reverse(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[x.size - 1 - i]


x = np.arange(1000, dtype=np.float32)
out = np.zeros_like(x)
for _ in range(3):
    double[4, 256](x)
reverse[4, 256](x, out)
print(out[0])
"""


def only(found: Profile, kind: str, space: str) -> Access:
    """The only access of a kind to a space."""
    (access,) = [each for line in found.lines for each in line.accesses if (each.kind, each.space) == (kind, space)]
    return access


def test_counts_of_a_row():
    found = profile(saxpy[5, 256], (np.float32(2), np.ones(1200, np.float32), np.ones(1200, np.float32)))
    store = only(found, "store", "global")
    # 37 whole warps and one of 16 lanes: 4 sectors each, and 2.
    assert (store.requests, store.lanes, store.sectors, store.ideal_sectors) == (38, 1200, 150, 150)
    assert (store.array, store.source, store.stride) == ("y", "y[i]", 4)
    assert (found.blocks, found.blocks_run, found.error, found.is_sampled) == (5, 5, 0.0, False)
    (x,) = [array for array in found.arrays if array.name == "x"]
    assert (x.nbytes, x.reads, x.writes, x.touched, x.moved) == (4800, True, False, 4800, 4800)


@pytest.mark.parametrize(("kernel", "wavefronts"), [(tile_column, 32), (transpose, 1)])
def test_counts_of_a_tile(kernel, wavefronts):
    found = profile(kernel[(2, 2), (32, 32)], (np.ones((64, 64), np.float32), np.zeros((64, 64), np.float32)))
    load = only(found, "load", "shared")
    assert (load.requests, load.wavefronts, load.ideal_wavefronts) == (128, 128 * wavefronts, 128)
    assert (load.source, load.stride) == ("tile[tx, ty]", 128 if wavefronts == 32 else 132)
    assert found.total("shared", "wavefronts") == 128 * wavefronts + 128


def test_a_launch_is_not_made():
    x = np.ones(64, np.float32)
    cuda_x = cuda.to_device(x)
    found = saxpy[1, 64].profile(np.float32(3), x, y=cuda_x)
    assert found.kernel == "saxpy"
    assert (x == 1).all()
    assert (cuda_x.copy_to_host() == 1).all()


def test_views_are_copied_without_their_gaps():
    a = np.arange(4096, dtype=np.float32)
    found = profile(saxpy[1, 32], (np.float32(1), a[::2][:32], a[1::2][:32]))
    assert [array.name for array in found.arrays] == ["x", "y"]
    assert only(found, "store", "global").sectors == 4


def test_arrays_that_share_memory_are_one():
    a = np.arange(4096, dtype=np.float32)
    found = profile(saxpy[1, 32], (np.float32(1), a[:32], a[16:48]))
    assert [array.name for array in found.arrays] == ["x, y"]
    assert only(found, "store", "global").source == "y[i]"


def test_a_view_of_a_device_array_is_where_it_is():
    a = cuda.to_device(np.arange(4096, dtype=np.float32))
    found = profile(saxpy[1, 32], (np.float32(1), a[8:40], a[1001:1033]))
    assert only(found, "store", "global").sectors == 5


@cuda.jit
def copied_rows(x, boxes, out):
    """The first block of a cluster copies a row to two blocks; each block copies a box, and a row to global memory."""
    row, box = cuda.shared.array(64, np.float32), cuda.shared.array((8, 16), np.float32)
    bar = cuda.barrier(1)
    t, rank = cuda.threadIdx.x, cuda.cluster.rank()
    cuda.cluster.sync()
    if t == 0:
        bar.expect(row.nbytes + box.nbytes)
        cuda.copy_async(box, boxes[0, -8], bar)
        if rank == 0:
            cuda.copy_async(row, x, bar, multicast=3)
    bar.wait(0)
    if t == 0:
        cuda.copy_async(out[cuda.blockIdx.x], row)
        cuda.copy_commit()
        cuda.copy_wait()
    cuda.cluster.sync()


def test_copies_and_clusters_are_counted():
    boxes = cuda.tensor_map(cuda.to_device(np.ones((32, 64), np.float32)), (8, 16))
    args = np.ones(64, np.float32), boxes, np.zeros((4, 64), np.float32)
    found = profile(copied_rows[4, 32, 0, 0, 2], args)
    sectors = {each.array: each.sectors for line in found.lines for each in line.accesses if each.space == "global"}
    # Eight rows of eight elements inside of the array, for each block; a row for each cluster, and one for each block.
    assert sectors == {"boxes": 4 * 8, "x": 2 * 8, "out": 4 * 8}
    assert {array.name for array in found.arrays} == {"x", "boxes", "map boxes", "out"}


@pytest.mark.parametrize("name", FAULTS)
def test_the_first_finding_is_the_planted_fault(name):
    kernel, (grid, block, *shared), args, kind, text = FAULTS[name]
    found = profile(kernel.configure(grid, block, sharedmem=sum(shared)), args).findings
    assert found, "nothing was found"
    assert found[0].kind == kind, found[0]
    assert text in found[0].text
    assert found[0].file == kernel.py_func.__code__.co_filename


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_is_found_in_a_good_kernel(name):
    kernel, (grid, block), args = CLEAN[name]
    assert [each for each in profile(kernel[grid, block], args).findings if each.share > 0.1] == []


def test_a_sample_is_near_the_whole():
    args = np.float32(2), np.ones(1_000_000, np.float32), np.ones(1_000_000, np.float32)
    found = profile(saxpy[4000, 256], args, seconds=0.0)
    assert found.is_sampled
    assert found.blocks == 4000
    whole = profile(saxpy[4000, 256], args, seconds=1e9)
    # The grid has 93 blocks beyond the array.
    deviation = abs(whole.total("global", "sectors") / (3 * 125_000) - 1)
    assert deviation <= 4 * whole.error
    assert abs(found.total("global", "sectors") / (3 * 125_000) - 1) <= 4 * found.error


def test_other_gpus():
    launch = exchanged[(16, 16), (32, 32)]
    found = {gpu: profile(launch, (picture(), picture()), gpu=gpu) for gpu in ("a100", "RTX 4090")}
    assert [each.sm for each in found.values()] == ["sm_80", "sm_89"]
    assert found["a100"].bounds != found["RTX 4090"].bounds
    with pytest.raises(ValueError, match="there is no GPU `gtx999`"):
        profile(launch, (picture(), picture()), gpu="gtx999")


def test_an_access_out_of_bounds_names_the_line_and_the_array():
    @cuda.jit
    def beyond(x):
        i = cuda.grid(1)
        x[i] = x[i + 100_000]

    with pytest.raises(LaunchError, match=r"`beyond` cannot be simulated: .* past the end of `x`\n  at .*, line \d+"):
        profile(beyond[1, 32], (np.zeros(32),))


def test_a_wrong_call_is_an_error():
    with pytest.raises(TypeError, match=r"got multiple values for `x`|needs a value"):
        saxpy[1, 32].profile(1.0, x=vector())


def test_the_first_requests_are_recorded():
    found = profile(tile_column[(2, 2), (32, 32)], (np.ones((64, 64), np.float32), np.zeros((64, 64), np.float32)))
    load = only(found, "load", "shared")
    # A lane reads the next row of a tile with 32 columns.
    assert len(load.first_requests) == 2
    for request in load.first_requests:
        first = request.offsets[0]
        assert request == Request(tuple(first + 128 * lane for lane in range(32)), 4)
    found = profile(saxpy[1, 32], (np.float32(2), np.ones(20, np.float32), np.ones(20, np.float32)))
    (request,) = only(found, "store", "global").first_requests
    assert request.offsets == (*range(0, 80, 4), *[None] * 12)


def test_occupancy_of_other_blocks():
    found = profile(saxpy[1, 96], (np.float32(2), np.ones(96, np.float32), np.ones(96, np.float32)))
    by_block = dict(found.occupancy.by_block)
    assert list(by_block) == list(range(32, 1025, 32))
    assert by_block[96] == found.occupancy.warps == 63
    assert by_block[1024] == 64


def test_rates_are_those_of_the_gpu():
    found = profile(saxpy[1, 32], (np.float32(2), vector(), vector()), gpu="a100")
    rates = dict(found.rates)
    assert rates["device memory"] == pytest.approx(2039e9)
    assert rates["float32"] == pytest.approx(108 * 64 * 1410e6)
    assert rates["shared memory"] == pytest.approx(108 * 1410e6)


@cuda.jit
def scaled(a, i):
    return a[i] * np.float32(2)


@cuda.jit
def two_callers(a, out):
    i = cuda.grid(1)
    out[i] = scaled(a, i)
    out[i + 64] = scaled(a, 32 * i)


def test_the_counts_of_a_device_function_are_divided_by_callers():
    found = profile(two_callers[2, 32], (np.ones(2048, np.float32), np.zeros(128, np.float32)))
    [line] = [line for line in found.lines if "return a[i]" in line.text]
    below = two_callers.py_func.__code__.co_firstlineno
    sectors = {calls.chain: calls.sectors for calls in line.calls}
    assert sectors == {((__file__, below + 3),): 8, ((__file__, below + 4),): 64}
    assert line.total("global", "sectors") == 72
    assert re.search(rf"called from line {below + 3} +8$", str(found), re.MULTILINE)
    assert f"called from line {below + 4}: " in found.to_html()
    read = next(each for each in json.loads(found.to_json())["lines"] if each["line"] == line.line)
    assert [calls["chain"][0][1] for calls in read["calls"]] == [calls.chain[0][1] for calls in line.calls]


def test_json_has_all_but_the_ptx():
    found = profile(transpose[(2, 2), (32, 32)], (np.ones((64, 64), np.float32), np.zeros((64, 64), np.float32)))
    read = json.loads(found.to_json())
    assert read["schema"] == 1
    assert "ptx" not in read
    assert ".visible .entry" in found.ptx
    load = next(each for line in read["lines"] for each in line["accesses"] if each["source"] == "tile[tx, ty]")
    assert (load["kind"], load["space"], load["requests"], load["wavefronts"]) == ("load", "shared", 128, 128)
    assert read["occupancy"]["max_warps"] == 64


class Reader(HTMLParser):
    """The ids, the links and the elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list) -> None:
        given = dict(attrs)
        assert "src" not in given
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open[-1] in ("li", "p", "td", "tr") and self.open[-1] != tag:
            self.open.pop()
        assert self.open.pop() == tag


def test_the_page_is_whole():
    found = profile(tile_column[(4, 4), (32, 32)], (np.ones((128, 128), np.float32), np.zeros((128, 128), np.float32)))
    text = found.to_html()
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    assert len(set(reader.ids)) == len(reader.ids)
    assert reader.links
    assert all(link[1:] in reader.ids for link in reader.links)
    for part in (
        "bank conflicts",
        "tile[ty, tx] = a[y, x]",
        "ld.shared",
        "16,384 wavefronts (512 needed)",
        "prefers-color-scheme",
        "Roofline of h100 for ",
        "Occupancy by block size",
        "32 lanes access 1 of 32 banks, up to 32 words in a bank",
    ):
        assert part in text, part
    assert "https:" not in text
    assert found._repr_html_().startswith("<iframe srcdoc=")


def run(*args: str, **more: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "weft.profile", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def test_the_command_profiles_a_program(tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = run(str(program))
    assert done.returncode == 0, done.stderr
    # The program's own output is that of its launches.
    assert done.stdout.startswith("7992.0\n")
    assert "double[4, 256](array(float32, 1d, C)) on h100\n  one of 3 launches\n" in done.stdout
    assert "reverse[4, 256]" in done.stdout
    done = run("--kernel", "reverse", "--format", "json", "-o", str(tmp_path / "one.json"), str(program))
    assert done.returncode == 0, done.stderr
    (read,) = json.loads((tmp_path / "one.json").read_text())
    assert (read["kernel"], read["gpu"], read["launches"]) == ("reverse", "h100", 1)


def test_the_page_shows_the_report_of_its_program(tmp_path: Path):
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "find-slow-lines.md").read_text()
    (source,) = re.findall(r"^```py\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (shown,) = re.findall(r"^```text\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    program = tmp_path / "transpose.py"
    program.write_text(source)
    done = run(str(program))
    assert done.returncode == 0, done.stderr

    def stable(text: str) -> list[str]:
        # `ptxas`, where it is found, counts the registers.
        return [line for line in text.rstrip().splitlines() if "registers a thread" not in line]

    assert stable(done.stdout.replace(str(program), "transpose.py")) == stable(shown)


def test_two_files_are_compared(tmp_path: Path):
    files = []
    for name, kernel in (("before", tile_column), ("after", transpose)):
        found = profile(kernel[(16, 16), (32, 32)], (picture(), picture()))
        file = tmp_path / f"{name}.json"
        file.write_text(found.to_json().replace('"tile_column"', '"transpose"'))
        files.append(str(file))
    done = run("--compare", *files)
    assert done.returncode == 0, done.stderr
    assert "shared wavefronts 270,336 -> 16,384 0.06 times" in " ".join(done.stdout.split())
    assert "  gone: bank conflicts, `out[cuda.blockIdx.x" in done.stdout
    same = run("--compare", files[0], files[0])
    assert same.stdout == "transpose: the counts are the same\n"
    (tmp_path / "other.json").write_text("{}")
    page = run("--compare", *files, "--format", "html").stdout
    assert "<td>270,336</td><td>16,384</td><td>0.06 times</td>" in page
    assert "Findings that are gone" in page
    assert run("--compare", *files, "--format", "json").returncode == 2
    wrong = run("--compare", files[0], str(tmp_path / "other.json"))
    assert wrong.returncode == 2
    assert "is not a profile of this version" in wrong.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["missing.py"], "there is no file missing.py"),
        ([], "name a program"),
        (["--gpu", "gtx999", __file__], "there is no GPU `gtx999`; the names are t4, "),
        (["--compare", "a.json", "b.json"], "No such file"),
    ],
)
def test_wrong_commands(args, message):
    done = run(*args)
    assert done.returncode == 2
    assert message in done.stderr
