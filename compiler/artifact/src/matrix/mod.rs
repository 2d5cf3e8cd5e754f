//! Matrix tiles of a warp or a warpgroup: which products of matrices it computes, and which lane holds which element.
//!
//! A *tile* is a product of a matrix A of `m` rows and `k` columns and a matrix B of `k` rows and `n` columns, added to a
//! matrix C of `m` rows and `n` columns. It consists of one or more instructions `mma.sync`, in blocks of
//! [`MatrixKind::instruction`]. A *fragment* is one lane's part of a matrix: of A and B registers with adjacent elements
//! along `k`, of C values. Layouts: PTX ISA, "Matrix Fragments for mma".
//!
//! A *warpgroup* is four consecutive warps. Its tiles are instructions `wgmma.mma_async` of 64 rows and all columns, of
//! which each warp has 16 rows. They read B, and A unless it is in registers, from [shared memory](SharedMatrix).

mod lanes;
pub(crate) mod product;
mod shared;

pub use shared::{MatrixProduct, SharedMatrix};

use std::fmt;

use crate::number::Scalar;

/// The types of the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatrixKind {
    /// `float16`, accumulated in `float32`.
    F16,
    /// `bfloat16`, accumulated in `float32`.
    BF16,
    /// `float32` of which the operation reads the upper 19 bits, accumulated in `float32`.
    TF32,
    /// `float64`.
    F64,
    /// `int8`, accumulated in `int32`.
    S8,
    /// `uint8`, accumulated in `int32`.
    U8,
    /// `int8` times `uint8`, accumulated in `int32`.
    S8U8,
    /// `uint8` times `int8`, accumulated in `int32`.
    U8S8,
    /// Floats of 8 bits, with 4 bits of exponent, accumulated in `float32`.
    E4M3,
    /// Floats of 8 bits, with 5 bits of exponent, accumulated in `float32`.
    E5M2,
    /// `E4M3` times `E5M2`.
    E4M3E5M2,
    /// `E5M2` times `E4M3`.
    E5M2E4M3,
}

/// An operand of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatrixPart {
    /// The left factor.
    A,
    /// The right factor.
    B,
}

/// A tile: its kind, and its extents in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixTile {
    kind: MatrixKind,
    m: u16,
    n: u16,
    k: u16,
    /// 1, or 4 for a warpgroup.
    warps: u16,
}

/// The maximum number of a lane's 32-bit registers for one fragment.
const MOST_REGISTERS: u32 = 128;

/// Lanes of a warp.
const LANES: usize = 32;
/// Warps of a warpgroup.
const WARPS: u16 = 4;
/// The most columns of an instruction of a warpgroup.
const MOST_COLUMNS: i128 = 256;

impl MatrixKind {
    /// All kinds.
    pub const ALL: [Self; 12] = [
        Self::F16,
        Self::BF16,
        Self::TF32,
        Self::F64,
        Self::S8,
        Self::U8,
        Self::S8U8,
        Self::U8S8,
        Self::E4M3,
        Self::E5M2,
        Self::E4M3E5M2,
        Self::E5M2E4M3,
    ];

    /// The names of the types of A, B and C.
    pub const fn names(self) -> [&'static str; 3] {
        match self {
            Self::F16 => ["float16", "float16", "float32"],
            Self::BF16 => ["bfloat16", "bfloat16", "float32"],
            Self::TF32 => ["tf32", "tf32", "float32"],
            Self::F64 => ["float64", "float64", "float64"],
            Self::S8 => ["int8", "int8", "int32"],
            Self::U8 => ["uint8", "uint8", "int32"],
            Self::S8U8 => ["int8", "uint8", "int32"],
            Self::U8S8 => ["uint8", "int8", "int32"],
            Self::E4M3 => ["e4m3", "e4m3", "float32"],
            Self::E5M2 => ["e5m2", "e5m2", "float32"],
            Self::E4M3E5M2 => ["e4m3", "e5m2", "float32"],
            Self::E5M2E4M3 => ["e5m2", "e4m3", "float32"],
        }
    }

