"""Writes a failing program to a file that needs only weft and NumPy. The file exits with 1 as long as it fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from combined.check import expected
from combined.launches import View

if TYPE_CHECKING:
    from combined.programs import Program

HARNESS = '''

def guarded(buffer):
    """A copy whose last byte is the last one before an inaccessible page."""
    pages = -(-max(buffer.nbytes, 1) // mmap.PAGESIZE)
    memory = mmap.mmap(-1, (pages + 2) * mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None)
    for page in (0, pages + 1):
        libc.mprotect(ctypes.c_void_p(start + page * mmap.PAGESIZE), ctypes.c_size_t(mmap.PAGESIZE), 0)
    place = start + ((pages + 1) * mmap.PAGESIZE - buffer.nbytes if AT_END else mmap.PAGESIZE)
    ctypes.memmove(place, buffer.ctypes.data, buffer.nbytes)
    made = np.frombuffer((ctypes.c_char * buffer.nbytes).from_address(place), buffer.dtype)
    return memory, place, made


class View:
    def __init__(self, place, dtype, offset, shape, strides):
        size = dtype.itemsize
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": dtype.str, "data": (place + offset * size, False), "version": 3,
            "strides": tuple(stride * size for stride in strides),
        }


faulthandler.dump_traceback_later(60, exit=True)
wrong = 0
for number, (grid, block, buffers, args, wanted) in enumerate(LAUNCHES):
    places = [guarded(np.array(values, dtype)) for dtype, values in buffers]
    made = list(args)
    for at, arg in enumerate(args):
        if isinstance(arg, tuple):
            made[at] = View(places[arg[0]][1], places[arg[0]][2].dtype, *arg[1:])
    kernel[grid, block](*made)
    cuda.synchronize()
    for (_, _, got), values, names in zip(places, wanted, BUFFERS):
        at = np.flatnonzero(got != np.array(values, got.dtype))
        if len(at):
            wrong = 1
            print(f"launch {number} with {grid}, {block}: {names}: {len(at)} of {len(got)} elements differ:",
                  [(int(each), got[each].item(), values[each]) for each in at[:4]], "(where, got, wanted)")
print("wrong results" if wrong else "right")
sys.exit(wrong)
'''


def self_contained(program: Program, outcome: str, environment: dict[str, str]) -> str:
    """The text of such a file."""
    try:
        wanted = expected(program)
    except Exception as error:
        wanted = [[buffer * 0 for buffer in launch.buffers] for launch in program.launches]
        outcome += f"\n(the reference fails: {error})"
    first = outcome.replace('"""', "'''").replace("\\", "/")
    settings = "".join(f'os.environ.setdefault("{name}", "{value}")\n' for name, value in environment.items())
    lines = [
        f'"""Seed {program.seed}: {first}\n\nExits with 1, or does not end (60 s), while the fault is there.\n"""',
        "import ctypes\nimport faulthandler\nimport math\nimport mmap\nimport os\nimport sys\nimport warnings\n",
        settings.rstrip("\n"),
        'warnings.simplefilter("ignore")',
        "import numpy as np",
        program.source,
        f"AT_END = {program.launches[0].at_end}",
    ]
    names: dict[int, list[str]] = {}
    for name, arg in program.launches[0].args.items():
        if isinstance(arg, View):
            names.setdefault(arg.buffer, []).append(name)
    lines.append(f"BUFFERS = {[', '.join(names.get(at, [])) for at in range(len(program.launches[0].buffers))]}")
    lines.append(
        "# Each: grid, block, buffers, arguments (arrays as buffer, offset, shape, strides), buffers afterwards."
    )
    lines.append("LAUNCHES = [")
    for launch, results in zip(program.launches, wanted, strict=True):
        buffers = [(buffer.dtype.name, buffer.tolist()) for buffer in launch.buffers]
        args = [
            (arg.buffer, arg.offset, arg.shape, arg.strides) if isinstance(arg, View) else arg
            for arg in launch.args.values()
        ]
        lines.append(
            f"    ({launch.grid}, {launch.block},\n     {buffers},\n     {args},\n     "
            f"{[each.tolist() for each in results]}),"
        )
    lines.append("]")
    return "\n".join(lines) + HARNESS
