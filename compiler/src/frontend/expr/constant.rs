//! Captured arrays: constants of the code, and arrays on the device.

use std::sync::Arc;

use weft_artifact::{ArrayType, Layout};

use crate::{
    frontend::{
        lowerer::FnLowerer,
        ty::{ArrayTy, Sites},
        value::{ArrayValue, Atom, Value},
    },
    ir::{Const, ConstantArray, ExprKind, Space},
    request::CapturedArray,
    source::Span,
};

/// The size of CUDA's constant memory in bytes. CUDA C++ Programming Guide, technical specifications.
const CONSTANT_MEMORY: usize = 64 << 10;

/// The minimum alignment of a constant array, so that adjacent elements can be read by one access.
const LEAST_ALIGN: u64 = 16;

impl FnLowerer<'_> {
    /// An array of the process with its current elements, which become part of the code.
    pub(super) fn constant_array(&mut self, array: &CapturedArray, name: &str, span: Span) -> Value {
        let used: usize = self.cx.module.constants.iter().map(|(_, known)| known.bytes.len()).sum();
        let known = self.cx.constants.iter().find(|(bytes, _)| Arc::ptr_eq(bytes, &array.bytes)).map(|(_, id)| *id);
        let space = match known {
            Some(id) => self.cx.module.constants[id].space,
            None if used + array.bytes.len() <= CONSTANT_MEMORY => Space::Constant,
            None => Space::Global,
        };
        let ty = ArrayTy {
            dtype: array.dtype,
            ndim: array.shape.len(),
            layout: array.layout,
            readonly: true,
            space,
            packed: false,
            own: false,
            sites: Sites::NONE,
        };
        // A dry run declares it, too: its address space is part of its type.
        let id = known.unwrap_or_else(|| {
            let (elem, _) = array.dtype.access();
            let align = array.dtype.access_align().max(LEAST_ALIGN);
            let (name, bytes, span) = (name.to_owned(), Arc::clone(&array.bytes), self.at(span));
            let id = self.cx.module.constants.push(ConstantArray { name, elem, bytes, align, space, span });
            self.cx.constants.push((Arc::clone(&array.bytes), id));
            id
        });
        let data = self.b.expr(ExprKind::ConstBase(id), ty.pointer(), span);
        let data = Atom::Local(self.b.temp(data, span));
        let shape = array.shape.iter().map(|extent| Atom::Int(*extent as i64)).collect();
        Value::Array(ArrayValue { ty, data, shape, strides: Vec::new() })
    }

    /// An array on the device, by its address.
    pub(super) fn device_array(
        &mut self,
        array: &ArrayType,
        address: u64,
        shape: &[u64],
        strides: &[i64],
        span: Span,
    ) -> Value {
        let ty = ArrayTy::of_arg(array);
        let data = self.b.expr(ExprKind::Const(Const::Address(address)), ty.pointer(), span);
        let data = Atom::Local(self.b.temp(data, span));
        let shape = shape.iter().map(|extent| Atom::Int(*extent as i64)).collect();
        let strides = strides.iter().map(|stride| Atom::Int(*stride));
        let strides = if ty.layout == Layout::Any { strides.collect() } else { Vec::new() };
        Value::Array(ArrayValue { ty, data, shape, strides })
    }
}