    /// The extents `m`, `n` and `k` of the instruction.
    pub const fn instruction(self) -> [u16; 3] {
        match self {
            Self::F16 | Self::BF16 => [16, 8, 16],
            Self::TF32 => [16, 8, 8],
            Self::F64 => [8, 8, 4],
            Self::S8
            | Self::U8
            | Self::S8U8
            | Self::U8S8
            | Self::E4M3
            | Self::E5M2
            | Self::E4M3E5M2
            | Self::E5M2E4M3 => [16, 8, 32],
        }
    }

    /// The types in the instruction: of D, A, B and C.
    pub const fn ptx(self) -> &'static str {
        match self {
            Self::F16 => "f32.f16.f16.f32",
            Self::BF16 => "f32.bf16.bf16.f32",
            Self::TF32 => "f32.tf32.tf32.f32",
            Self::F64 => "f64.f64.f64.f64",
            Self::S8 => "s32.s8.s8.s32",
            Self::U8 => "s32.u8.u8.s32",
            Self::S8U8 => "s32.s8.u8.s32",
            Self::U8S8 => "s32.u8.s8.s32",
            Self::E4M3 => "f32.e4m3.e4m3.f32",
            Self::E5M2 => "f32.e5m2.e5m2.f32",
            Self::E4M3E5M2 => "f32.e4m3.e5m2.f32",
            Self::E5M2E4M3 => "f32.e5m2.e4m3.f32",
        }
    }

    /// The type of the elements of an array with A or B.
    pub const fn element(self, part: MatrixPart) -> Scalar {
        match (self, part) {
            (Self::F16, _) => Scalar::F16,
            (Self::BF16, _) => Scalar::BF16,
            (Self::TF32, _) => Scalar::F32,
            (Self::F64, _) => Scalar::F64,
            (Self::S8, _) | (Self::S8U8, MatrixPart::A) | (Self::U8S8, MatrixPart::B) => Scalar::I8,
            (Self::U8 | Self::E4M3 | Self::E5M2 | Self::E4M3E5M2 | Self::E5M2E4M3, _)
            | (Self::U8S8, MatrixPart::A)
            | (Self::S8U8, MatrixPart::B) => Scalar::U8,
        }
    }

    /// The type of an accumulator.
    pub const fn accumulator(self) -> Scalar {
        match self {
            Self::F16 | Self::BF16 | Self::TF32 | Self::E4M3 | Self::E5M2 | Self::E4M3E5M2 | Self::E5M2E4M3 => {
                Scalar::F32
            }
            Self::F64 => Scalar::F64,
            Self::S8 | Self::U8 | Self::S8U8 | Self::U8S8 => Scalar::I32,
        }
    }

    /// The type of a register of A or B.
    pub const fn register(self) -> Scalar {
        match self {
            Self::F64 => Scalar::F64,
            Self::F16
            | Self::BF16
            | Self::TF32
            | Self::S8
            | Self::U8
            | Self::S8U8
            | Self::U8S8
            | Self::E4M3
            | Self::E5M2
            | Self::E4M3E5M2
            | Self::E5M2E4M3 => Scalar::U32,
        }
    }

    /// The number of elements in a register.
    pub const fn per_register(self) -> u16 {
        match self {
            Self::F16 | Self::BF16 => 2,
            Self::TF32 | Self::F64 => 1,
            Self::S8
            | Self::U8
            | Self::S8U8
            | Self::U8S8
            | Self::E4M3
            | Self::E5M2
            | Self::E4M3E5M2
            | Self::E5M2E4M3 => 4,
        }
    }

    /// Whether an operand has floats of 8 bits.
    pub const fn is_of_bytes(self) -> bool {
        matches!(self, Self::E4M3 | Self::E5M2 | Self::E4M3E5M2 | Self::E5M2E4M3)
    }

    /// Whether there are tiles of a warpgroup.
    pub const fn has_warpgroup_tiles(self) -> bool {
        !matches!(self, Self::F64)
    }
}

