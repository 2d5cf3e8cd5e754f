"""`cuda.random`: sequences bit for bit, compared with implementations of the generators in Python and NumPy."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from harness import assert_same, module
from weft import cuda

MASK = (1 << 64) - 1

KERNELS = module("""
    import numpy as np
    from weft import cuda
    from weft.cuda.random import (
        init_xoroshiro128p_state, rotl, uint64_to_unit_float32, uint64_to_unit_float64, xoroshiro128p_jump,
        xoroshiro128p_next, xoroshiro128p_normal_float32, xoroshiro128p_normal_float64,
        xoroshiro128p_uniform_float32, xoroshiro128p_uniform_float64,
    )


    @cuda.jit
    def words(states, out):
        i = cuda.grid(1)
        if i < states.size:
            for j in range(out.shape[1]):
                out[i, j] = xoroshiro128p_next(states, i)


    @cuda.jit
    def uniform(states, single, double):
        i = cuda.grid(1)
        if i < states.size:
            for j in range(single.shape[1]):
                single[i, j] = xoroshiro128p_uniform_float32(states, i)
                double[i, j] = xoroshiro128p_uniform_float64(states, i)


    @cuda.jit
    def normal(states, single, double):
        i = cuda.grid(1)
        if i < states.size:
            for j in range(single.shape[1]):
                single[i, j] = xoroshiro128p_normal_float32(states, i)
                double[i, j] = cuda.random.xoroshiro128p_normal_float64(states, i)


    @cuda.jit
    def jump(states):
        i = cuda.grid(1)
        if i < states.size:
            xoroshiro128p_jump(states, i)


    @cuda.jit
    def init(states, seeds):
        i = cuda.grid(1)
        if i < states.size:
            init_xoroshiro128p_state(states, i, seeds[i])


    @cuda.jit
    def helpers(x, k, rotated, single, double):
        i = cuda.grid(1)
        if i < x.size:
            rotated[i] = rotl(x[i], k[i])
            single[i] = uint64_to_unit_float32(x[i])
            double[i] = uint64_to_unit_float64(x[i])


    @cuda.jit
    def raw(counters, keys, out):
        i = cuda.grid(1)
        if i < counters.shape[0]:
            c, k = counters[i], keys[i]
            out[i, 0], out[i, 1], out[i, 2], out[i, 3] = cuda.random.philox4x32_10(c[0], c[1], c[2], c[3], k[0], k[1])


    @cuda.jit
    def philox(seeds, sequences, offsets, one, four):
        i = cuda.grid(1)
        if i < seeds.size:
            s, q, o = seeds[i], sequences[i], offsets[i]
            one[i] = cuda.random.philox_uint32(s, q, o)
            four[i, 0], four[i, 1], four[i, 2], four[i, 3] = cuda.random.philox_uint32x4(s, q, o)


    @cuda.jit
    def philox_floats(seed, sequence, single, double, pair):
        i = cuda.grid(1)
        if i < single.shape[0]:
            single[i, 0] = cuda.random.philox_uniform_float32(seed, sequence, i)
            a, b, c, d = cuda.random.philox_uniform_float32x4(seed, sequence, i)
            single[i, 1], single[i, 2], single[i, 3], single[i, 4] = a, b, c, d
            double[i] = cuda.random.philox_uniform_float64(seed, sequence, i)
            pair[i, 0], pair[i, 1] = cuda.random.philox_uniform_float64x2(seed, sequence, i)


    @cuda.jit
    def philox_normals(seed, sequence, single, double):
        i = cuda.grid(1)
        if i < single.shape[0]:
            single[i, 0] = cuda.random.philox_normal_float32(seed, sequence, i)
            single[i, 1], single[i, 2] = cuda.random.philox_normal_float32x2(seed, sequence, i)
            a, b, c, d = cuda.random.philox_normal_float32x4(seed, sequence, i)
            single[i, 3], single[i, 4], single[i, 5], single[i, 6] = a, b, c, d
            double[i, 0] = cuda.random.philox_normal_float64(seed, sequence, i)
            double[i, 1], double[i, 2] = cuda.random.philox_normal_float64x2(seed, sequence, i)
