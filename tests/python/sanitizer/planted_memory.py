"""Kernels that access memory past an array's end, and kernels that use uninitialized memory."""

import numpy as np
from cases import count, f32, i32, new, planted
from weft import cuda

TABLE = np.arange(8, dtype=np.float32)
PIXEL = np.dtype([("id", np.int32), ("rgb", np.float32, (3,))], align=True)


@planted("memcheck", 1, 64, lambda: (f32(64), f32(64)))
def one_too_far(a, out):
    i = cuda.threadIdx.x
    out[i] = a[i + 1]  # fault


@planted("memcheck", 2, 64, lambda: (f32(100),))
def no_guard(x):
    i = cuda.grid(1)
    x[i] = i  # fault


@planted("memcheck", 2, 64, lambda: (f32(100),))
def guard_with_or_equal(x):
    i = cuda.grid(1)
    if i <= x.size:
        x[i] += 1  # fault


@planted("memcheck", 1, 4, lambda: (f32(10),))
def far_below(x):
    i = cuda.threadIdx.x
    x[i - 20] = 1  # fault


@planted("memcheck", 1, 4, lambda: (f32(10),))
def far_above(x):
    i = cuda.threadIdx.x
    x[i + 1000000] = 1  # fault


@planted("memcheck", 1, (8, 8), lambda: (f32(8, 4),))
def axes_changed(m):
    x, y = cuda.grid(2)
    m[x, y] = 1  # fault


@planted("memcheck", 1, 8, lambda: (f32(4, 8),))
def column_inside_of_the_memory(m):
    i = cuda.threadIdx.x
    m[0, i + 4] = 1  # fault


@planted("memcheck", 1, 4, lambda: (f32(4, 8),))
def row_too_many(m):
    i = cuda.threadIdx.x
    row = m[i + 1]  # fault
    row[0] = 1  # fault


@planted("memcheck", 1, 4, lambda: (f32(4, 8),))
def beyond_a_row(m):
    row = m[cuda.threadIdx.x]
    row[8] = 1  # fault


@planted("memcheck", 1, 4, lambda: (f32(64),))
def beyond_a_slice(x):
    part = x[8:16]
    i = cuda.threadIdx.x
    part[i + 6] = 1  # fault


@planted("memcheck", 1, 4, lambda: (f32(64),))
def beyond_a_strided_slice(x):
    part = x[::8]
    i = cuda.threadIdx.x
    part[i * 3] = 1  # fault


@planted("memcheck", 1, 4, lambda: (f32(64),))
def beyond_a_reversed_slice(x):
    part = x[3::-1]
    i = cuda.threadIdx.x
    part[i + 1] = i  # fault


@planted("memcheck", 1, 64, lambda: (f32(64),))
def beyond_shared(out):
    s = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    s[i] = i  # fault
    cuda.syncthreads()
    out[i] = s[i % 32]


@planted("memcheck", 1, 32, lambda: (f32(32),))
def from_one_shared_array_into_another(out):
    s = cuda.shared.array(32, np.float32)
    t = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    s[i] = i
    t[i] = i
    cuda.syncthreads()
    out[i] = s[i + 16] + t[i]  # fault


@planted("memcheck", 1, 32, lambda: (f32(32),), shared=16 * 4)
def beyond_dynamic_shared(out):
    s = cuda.shared.array(0, np.float32)
    i = cuda.threadIdx.x
    s[i] = i  # fault