impl MatrixTile {
    /// The tile with these extents and types, of a number of threads.
    ///
    /// # Errors
    ///
    /// A sentence that lists the tiles that exist.
    pub fn new(shape: [i128; 3], types: [&str; 3], threads: i128) -> Result<Self, String> {
        let [m, n, k] = shape;
        let [a, b, c] = types;
        let shown = format!("{m}x{n}x{k} of {a}, {b} and {c}");
        let warps = match threads {
            32 => 1,
            128 => WARPS,
            _ => return Err(format!("a tile has 32 threads, a warp, or 128, a warpgroup, not {threads}")),
        };
        let Some(kind) = MatrixKind::ALL.into_iter().find(|kind| kind.names() == types) else {
            return Err(format!("there is no tile {shown}; there are multiples of {}", Self::listed()));
        };
        if warps == WARPS && !kind.has_warpgroup_tiles() {
            return Err(format!("there is no tile {shown} of a warpgroup: these types have only tiles of a warp"));
        }
        let [rows, columns, along] = kind.instruction();
        let unit = [rows * warps, columns, along];
        let fits = |extent: i128, unit: u16| extent > 0 && extent % i128::from(unit) == 0;
        let extent = |extent: i128| u16::try_from(extent).ok();
        let (Some(m), Some(n), Some(k), true) =
            (extent(m), extent(n), extent(k), shape.into_iter().zip(unit).all(|(extent, unit)| fits(extent, unit)))
        else {
            let [m, n, k] = unit;
            return Err(format!("there is no tile {shown}: for these types, it is a multiple of {m}x{n}x{k}"));
        };
        let tile = Self { kind, m, n, k, warps };
        if warps == WARPS {
            tile.check_columns(&shown)?;
        }
        let size = |count: usize, scalar: Scalar| count as u64 * scalar.size_bytes() / 4;
        let parts = if warps == 1 { &[MatrixPart::A, MatrixPart::B][..] } else { &[] };
        let registers = parts.iter().map(|&part| size(tile.registers(part), kind.register()));
        let most = registers.fold(size(tile.values(), kind.accumulator()), u64::max);
        if most > u64::from(MOST_REGISTERS) {
            return Err(format!(
                "the tile {shown} needs {most} registers of a thread for one matrix; at most {MOST_REGISTERS} are \
                 possible"
            ));
        }
        Ok(tile)
    }

    /// Checks the columns of a warpgroup's tile.
    fn check_columns(self, shown: &str) -> Result<(), String> {
        let n = i128::from(self.n);
        if n > MOST_COLUMNS {
            return Err(format!("there is no tile {shown} of a warpgroup: it has at most {MOST_COLUMNS} columns"));
        }
        if self.kind.accumulator() == Scalar::I32 && n % 16 != 0 && n != 8 && n != 24 {
            return Err(format!(
                "there is no tile {shown} of a warpgroup: of integers, `n` is 8, 24 or a multiple of 16"
            ));
        }
        Ok(())
    }

    /// The instructions, for messages.
    fn listed() -> String {
        let one = |kind: MatrixKind| {
            let ([m, n, k], [a, b, c]) = (kind.instruction(), kind.names());
            let is_format = |name: &str| matches!(name, "tf32" | "e4m3" | "e5m2");
            let quoted = |name: &str| if is_format(name) { format!("\"{name}\"") } else { name.to_owned() };
            format!("({m}, {n}, {k}, a={}, b={}, c={})", quoted(a), quoted(b), quoted(c))
        };
        MatrixKind::ALL.map(one).join(", ")
    }

    /// The tile of a canonical path, such as `weft.cuda.mma.tile(16, 8, 16, bfloat16, bfloat16, float32)`: that of an
    /// object that the host made.
    pub fn from_path(path: &str) -> Option<Self> {
        let inside = path.strip_prefix("weft.cuda.mma.tile(")?.strip_suffix(')')?;
        let mut parts = inside.split(", ");
        let mut extent = || parts.next()?.parse::<i128>().ok();
        let shape = [extent()?, extent()?, extent()?];
        let types = [parts.next()?, parts.next()?, parts.next()?];
        let threads = parts.next().map_or(Some(LANES as i128), |threads| threads.parse().ok())?;
        if parts.next().is_some() { None } else { Self::new(shape, types, threads).ok() }
    }

    /// Its canonical path.
    pub fn path(self) -> String {
        let [a, b, c] = self.kind.names();
        let threads = if self.warps == 1 { String::new() } else { format!(", {}", self.threads()) };
        format!("weft.cuda.mma.tile({}, {}, {}, {a}, {b}, {c}{threads})", self.m, self.n, self.k)
    }