""")


class Xoroshiro:
    """One generator, by the definition of its authors."""

    def __init__(self, s0: int, s1: int) -> None:
        self.s0, self.s1 = s0, s1

    @classmethod
    def seeded(cls, seed: int) -> Xoroshiro:
        z = (seed + 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
        return cls(z, z)

    def next(self) -> int:
        result = (self.s0 + self.s1) & MASK
        self.s1 ^= self.s0
        turned = ((self.s0 << 55) | (self.s0 >> 9)) & MASK
        self.s0 = turned ^ self.s1 ^ ((self.s1 << 14) & MASK)
        self.s1 = ((self.s1 << 36) | (self.s1 >> 28)) & MASK
        return result

    def jump(self) -> None:
        s0 = s1 = 0
        for word in (0xBEAC0467EBA5FACB, 0xD86B048B86AA9922):
            for bit in range(64):
                if word >> bit & 1:
                    s0, s1 = s0 ^ self.s0, s1 ^ self.s1
                self.next()
        self.s0, self.s1 = s0, s1

    def words(self, count: int) -> list[int]:
        return [self.next() for _ in range(count)]


def generators(count: int, seed: int) -> list[Xoroshiro]:
    """Generators that differ by a jump."""
    found = []
    state = Xoroshiro.seeded(seed & MASK)
    for _ in range(count):
        found.append(Xoroshiro(state.s0, state.s1))
        state.jump()
    return found


def test_the_definition_of_xoroshiro_gives_known_words() -> None:
    # SplitMix64's first words.
    assert Xoroshiro.seeded(0).s0 == 0xE220A8397B1DCDAF
    assert Xoroshiro.seeded(1).s0 == 0x910A2DEC89025CC1


@pytest.mark.parametrize("seed", [0, 1, 42, 2**63, 2**64 - 1, -1])
def test_states_are_a_jump_apart(seed: int) -> None:
    states = cuda.random.create_xoroshiro128p_states(40, seed)
    assert states.dtype == cuda.random.xoroshiro128p_dtype
    expected = np.array([(one.s0, one.s1) for one in generators(40, seed)], cuda.random.xoroshiro128p_dtype)
    np.testing.assert_array_equal(states.copy_to_host(), expected)


def test_states_begin_where_they_are_asked_to() -> None:
    all_of_them = cuda.random.create_xoroshiro128p_states(20, 5).copy_to_host()
    stream = cuda.stream()
    states = cuda.random.create_xoroshiro128p_states(10, seed=5, subsequence_start=7, stream=stream)
    stream.synchronize()
    np.testing.assert_array_equal(states.copy_to_host(), all_of_them[7:17])
    cuda.random.init_xoroshiro128p_states(states, 5, subsequence_start=10)
    np.testing.assert_array_equal(states.copy_to_host(), all_of_them[10:])
    assert cuda.random.create_xoroshiro128p_states(0, 1).shape == (0,)
    with pytest.raises(ValueError, match="a one-dimensional array, not one with 2 dimensions"):
        cuda.random.init_xoroshiro128p_states(cuda.device_array((2, 2), cuda.random.xoroshiro128p_dtype), 1)
    # Programs pass a time as the seed: its integral part is used, as in Numba.
    for seed in (1.5, np.float32(1.75), np.int8(1)):
        np.testing.assert_array_equal(
            cuda.random.create_xoroshiro128p_states(4, seed).copy_to_host(),
            cuda.random.create_xoroshiro128p_states(4, 1).copy_to_host(),
        )
    with pytest.raises(ValueError, match="`seed` must be a finite number, not nan"):
        cuda.random.create_xoroshiro128p_states(4, math.nan)
    with pytest.raises(TypeError):
        cuda.random.create_xoroshiro128p_states(4, "1")


def test_xoroshiro_words_and_numbers_are_those_of_the_definition() -> None:
    n, draws = 37, 20
    states = cuda.random.create_xoroshiro128p_states(n, 42)
    out = np.zeros((n, draws), np.uint64)
    KERNELS.words[2, 32](states, out)
    expected = generators(n, 42)
    np.testing.assert_array_equal(out, np.array([one.words(draws) for one in expected], np.uint64))

    single, double = np.zeros((n, draws), np.float32), np.zeros((n, draws))
    KERNELS.uniform[2, 32](states, single, double)
    words = np.array([one.words(2 * draws) for one in expected], np.uint64)
    fractions = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    np.testing.assert_array_equal(single, fractions[:, 0::2].astype(np.float32))
    np.testing.assert_array_equal(double, fractions[:, 1::2])
    # The states have advanced.
    np.testing.assert_array_equal(states.copy_to_host()["s0"], [one.s0 for one in expected])
    np.testing.assert_array_equal(states.copy_to_host()["s1"], [one.s1 for one in expected])


def test_xoroshiro_normals() -> None:
    n, draws = 64, 50
    states = cuda.random.create_xoroshiro128p_states(n, 9)
    single, double = np.zeros((n, draws), np.float32), np.zeros((n, draws))
    KERNELS.normal[2, 32](states, single, double)
    words = np.array([one.words(4 * draws) for one in generators(n, 9)], np.uint64).reshape(n, draws, 2, 2)
    u = ((words >> np.uint64(11)).astype(np.float64) * 2.0**-53).astype(np.float32)
    first, second = u[:, :, 0], u[:, :, 1]
    angle = np.float32(2 * math.pi) * first[..., 1]
    expected = np.sqrt(-2 * np.log(first[..., 0].astype(np.float64))) * np.cos(angle.astype(np.float64))
    np.testing.assert_allclose(single, expected, rtol=1e-5, atol=2e-6)
    # The logarithm has a float32 argument.
    radius = np.sqrt(-2 * np.log(second[..., 0]).astype(np.float64))
    expected = radius * np.cos(2 * math.pi * second[..., 1].astype(np.float64))
    np.testing.assert_allclose(double, expected, rtol=1e-6, atol=1e-7)
    assert abs(single.mean()) < 0.05
    assert abs(single.std() - 1) < 0.05


def test_jumps_and_states_of_seeds_in_kernels() -> None:
    before = cuda.random.create_xoroshiro128p_states(11, 3).copy_to_host()
    states = cuda.to_device(before)
    KERNELS.jump[1, 32](states)
    np.testing.assert_array_equal(states.copy_to_host()[:-1], before[1:])
    seeds = np.array([0, 1, -1, 2**62], np.int64)
    some = np.zeros(4, cuda.random.xoroshiro128p_dtype)
    KERNELS.init[1, 4](some, seeds)
    np.testing.assert_array_equal(some["s0"], [Xoroshiro.seeded(int(seed) & MASK).s0 for seed in seeds])
    np.testing.assert_array_equal(some["s1"], some["s0"])


def test_the_helpers() -> None:
    x = np.array([0, 1, 2**63, MASK, 0x0123456789ABCDEF, 2**53 + 1], np.uint64)
    k = np.array([3, 0, 1, 63, 20, 64], np.uint32)
    rotated, single, double = np.zeros(6, np.uint64), np.zeros(6, np.float32), np.zeros(6)
    KERNELS.helpers[1, 32](x, k, rotated, single, double)
    bits = [f"{word:064b}" for word in x.tolist()]
    turned = [int(text[by % 64 :] + text[: by % 64], 2) for text, by in zip(bits, k.tolist(), strict=True)]
    np.testing.assert_array_equal(rotated, np.array(turned, np.uint64))
    fractions = [(word >> 11) / 2**53 for word in x.tolist()]
    np.testing.assert_array_equal(double, fractions)
    np.testing.assert_array_equal(single, np.array(fractions, np.float32))
    assert single[3] == 1
    assert double[3] < 1


def test_functions_of_states_run_in_python_too() -> None:
    random = cuda.random
    states = random.create_xoroshiro128p_states(3, 17).copy_to_host()
    on_device = cuda.to_device(states)
    single, double = np.zeros((3, 4), np.float32), np.zeros((3, 4))
    KERNELS.uniform[1, 3](on_device, single, double)
    KERNELS.jump[1, 3](on_device)
    for i in range(3):
        for j in range(4):
            assert random.xoroshiro128p_uniform_float32(states, i) == single[i, j]
            assert random.xoroshiro128p_uniform_float64(states, i) == double[i, j]
        random.xoroshiro128p_jump(states, i)
    np.testing.assert_array_equal(states, on_device.copy_to_host())
    KERNELS.normal[1, 3](on_device, single, double)
    for i in range(3):
        for j in range(4):
            ours = random.xoroshiro128p_normal_float32(states, i), random.xoroshiro128p_normal_float64(states, i)
            np.testing.assert_allclose(ours, (single[i, j], double[i, j]), rtol=1e-4, atol=1e-5)
    random.init_xoroshiro128p_state(states, 1, -5)
    assert states[1]["s0"] == states[1]["s1"] == Xoroshiro.seeded(-5 & MASK).s0
    assert random.rotl(1 << 63, 1) == 1
    assert random.uint64_to_unit_float64(MASK) == 1 - 2.0**-53
    assert random.uint64_to_unit_float32(MASK) == 1
    assert pickle.loads(pickle.dumps(random.rotl)) is random.rotl
    with pytest.raises(RuntimeError, match="can only be used in a kernel"):
        random.philox_uint32(1, 2, 3)


def test_what_is_no_array_of_states_is_refused() -> None:
    wrong = module("""
        from weft import cuda


        @cuda.jit
        def number(states, out):
            out[0] = cuda.random.xoroshiro128p_next(states, 0)
    """)
    with pytest.raises(cuda.errors.CompileError, match=r"closest is cuda.random.xoroshiro128p_next\(array\(record\(s0"):
        wrong.number[1, 1](np.zeros(4, np.uint64), np.zeros(1, np.uint64))
    lesser = np.zeros(4, [("s0", np.uint64), ("s1", np.uint32)])
    with pytest.raises(cuda.errors.CompileError, match=r"no overload of `cuda\.random\.xoroshiro128p_next`"):
        wrong.number[1, 1](lesser, np.zeros(1, np.uint64))


def philox(counter: list[int], key: list[int]) -> list[int]:
    """Philox 4x32-10, by the definition of its authors."""
    c, k, low = list(counter), list(key), 0xFFFFFFFF
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k[0], q & low, (p >> 32) ^ c[3] ^ k[1], p & low]
        k = [(k[0] + 0x9E3779B9) & low, (k[1] + 0xBB67AE85) & low]
    return c


def philox_words(seed: int, sequence: int, offset: int, count: int) -> list[int]:
    """The words that cuRAND draws after `curand_init(seed, sequence, offset)`."""
    low = 0xFFFFFFFF
    found = []
    for place in range(offset, offset + count):
        number = place >> 2
        counter = [number & low, number >> 32, sequence & low, sequence >> 32]
        found.append(philox(counter, [seed & low, seed >> 32])[place & 3])
    return found


def test_philox_gives_the_known_answers_of_its_authors() -> None:
    # The vectors of Random123's `kat_vectors`.
    ones = 0xFFFFFFFF
    counters = [[0] * 4, [ones] * 4, [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]]
    keys = [[0] * 2, [ones] * 2, [0xA4093822, 0x299F31D0]]
    answers = [
        [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8],
        [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ]
    assert [philox(c, k) for c, k in zip(counters, keys, strict=True)] == answers
    out = np.zeros((3, 4), np.uint32)
    KERNELS.raw[1, 3](np.array(counters, np.uint32), np.array(keys, np.uint32), out)
    np.testing.assert_array_equal(out, np.array(answers, np.uint32))


def test_philox_words_are_those_of_curand() -> None:
    seeds = [0, 1, 42, 2**32 + 5, MASK, 0xDEADBEEF12345678]
    sequences = [0, 1, 2**32 + 7, MASK]
    offsets = [0, 1, 2, 3, 4, 5, 6, 7, 2**34 - 1, 2**34, 2**34 + 3, 2**63 + 2]
    cases = [(s, q, o) for s in seeds for q in sequences for o in offsets]
    s, q, o = (np.array(column, np.uint64) for column in zip(*cases, strict=True))
    one, four = np.zeros(len(cases), np.uint32), np.zeros((len(cases), 4), np.uint32)
    KERNELS.philox[len(cases) // 64 + 1, 64](s, q, o, one, four)
    expected = np.array([philox_words(*case, 4) for case in cases], np.uint32)
    np.testing.assert_array_equal(four, expected)
    np.testing.assert_array_equal(one, expected[:, 0])


SEED, SEQUENCE = 0x1234567890ABCDEF, 0xFEDCBA9876543210


def test_philox_uniform_numbers_are_those_of_curand() -> None:
    n = 100
    single, double, pair = np.zeros((n, 5), np.float32), np.zeros(n), np.zeros((n, 2))
    KERNELS.philox_floats[4, 32](SEED, np.uint64(SEQUENCE), single, double, pair)
    words = np.array(philox_words(SEED, SEQUENCE, 0, n + 4), np.uint64)
    floats = words.astype(np.float32) * np.float32(2.0**-32) + np.float32(2.0**-33)
    np.testing.assert_array_equal(single[:, 0], floats[:n])
    for k in range(4):
        np.testing.assert_array_equal(single[:, 1 + k], floats[k : k + n])
        assert floats.dtype == np.float32
    np.testing.assert_array_equal(double, (words * 2.0**-32 + 2.0**-32)[:n])
    wide = (words[:-1] ^ (words[1:] << np.uint64(21))).astype(np.float64) * 2.0**-53 + 2.0**-54
    np.testing.assert_array_equal(pair, np.stack([wide[:n], wide[2 : n + 2]], 1))


def test_philox_normal_numbers_are_those_of_curand_but_for_rounding() -> None:
    n = 300
    single, double = np.zeros((n, 7), np.float32), np.zeros((n, 3))
    KERNELS.philox_normals[10, 32](SEED, np.uint64(SEQUENCE), single, double)
    words = np.array(philox_words(SEED, SEQUENCE, 0, n + 4), np.uint64)
    u = (words.astype(np.float32) * np.float32(2.0**-32) + np.float32(2.0**-33)).astype(np.float64)
    turn = np.float64(np.float32(2 * math.pi)) * 2.0**-32
    angle = (words.astype(np.float32).astype(np.float64) * turn + turn / 2).astype(np.float32).astype(np.float64)
    radius = np.sqrt(-2 * np.log(u))

    def pair(first: int) -> tuple[np.ndarray, np.ndarray]:
        here, there = slice(first, first + n), slice(first + 1, first + 1 + n)
        return radius[here] * np.sin(angle[there]), radius[here] * np.cos(angle[there])

    (a, b), (c, d) = pair(0), pair(2)
    for column, expected in enumerate([a, a, b, a, b, c, d]):
        np.testing.assert_allclose(single[:, column], expected, rtol=2e-6, atol=2e-6, err_msg=str(column))

    wide = words[:-1] ^ (words[1:] << np.uint64(21))
    u = wide.astype(np.float64) * 2.0**-53 + 2.0**-54
    halves = wide.astype(np.float64) * 2.0**-52 + 2.0**-53
    radius = np.sqrt(-2 * np.log(u[:n]))
    sine, cosine = radius * np.sin(math.pi * halves[2 : n + 2]), radius * np.cos(math.pi * halves[2 : n + 2])
    for column, expected in enumerate([sine, sine, cosine]):
        np.testing.assert_allclose(double[:, column], expected, rtol=1e-14, atol=1e-14, err_msg=str(column))


def test_a_million_states_are_made_at_once() -> None:
    states = cuda.random.create_xoroshiro128p_states(1_000_000, 1).copy_to_host()
    one = states[-2:].copy()
    cuda.random.xoroshiro128p_jump(one, 0)
    assert_same(one["s0"][0], one["s0"][1])
    assert_same(one["s1"][0], one["s1"][1])


def test_states_in_a_tuple():
    """Any object whose items are states: as in Numba, functions also accept a tuple of references to states."""
    kernels = module("""
        from weft import cuda
        from weft.cuda.random import (
            init_xoroshiro128p_state, xoroshiro128p_jump, xoroshiro128p_next, xoroshiro128p_normal_float32,
            xoroshiro128p_uniform_float32, xoroshiro128p_uniform_float64,
        )


        @cuda.jit(device=True)
        def draw(states, index, single, double, words, at):
            single[at, 0] = xoroshiro128p_uniform_float32(states, index)
            single[at, 1] = xoroshiro128p_normal_float32(states, index)
            double[at] = xoroshiro128p_uniform_float64(states, index)
            words[at] = xoroshiro128p_next(states, index)


        @cuda.jit
        def array(states, single, double, words):
            i = cuda.grid(1)
            draw(states, i, single, double, words, i)


        @cuda.jit
        def one(states, single, double, words):
            i = cuda.grid(1)
            draw((states[i],), 0, single, double, words, i)


        @cuda.jit
        def second(states, single, double, words):
            i = cuda.grid(1)
            state = states[(i + 1) % states.size], states[i]
            draw(state, 1, single, double, words, i)


        @cuda.jit
        def chosen(states, single, double, words):
            i = cuda.grid(1)
            state = states[i], states[(i + 1) % states.size]
            draw(state, int(single[i, 0]), single, double, words, i)


        @cuda.jit
        def made(states, seed):
            init_xoroshiro128p_state((states[0],), 0, seed)
            xoroshiro128p_jump((states[1],), 0)
    """)
    count = 4
    given = cuda.random.create_xoroshiro128p_states(count, seed=3).copy_to_host()

    def drawn(kernel):
        states = given.copy()
        single, double = np.zeros((count, 2), np.float32), np.zeros(count)
        words = np.zeros(count, np.uint64)
        kernel[1, count](states, single, double, words)
        return states, single, double, words

    expected = drawn(kernels.array)
    for kernel in (kernels.one, kernels.second, kernels.chosen):
        for found, wanted in zip(drawn(kernel), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
    states, others = given.copy(), given.copy()
    kernels.made[1, 1](states, 7)
    KERNELS.init[1, 1](others[:1], np.array([7], np.uint64))
    KERNELS.jump[1, 1](others[1:2])
    np.testing.assert_array_equal(states, others)
