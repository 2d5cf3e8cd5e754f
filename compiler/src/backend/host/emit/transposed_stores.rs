//! Stores of transposed loops.
//!
//! ```text
//! for j in 0..16:                         for j in 0..16:
//!     for each lane i: out[i, k + j] = v      for each lane i: columns[j][i] = v         (one vector)
//!                                         row = transpose(columns)
//!                                         for each lane i: out[i, k..k + 16] = row[i]    (one vector)
//! ```
//!
//! A load of a later iteration so precedes a store of an earlier one. Where the two may alias, their distance is tested
//! at run time ([`AliasCheck`]). Masks exclude absent lanes, and iterations that a lane does not have.

use inkwell::{
    IntPredicate,
    values::{IntValue, PointerValue},
};

use crate::{
    backend::{
        host::{
            emit::{
                kernel::KernelEmitter,
                lane_trip_counts::IterationCounts,
                register_transpose::WIDTH,
                transpose::{AHEAD, RowBuffer, vector_of},
            },
            plan::{AliasCheck, TransposedStore},
        },
        llvm::{Result, internal},
    },
    ir::{Space, Type},
};

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// Allocates the array for the values of a store.
    pub(crate) fn room_for_store(&self, store: &TransposedStore) -> Result<RowBuffer<'ctx>> {
        let Type::Ptr(element, _) = self.emitter.function.exprs[store.pointer].ty else {
            return internal("a store without a pointer");
        };
        self.room_of(Type::Scalar(element))
    }

    /// Whether two pointers of the current lane are at a distance at which the order of iterations matters.
    pub(crate) fn clash(&self, clash: &AliasCheck) -> Result<IntValue<'ctx>> {
        let long = self.emitter.cx.types.context.i64_type();
        let address = |id| {
            let pointer = self.emitter.emit_pointer(id)?;
            Ok::<_, crate::backend::llvm::Error>(self.emitter.builder.build_ptr_to_int(pointer, long, "")?)
        };
        let (first, second) = (address(clash.first)?, address(clash.second)?);
        let builder = &self.emitter.builder;
        let least = long.const_int((clash.from + 1) as u64, true);
        let apart = builder.build_int_sub(builder.build_int_sub(second, first, "")?, least, "")?;
        let values = long.const_int((clash.to - clash.from - 1) as u64, false);
        Ok(builder.build_int_compare(IntPredicate::ULT, apart, values, "clash")?)
    }

    /// Transposes the values of `iterations` iterations, and stores them to the rows of the present lanes.
    pub(crate) fn put_rows(
        &self,
        kept: &RowBuffer<'ctx>,
        rows: &[PointerValue<'ctx>],
        iterations: IterationCounts<'ctx>,
    ) -> Result<()> {
        let (n, vector) = (kept.elements, vector_of(kept.element, kept.elements)?);
        let byte = self.emitter.cx.types.context.i8_type().into();
        let pointer = self.emitter.cx.types.pointer(Space::Global);
        let store = self.emitter.cx.intrinsic("llvm.masked.store", &[vector.into(), pointer.into()])?;
        for from in (0..WIDTH).step_by(n as usize) {
            let masks = self.masks(iterations, (from, n))?;
            for threads in (0..WIDTH).step_by(n as usize) {
                let mut square = Vec::new();
                for iteration in from..from + n {
                    let place =
                        self.element_at(kept.element, kept.iterations, self.int(iteration * WIDTH + threads))?;
                    square.push(self.emitter.builder.build_load(vector, place, "")?.into_vector_value());
                }
                let lanes = rows.iter().zip(&masks).skip(threads as usize);
                for (row, (&place, &mask)) in self.transposed(square)?.into_iter().zip(lanes) {
                    let place = self.element_at(kept.element, place, self.int(from))?;
                    self.prefetch_to_store(self.element_at(byte, place, self.int(AHEAD))?)?;
                    self.emitter.builder.build_call(store, &[row.into(), place.into(), mask.into()], "")?;
                }
            }
        }
        Ok(())
    }
}