    /// A number that identifies it, for calls of the runtime.
    pub fn code(self) -> u64 {
        let kind = MatrixKind::ALL.iter().position(|kind| *kind == self.kind).unwrap_or_default();
        let first = kind as u64 | u64::from(self.warps) << 8;
        [self.m, self.n, self.k].into_iter().fold(first, |code, extent| code << 16 | u64::from(extent))
    }

    /// The tile of a number.
    pub fn of_code(code: u64) -> Option<Self> {
        let kind = *MatrixKind::ALL.get(usize::try_from(code >> 48 & 0xFF).ok()?)?;
        let [m, n, k] = [32, 16, 0].map(|shift| (code >> shift & 0xFFFF) as u16);
        Some(Self { kind, m, n, k, warps: (code >> 56) as u16 })
    }

    /// The types of its operands.
    pub const fn kind(self) -> MatrixKind {
        self.kind
    }

    /// Its extents `m`, `n` and `k`.
    pub const fn shape(self) -> [u16; 3] {
        [self.m, self.n, self.k]
    }

    /// The number of its threads: 32 or 128.
    pub const fn threads(self) -> usize {
        self.warps as usize * LANES
    }

    /// Whether four warps compute it.
    pub const fn is_of_warpgroup(self) -> bool {
        self.warps > 1
    }

    /// The tile of one warp of the warpgroup: all columns, and the rows of this warp.
    #[must_use]
    pub const fn of_warp(self) -> Self {
        Self { m: self.m / self.warps, warps: 1, ..self }
    }

    /// The number of rows of a block of [`Self::blocks`].
    pub const fn rows_of_block(self) -> usize {
        (self.kind.instruction()[0] * self.warps) as usize
    }

    /// The row in the tile of a row of [`Self::of_warp`], for a warp of the warpgroup.
    pub const fn row_of_warp(self, warp: usize, row: usize) -> usize {
        let of_warp = self.kind.instruction()[0] as usize;
        row / of_warp * self.rows_of_block() + warp * of_warp + row % of_warp
    }

    /// The numbers of instructions of a warp along `m`, `n` and `k`. One of a warpgroup has all columns.
    pub const fn blocks(self) -> [usize; 3] {
        let [_, n, k] = self.kind.instruction();
        [self.m as usize / self.rows_of_block(), (self.n / n) as usize, (self.k / k) as usize]
    }

    /// The number of a lane's registers of A or B for one instruction.
    pub const fn registers_of_block(self, part: MatrixPart) -> usize {
        let [m, n, k] = self.kind.instruction();
        let rows = match part {
            MatrixPart::A => m,
            MatrixPart::B => n,
        };
        (rows * k / self.kind.per_register()) as usize / LANES
    }

    /// The number of a lane's accumulators for one instruction.
    pub const fn values_of_block(self) -> usize {
        let [m, n, _] = self.kind.instruction();
        (m * n) as usize / LANES
    }

    /// The number of a lane's registers of A or B: those of each instruction along `m` (or `n`), in each those along `k`.
    pub const fn registers(self, part: MatrixPart) -> usize {
        let [m, n, k] = self.blocks();
        let rows = match part {
            MatrixPart::A => m,
            MatrixPart::B => n,
        };
        rows * k * self.registers_of_block(part)
    }

    /// The number of a lane's accumulators: those of each instruction along `m`, in each those along `n`.
    pub const fn values(self) -> usize {
        let [m, n, _] = self.blocks();
        m * n * self.values_of_block()
    }

    /// The index of the first element of a lane's register of A or B, for lane 0: the row (of B: the column), and the
    /// position along `k`. The register of lane `4 * group + t` is `group` rows and `t` registers later.
    pub const fn register_at(self, part: MatrixPart, word: usize) -> (usize, usize) {
        let [_, _, steps] = self.blocks();
        let [m, n, k] = self.kind.instruction();
        let (rows, of_block) = match part {
            MatrixPart::A => (m as usize, self.registers_of_block(part)),
            MatrixPart::B => (n as usize, self.registers_of_block(part)),
        };
        let (block, within) = (word / of_block, word % of_block);
        let halves = rows / 8;
        let row = block / steps * rows + within % halves * 8;
        (row, block % steps * k as usize + within / halves * 4 * self.kind.per_register() as usize)
    }

