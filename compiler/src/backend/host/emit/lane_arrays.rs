//! Thread-local arrays of a strip's lanes ([`Strips::lane_arrays`]): `[element][lane]`, on the stack.

#![expect(unsafe_code, reason = "inkwell's getelementptr is unsafe")]

use inkwell::values::PointerValue;

use crate::{
    backend::{
        host::{
            emit::{kernel::KernelEmitter, position::index, strip::Strip},
            plan::Strips,
        },
        llvm::{Result, internal},
    },
    ir::{LocalArray, LocalArrayId, Type},
};

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// Allocates the thread-local arrays of lanes: each has the lanes of an element side by side.
    pub(crate) fn lane_arrays_of(&mut self, strips: &Strips) -> Result<Vec<(LocalArrayId, PointerValue<'ctx>)>> {
        let mut arrays = Vec::new();
        for &array in &strips.lane_arrays {
            let LocalArray { name, elem, len, .. } = &self.emitter.function.local_arrays[array];
            let Ok(elements) = u32::try_from(len.saturating_mul(strips.width.into())) else {
                return internal("an array of lanes that is too large");
            };
            let ty = self.emitter.cx.types.memory(Type::Scalar(*elem))?;
            arrays.push((array, self.array(ty, elements, name)?));
            if let Some(stride) = self.hooks.array_strides.borrow_mut().get_mut(array.index()) {
                *stride = strips.width.into();
            }
        }
        Ok(arrays)
    }

    /// Sets the addresses of the current lane's arrays.
    pub(crate) fn set_lane_arrays(&self) -> Result<()> {
        let Some(Strip { arrays, present: Some((_, lane)), .. }) = &self.strip else { return Ok(()) };
        for &(array, first) in arrays {
            let ty = self.emitter.cx.types.memory(Type::Scalar(self.emitter.function.local_arrays[array].elem))?;
            let at = index(&self.emitter, *lane)?;
            // SAFETY: each element of the array has a value for each lane of a strip.
            let place = unsafe { self.emitter.builder.build_in_bounds_gep(ty, first, &[at], "")? };
            if let Some(known) = self.hooks.arrays.borrow_mut().get_mut(array.index()) {
                *known = Some(place);
            }
        }
        Ok(())
    }
}
