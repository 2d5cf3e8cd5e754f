//! Transposition of a square matrix in vector registers.
//!
//! First, elements are interleaved within 16-byte parts of the vectors: one shuffle instruction does that for all parts
//! of two vectors. Then whole parts are exchanged between vectors.

use inkwell::{
    types::{BasicTypeEnum, VectorType},
    values::VectorValue,
};

use crate::backend::{
    host::emit::kernel::KernelEmitter,
    llvm::{Result, internal},
};

/// Lanes of a strip, and the number of iterations that are loaded at a time.
pub(crate) const WIDTH: u32 = 16;

/// Bytes of a part, which shuffle instructions do not cross.
pub(crate) const PART: u32 = 16;

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// The columns of a square matrix, given as rows. If there are only as many rows as a part has elements, each part
    /// of the vectors is transposed as a square of its own.
    pub(crate) fn transposed(&self, rows: Vec<VectorValue<'ctx>>) -> Result<Vec<VectorValue<'ctx>>> {
        let n = rows.first().map_or(0, |row| row.get_type().get_size());
        let of_part = (PART / self.bytes_of(&rows)?).min(n);
        let parts = rows.len() as u32 / of_part;
        let rows_of_all = rows.len();
        let mut groups: Vec<Vec<VectorValue<'ctx>>> = rows.into_iter().map(|row| vec![row]).collect();
        let mut unit = 1;
        while unit < of_part {
            let mut merged = Vec::new();
            for pair in groups.chunks(2) {
                let [low, high] = pair else { return internal("rows that are no square") };
                let mut group = Vec::new();
                for (&a, &b) in low.iter().zip(high) {
                    for half in [0, of_part / 2] {
                        group.push(self.shuffled(a, b, &|lane| {
                            let (part, at) = (lane / of_part * of_part, lane % of_part);
                            let from = part + half + at / (2 * unit) * unit + at % unit;
                            from + if at / unit % 2 == 0 { 0 } else { n }
                        })?);
                    }
                }
                merged.push(group);
            }
            (groups, unit) = (merged, 2 * unit);
        }
        // For each part, vector `v` of a group holds column `v` of the group's rows.
        let mut columns = vec![None; rows_of_all];
        for v in 0..of_part as usize {
            let mut square: Vec<VectorValue<'ctx>> = groups.iter().filter_map(|group| group.get(v).copied()).collect();
            let mut step = 1;
            while step < parts {
                let mut next = Vec::new();
                let half = square.len() / 2;
                // Even parts of two adjacent vectors go to the first half, odd parts to the second.
                for odd in 0..2 {
                    for pair in 0..half {
                        let (a, b) = (square[2 * pair], square[2 * pair + 1]);
                        next.push(self.shuffled(a, b, &|lane| {
                            let part = 2 * (lane / of_part) + odd;
                            part * of_part + lane % of_part
                        })?);
                    }
                }
                (square, step) = (next, 2 * step);
            }
            for (number, column) in square.into_iter().enumerate() {
                columns[number * of_part as usize + v] = Some(column);
            }
        }
        columns.into_iter().map(|column| column.map_or_else(|| internal("a square without a column"), Ok)).collect()
    }

    fn bytes_of(&self, rows: &[VectorValue<'ctx>]) -> Result<u32> {
        let Some(row) = rows.first() else { return internal("no rows") };
        Ok(match row.get_type().get_element_type() {
            BasicTypeEnum::IntType(int) => int.get_bit_width() / 8,
            BasicTypeEnum::FloatType(float) => {
                let context = self.emitter.cx.types.context;
                if float == context.f64_type() {
                    8
                } else if float == context.f32_type() {
                    4
                } else {
                    2
                }
            }
            other @ (BasicTypeEnum::ArrayType(_)
            | BasicTypeEnum::PointerType(_)
            | BasicTypeEnum::StructType(_)
            | BasicTypeEnum::VectorType(_)
            | BasicTypeEnum::ScalableVectorType(_)) => return internal(format!("a row of {other}")),
        })
    }

    fn shuffled(
        &self,
        a: VectorValue<'ctx>,
        b: VectorValue<'ctx>,
        from: &dyn Fn(u32) -> u32,
    ) -> Result<VectorValue<'ctx>> {
        let lanes = a.get_type().get_size();
        let mask: Vec<_> = (0..lanes).map(|lane| self.int(from(lane))).collect();
        Ok(self.emitter.builder.build_shuffle_vector(a, b, VectorType::const_vector(&mask), "")?)
    }
}