    /// The number of a tile's accumulators that are elements of A, if it has as many columns as this one has rows of B: a
    /// lane's accumulators are then its elements of A. `None` for types whose elements are in other lanes.
    pub const fn accumulators_of_left(self) -> Option<usize> {
        match self.kind {
            MatrixKind::F16 | MatrixKind::BF16 => Some(2 * self.registers(MatrixPart::A)),
            MatrixKind::TF32
            | MatrixKind::F64
            | MatrixKind::S8
            | MatrixKind::U8
            | MatrixKind::S8U8
            | MatrixKind::U8S8
            | MatrixKind::E4M3
            | MatrixKind::E5M2
            | MatrixKind::E4M3E5M2
            | MatrixKind::E5M2E4M3 => None,
        }
    }

    /// The first of the two adjacent accumulators, of a tile of `m` rows and `k` columns, that are a register of A.
    pub const fn accumulator_of_left(self, word: usize) -> usize {
        let (row, at) = self.register_at(MatrixPart::A, word);
        // A block of accumulators has 16 rows and 8 columns: two of a row of 8, and two of the row 8 below.
        (row / 16 * (self.k as usize / 8) + at / 8) * 4 + row % 16 / 8 * 2
    }

    /// The row and the column of an accumulator for lane 0. Lane `4 * group + t` has the one `group` rows and `2 * t`
    /// columns later, and warp `w` of a warpgroup `16 * w` rows later.
    pub const fn value_at(self, value: usize) -> (usize, usize) {
        let [_, columns, _] = self.blocks();
        let [_, n, _] = self.kind.instruction();
        let of_block = self.values_of_block();
        let (block, within) = (value / of_block, value % of_block);
        (block / columns * self.rows_of_block() + within / 2 * 8, block % columns * n as usize + within % 2)
    }

    /// The instruction, without its operands.
    pub fn ptx(self) -> String {
        let ([m, n, k], types) = (self.kind.instruction(), self.kind.ptx());
        if self.is_of_warpgroup() {
            let types = types.rsplit_once('.').map_or(types, |(types, _)| types);
            return format!("wgmma.mma_async.sync.aligned.m{}n{}k{k}.{types}", self.rows_of_block(), self.n);
        }
        format!("mma.sync.aligned.m{m}n{n}k{k}.row.col.{types}")
    }
}

