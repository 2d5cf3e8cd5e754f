//! Rows of `cuda.random`: Numba's generator, which has its states in an array, and a counter-based one.

use weft_artifact::Scalar::{self, F32, F64, I64, U32, U64};

use super::{
    super::{Arg, Intrinsic, Lowering, Returns, Signature},
    tables::{numbers, row},
};

/// An array of states.
const STATES: Arg = Arg::Records(&[("s0", U64), ("s1", U64)]);

/// An overload with a state, by its index.
const fn of_state(returns: Returns) -> Signature {
    Signature { args: &[STATES, Arg::Scalar(I64)], returns }
}

/// An overload with a seed, a sequence and an offset in it.
const fn of_counter(returns: Returns) -> Signature {
    Signature { args: &[Arg::Scalar(U64), Arg::Scalar(U64), Arg::Scalar(U64)], returns }
}

/// Rows of functions of a seed, a sequence and an offset in it.
macro_rules! counters {
    ($name:literal, $returns:expr, $doc:literal) => {
        row(concat!("weft.cuda.random.", $name), &[of_counter($returns)], Lowering::Prelude($name), $doc)
    };
}

/// Rows of functions of a state.
macro_rules! states {
    ($name:literal, $returns:expr, $doc:literal) => {
        row(concat!("weft.cuda.random.", $name), &[of_state($returns)], Lowering::Prelude($name), $doc)
    };
}

const FOUR_WORDS: &[Scalar] = &[U32, U32, U32, U32];

pub(super) const RANDOM: &[Intrinsic] = &[
    states!(
        "xoroshiro128p_uniform_float32",
        Returns::Scalar(F32),
        "The next uniform number in [0, 1] of the state `states[index]`: 53 bits, rounded to a float32, which may be 1."
    ),
    states!(
        "xoroshiro128p_uniform_float64",
        Returns::Scalar(F64),
        "The next uniform number in [0, 1) of the state `states[index]`: 53 bits."
    ),
    states!(
        "xoroshiro128p_normal_float32",
        Returns::Scalar(F32),
        "The next number of the normal distribution with mean 0 and standard deviation 1, from two uniform numbers by \
         the Box-Muller transform."
    ),
    states!(
        "xoroshiro128p_normal_float64",
        Returns::Scalar(F64),
        "The same in float64, from two uniform float32 numbers, as in Numba."
    ),
    states!(
        "xoroshiro128p_next",
        Returns::Scalar(U64),
        "The next 64 bits of xoroshiro128+; advances the state `states[index]`."
    ),
    states!("xoroshiro128p_jump", Returns::Nothing, "Advances the state `states[index]` by 2^64 steps."),
    row(
        "weft.cuda.random.init_xoroshiro128p_state",
        &[Signature { args: &[STATES, Arg::Scalar(I64), Arg::Scalar(U64)], returns: Returns::Nothing }],
        Lowering::Prelude("init_xoroshiro128p_state"),
        "Initializes the state `states[index]` from a seed, with SplitMix64.",
    ),
    row(
        "weft.cuda.random.rotl",
        numbers![U64 U32 -> U64],
        Lowering::Prelude("rotl"),
        "The 64 bits of x rotated left by k.",
    ),
    row(
        "weft.cuda.random.uint64_to_unit_float32",
        numbers![U64 -> F32],
        Lowering::Prelude("uint64_to_unit_float32"),
        "The upper 53 of 64 bits as a number in [0, 1], rounded to a float32, which may be 1.",
    ),
    row(
        "weft.cuda.random.uint64_to_unit_float64",
        numbers![U64 -> F64],
        Lowering::Prelude("uint64_to_unit_float64"),
        "The upper 53 of 64 bits as a number in [0, 1).",
    ),
    row(
        "weft.cuda.random.philox4x32_10",
        &[Signature {
            args: &[
                Arg::Scalar(U32),
                Arg::Scalar(U32),
                Arg::Scalar(U32),
                Arg::Scalar(U32),
                Arg::Scalar(U32),
                Arg::Scalar(U32),
            ],
            returns: Returns::Tuple(FOUR_WORDS),
        }],
        Lowering::Prelude("philox4x32_10"),
        "Philox 4x32-10: four 32-bit words from the four words of a counter and the two words of a key.",
    ),
    counters!(
        "philox_uint32",
        Returns::Scalar(U32),
        "The 32-bit word at an offset of a sequence of a seed, without a state. Equals `curand` after \
         `curand_init(seed, sequence, offset)` with a `curandStatePhilox4_32_10_t`."
    ),
    counters!(
        "philox_uint32x4",
        Returns::Tuple(FOUR_WORDS),
        "Four words starting at an offset, as `curand4`. Offsets that are a multiple of 4 take half the time."
    ),
    counters!(
        "philox_uniform_float32",
        Returns::Scalar(F32),
        "A uniform number in (0, 1] from the word at the offset, as `curand_uniform`."
    ),
    counters!(
        "philox_uniform_float32x4",
        Returns::Tuple(&[F32, F32, F32, F32]),
        "Four uniform numbers in (0, 1] from the four words starting at the offset, as `curand_uniform4`."
    ),
    counters!(
        "philox_uniform_float64",
        Returns::Scalar(F64),
        "A uniform number in (0, 1] from the word at the offset, with 32 bits, as `curand_uniform_double`."
    ),
    counters!(
        "philox_uniform_float64x2",
        Returns::Tuple(&[F64, F64]),
        "Two uniform numbers in (0, 1] from the four words starting at the offset, with 53 bits each, as \
         `curand_uniform2_double`."
    ),
    counters!(
        "philox_normal_float32",
        Returns::Scalar(F32),
        "A number of the normal distribution with mean 0 and standard deviation 1, from the two words starting at the \
         offset, as `curand_normal` but with a more accurate sine."
    ),
    counters!(
        "philox_normal_float32x2",
        Returns::Tuple(&[F32, F32]),
        "Two numbers of the normal distribution, from the two words starting at the offset, as `curand_normal2`."
    ),
    counters!(
        "philox_normal_float32x4",
        Returns::Tuple(&[F32, F32, F32, F32]),
        "Four numbers of the normal distribution, from the four words starting at the offset, as `curand_normal4`."
    ),
    counters!(
        "philox_normal_float64",
        Returns::Scalar(F64),
        "A number of the normal distribution, from the four words starting at the offset, as `curand_normal_double`."
    ),
    counters!(
        "philox_normal_float64x2",
        Returns::Tuple(&[F64, F64]),
        "Two numbers of the normal distribution, from the four words starting at the offset, as \
         `curand_normal2_double`."
    ),
];