@planted("memcheck", 1, (4, 4), lambda: (f32(4, 4),))
def beyond_a_shared_row(out):
    s = cuda.shared.array((4, 4), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    s[y, x] = 1
    cuda.syncthreads()
    out[y, x] = s[y, x + 1]  # fault


@planted("memcheck", 1, 8, lambda: (f32(8),))
def beyond_local(out):
    v = cuda.local.array(4, np.float32)
    for k in range(5):
        v[k] = k  # fault
    out[cuda.threadIdx.x] = v[0]


@planted("memcheck", 1, 32, lambda: (count(32), i32(16)))
def atomic_beyond(x, h):
    i = cuda.threadIdx.x
    cuda.atomic.add(h, x[i], 1)  # fault


@planted("memcheck", 1, 8, lambda: (np.full(8, 99, np.int32), f32(8)))
def index_from_data(index, out):
    i = cuda.threadIdx.x
    out[index[i]] = i  # fault


@planted("memcheck", 1, 8, lambda: (np.zeros(4, PIXEL),))
def record_too_many(p):
    p[cuda.threadIdx.x].id = 1  # fault


@planted("memcheck", 1, 4, lambda: (np.zeros(4, PIXEL),))
def beyond_an_array_in_a_record(p):
    i = cuda.threadIdx.x
    p[i].rgb[i] = 1  # fault


@planted("memcheck", 1, 16, lambda: (f32(16),))
def beyond_a_constant_array(out):
    i = cuda.threadIdx.x
    out[i] = TABLE[i]  # fault


@planted("memcheck", 1, 16, lambda: (np.zeros(16, np.complex64), f32(16)))
def complex_beyond(z, out):
    i = cuda.threadIdx.x
    out[i] = z[i + 8].imag  # fault


@planted("memcheck", 1, 16, lambda: (f32(0),))
def an_empty_array(x):
    if cuda.threadIdx.x == 0:
        x[0] = 1  # fault


@planted("memcheck", 1, (2, 2, 2), lambda: (f32(2, 2, 2),))
def third_axis(x):
    i, j, k = cuda.grid(3)
    x[i, j, k + 1] = 1  # fault


@planted("memcheck", 1, 8, lambda: (np.asfortranarray(f32(4, 8)),))
def first_axis_of_fortran(m):
    i = cuda.threadIdx.x
    m[i, 0] = 1  # fault


@planted("memcheck", 1, 8, lambda: (f32(32)[::4],))
def strided_argument(x):
    x[cuda.threadIdx.x + 1] = 1  # fault


@planted("memcheck", 1, 8, lambda: (np.ones(8, np.bool_),))
def bool_beyond(x):
    x[cuda.threadIdx.x * 2] = False  # fault


@planted("memcheck", 1, 8, lambda: (f32(8), f32(8)))
def cached_load_beyond(a, out):
    i = cuda.threadIdx.x
    out[i] = cuda.ldcg(a, i + 1)  # fault


@planted("memcheck", 1, 4, lambda: (f32(16), f32(4)))
def loop_one_turn_too_long(a, out):
    i = cuda.threadIdx.x
    total = np.float32(0)
    for k in range(5):
        total += a[i * 4 + k]  # fault
    out[i] = total


@planted("memcheck", 4, 32, lambda: (f32(100),))
def grid_stride_with_wrong_end(x):
    for i in range(cuda.grid(1), 128, cuda.gridsize(1)):
        x[i] += 1  # fault


@planted("initcheck", 1, 64, lambda: (f32(64),))
def shared_never_written(out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    out[i] = s[i] + 1  # fault


@planted("initcheck", 1, 64, lambda: (f32(64),), shared=256)
def dynamic_shared_never_written(out):
    s = cuda.shared.array(0, np.float32)
    i = cuda.threadIdx.x
    out[i] = s[i] + 1  # fault


@planted("initcheck", 1, 64, lambda: (f32(32), f32(64)))
def shared_written_in_part(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    if i < a.size:
        s[i] = a[i]
    cuda.syncthreads()
    out[i] = s[i] * 2  # fault


@planted("initcheck", 1, 8, lambda: (f32(8),))
def local_sum_without_zero(out):
    acc = cuda.local.array(2, np.float32)
    for k in range(4):
        acc[k % 2] += k  # fault
    out[cuda.threadIdx.x] = acc[0] + acc[1]  # may


@planted("initcheck", 1, 8, lambda: (f32(8),))
def local_read_beyond_what_was_written(out):
    v = cuda.local.array(8, np.float32)
    for k in range(7):
        v[k] = k
    total = np.float32(0)
    for k in range(8):
        total += v[k]  # fault
    out[cuda.threadIdx.x] = total


@planted("initcheck", 1, 8, lambda: (new(8), f32(8)))
def device_array_never_written(a, out):
    i = cuda.threadIdx.x
    out[i] = a[i] * 2  # fault


@planted("initcheck", 1, 8, lambda: (new(8),))
def device_array_added_to(a):
    a[cuda.threadIdx.x] += 1  # fault


@planted("initcheck", 1, 8, lambda: (new(8, dtype=np.int32),))
def histogram_never_cleared(h):
    cuda.atomic.add(h, cuda.threadIdx.x, 1)  # fault


@planted("initcheck", 1, 8, lambda: (i32(8),))
def shared_histogram_never_cleared(out):
    h = cuda.shared.array(8, np.int32)
    i = cuda.threadIdx.x
    cuda.atomic.add(h, i, 1)  # fault
    cuda.syncthreads()
    out[i] = h[i]


@planted("initcheck", 1, 1, lambda: (new(8, dtype=np.int32), f32(8)))
def index_never_written(index, out):
    i = cuda.threadIdx.x
    out[index[i] & 7] = 1  # fault


@planted("initcheck", 1, 8, lambda: (new(8), f32(8)))
def branch_on_what_was_never_written(a, out):
    i = cuda.threadIdx.x
    if a[i] > 0:  # fault
        out[i] = 1


@planted("initcheck", 1, 8, lambda: (new(8), f32(8)))
def copied_and_then_used(a, out):
    s = cuda.shared.array(8, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    cuda.syncthreads()
    out[i] = s[7 - i] + 1  # fault


@planted("initcheck", 1, 8, lambda: (new(8, 2), f32(8)))
def one_column_written(m, out):
    i = cuda.threadIdx.x
    m[i, 0] = 1
    out[i] = m[i, 0] + m[i, 1]  # fault


@planted("initcheck", 1, 8, lambda: (f32(8), f32(8)))
def written_behind_the_use(a, out):
    s = cuda.shared.array(8, np.float32)
    i = cuda.threadIdx.x
    out[i] = s[i] + a[i]  # fault
    s[i] = a[i]


@planted("initcheck", 1, 8, lambda: (new(8, dtype=np.complex64), f32(8)))
def imaginary_part_never_written(z, out):
    i = cuda.threadIdx.x
    out[i] = z[i].imag + 1  # fault


@planted("initcheck", 1, 64, lambda: (f32(64), f32(1)))
def tree_with_unwritten_tail(a, out):
    s = cuda.shared.array(128, np.float32)
    i = cuda.threadIdx.x
    s[i] = a[i]
    cuda.syncthreads()
    step = 64
    while step > 0:
        if i < step:
            s[i] += s[i + step]  # fault
        cuda.syncthreads()
        step //= 2
    if i == 0:
        out[0] = s[0]


@planted("initcheck", 1, 64, lambda: (f32(64),))
def shared_copied_to_the_host(out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    out[i] = s[i]  # fault


@planted("initcheck", 1, 64, lambda: (f32(48), f32(64)))
def tile_without_its_edge_copied_to_the_host(a, out):
    s = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    if i < a.size:
        s[i] = a[i]
    cuda.syncthreads()
    out[i] = s[63 - i]  # fault


@planted("initcheck", 1, 8, lambda: (i32(8),))
def local_copied_to_the_host(out):
    v = cuda.local.array(4, np.int32)
    v[0] = 1
    out[cuda.threadIdx.x] = v[cuda.threadIdx.x % 4]  # fault


@planted("initcheck", 1, 8, lambda: (new(8), f32(8)))
def device_array_copied_to_the_host(a, out):
    i = cuda.threadIdx.x
    out[i] = a[i]  # fault