impl fmt::Display for MatrixTile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}n{}k{}.{}", self.m, self.n, self.k, self.kind.ptx())?;
        if self.is_of_warpgroup() { f.write_str(".warpgroup") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn tile(shape: [i128; 3], kind: MatrixKind) -> MatrixTile {
        MatrixTile::new(shape, kind.names(), 32).expect("a tile")
    }

    /// The tiles of a warp and of a warpgroup with these numbers of instructions along `m`, `n` and `k`.
    fn tiles(factors: [i128; 3]) -> impl Iterator<Item = MatrixTile> {
        let all = MatrixKind::ALL.into_iter().flat_map(|kind| [1, 4].map(|warps| (kind, warps)));
        all.filter(|(kind, warps)| *warps == 1 || kind.has_warpgroup_tiles()).map(move |(kind, warps)| {
            let [m, n, k] = kind.instruction().map(i128::from);
            let shape = [m * warps * factors[0], n * factors[1], k * factors[2]];
            MatrixTile::new(shape, kind.names(), 32 * warps).expect("a tile")
        })
    }

    #[test]
    fn each_element_has_one_lane() {
        for tile in tiles([1, 1, 1]).chain(tiles([2, 4, 2])) {
            let [m, n, k] = tile.of_warp().shape().map(usize::from);
            let parts = if tile.is_of_warpgroup() {
                &[(MatrixPart::A, m)][..]
            } else {
                &[(MatrixPart::A, m), (MatrixPart::B, n)]
            };
            for &(part, rows) in parts {
                let mut seen = HashSet::new();
                let per_register = usize::from(tile.kind().per_register());
                for lane in 0..LANES {
                    for word in 0..tile.registers(part) {
                        let (row, at) = tile.register_at(part, word);
                        for element in 0..per_register {
                            let place = (row + lane / 4, at + lane % 4 * per_register + element);
                            assert!(place.0 < rows && place.1 < k && seen.insert(place), "{tile} {place:?}");
                        }
                    }
                }
                assert_eq!(seen.len(), rows * k, "{tile}");
            }
            let mut seen = HashSet::new();
            for thread in 0..tile.threads() {
                let (warp, lane) = (thread / LANES, thread % LANES);
                for value in 0..tile.values() {
                    let (row, column) = tile.value_at(value);
                    let of_warp = tile.of_warp().value_at(value);
                    let place = (row + tile.row_of_warp(warp, lane / 4), column + lane % 4 * 2);
                    assert_eq!(place.0, tile.row_of_warp(warp, of_warp.0 + lane / 4), "{tile}");
                    assert!(seen.insert(place), "{tile}");
                }
            }
            let [m, n, _] = tile.shape().map(usize::from);
            assert_eq!(seen.len(), m * n, "{tile}");
        }
    }

    #[test]
    fn accumulators_are_elements_of_the_left_matrix() {
        for kind in [MatrixKind::F16, MatrixKind::BF16] {
            let (left, scores) = (tile([32, 8, 48], kind), tile([32, 48, 16], kind));
            assert_eq!(left.accumulators_of_left(), Some(scores.values()));
            for word in 0..left.registers(MatrixPart::A) {
                let (row, at) = left.register_at(MatrixPart::A, word);
                let first = left.accumulator_of_left(word);
                assert_eq!([first, first + 1].map(|value| scores.value_at(value)), [(row, at), (row, at + 1)]);
            }
        }
        assert_eq!(tile([16, 8, 32], MatrixKind::S8).accumulators_of_left(), None);
    }

    #[test]
    fn paths_and_codes_are_those_of_the_tile() {
        for tile in tiles([2, 2, 2]) {
            assert_eq!(MatrixTile::from_path(&tile.path()), Some(tile));
            assert_eq!(MatrixTile::of_code(tile.code()), Some(tile));
        }
        for wrong in
            ["weft.cuda.mma.tile", "weft.cuda.mma.tile(16, 8)", "weft.cuda.mma.tile(16, 8, 8, int8, int8, int32)"]
        {
            assert_eq!(MatrixTile::from_path(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_does_not_exist_lists_what_does() {
        let wrong = |shape, types| MatrixTile::new(shape, types, 32).expect_err("an error");
        assert!(wrong([16, 8, 16], ["float32"; 3]).contains("(16, 8, 8, a=\"tf32\", b=\"tf32\", c=float32)"));
        assert!(wrong([16, 8, 12], ["bfloat16", "bfloat16", "float32"]).ends_with("it is a multiple of 16x8x16"));
        assert!(wrong([256, 256, 16], ["bfloat16", "bfloat16", "float32"]).contains("2048 registers"));
        assert!(wrong([0, 8, 16], ["bfloat16", "bfloat16", "float32"]).contains("multiple"));
        assert!(wrong([16, 8, 16], ["e4m3", "e4m3", "float32"]).ends_with("it is a multiple of 16x8x32"));
    }

    #[test]
    fn tiles_of_a_warpgroup_that_do_not_exist() {
        let wrong = |shape, types, threads| MatrixTile::new(shape, types, threads).expect_err("an error");
        let (halves, bytes) = (["float16", "float16", "float32"], ["int8", "int8", "int32"]);
        assert!(wrong([64, 64, 16], halves, 64).starts_with("a tile has 32 threads, a warp, or 128, a warpgroup"));
        assert!(wrong([32, 64, 16], halves, 128).ends_with("it is a multiple of 64x8x16"));
        assert!(wrong([64, 264, 16], halves, 128).ends_with("it has at most 256 columns"));
        assert!(wrong([128, 256, 16], halves, 128).contains("256 registers"));
        assert!(wrong([64, 40, 32], bytes, 128).contains("a multiple of 16"));
        assert!(wrong([64, 8, 8], ["float64"; 3], 128).ends_with("only tiles of a warp"));
    }
}
