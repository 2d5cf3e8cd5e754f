//! Asynchronous copies: `cuda.copy_async`, `cuda.copy_commit` and `cuda.copy_wait`.
//!
//! An element of 4, 8 or 16 bytes is copied from global to shared memory asynchronously. Every other copy is a load and a
//! store.

use weft_artifact::DType;

use crate::{
    diagnostic::Code,
    frontend::{
        expr::Args,
        lowerer::FnLowerer,
        swizzle::{Swizzle, array_of},
        ty::{Ty, shown_path},
        value::{ArrayValue, Value},
    },
    intrinsics::Intrinsic,
    ir::{AsyncCopy, ExprId, Op, Space, StmtKind as Ir},
    source::Span,
};

impl FnLowerer<'_> {
    /// `copy_async(to, i, source, j)`: copies an element.
    pub(super) fn copy_async(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([to, i, source, j]) = self.exactly(row, args, span) else { return Value::Poison };
        let types = [to.ty(), i.ty(), source.ty(), j.ty()];
        if types.iter().any(Ty::is_poison) {
            return Value::Poison;
        }
        let (Ok((to, swizzle)), Value::Array(source)) = (array_of(to), source) else {
            return self.no_overload(row, &types, span);
        };
        if to.ty.dtype != source.ty.dtype {
            return self.no_overload(row, &types, span);
        }
        if to.ty.readonly {
            let message = format!("`{}` writes its first array, which is read-only", shown_path(row.path));
            return self.error(Code::ReadonlyArray, span, message);
        }
        let Some(from) = self.copied_element((&source, None), j, span) else { return Value::Poison };
        let from = self.b.temp(from, span);
        let Some(pointer) = self.copied_element((&to, swizzle), i, span) else { return Value::Poison };
        let from = self.b.read(from, span);
        match Self::async_bytes(&to, &source) {
            Some(bytes) => {
                let op = Op::AsyncCopy(AsyncCopy::Element { bytes });
                self.stmt(Ir::Op { op, results: Vec::new(), args: vec![pointer, from] }, span);
            }
            None => {
                let value = self.load(from, source.ty, span);
                self.store(pointer, to.ty, &value, span);
            }
        }
        Value::NONE
    }

    fn copied_element(
        &mut self,
        (array, swizzle): (&ArrayValue, Option<Swizzle>),
        index: Value,
        span: Span,
    ) -> Option<ExprId> {
        let index = self.settle(index, span);
        let mut indices = self.index_values(index, span)?;
        if let Some(swizzle) = swizzle {
            indices = self.swizzled(array, swizzle, &indices, span)?;
        }
        self.element(array, &indices, span)
    }

    /// The bytes of an element that is copied asynchronously.
    fn async_bytes(to: &ArrayValue, source: &ArrayValue) -> Option<u8> {
        let dtype: DType = to.ty.dtype;
        let bytes = dtype.size_bytes();
        let aligned = [to, source].iter().all(|array| array.ty.known_align(0) >= bytes);
        let spaces = (to.ty.space, source.ty.space) == (Space::Shared, Space::Global);
        (aligned && spaces && matches!(bytes, 4 | 8 | 16)).then_some(bytes as u8)
    }

    /// `copy_commit()`.
    pub(super) fn copy_commit(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([]) = self.exactly(row, args, span) else { return Value::Poison };
        self.copies(AsyncCopy::Commit, span)
    }

    /// `copy_wait(pending=0, read=False)`.
    pub(super) fn copy_wait(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([pending, read]) = self.named(row, ["pending", "read"], 0, args, span) else { return Value::Poison };
        let Value::Bool(read) = read.unwrap_or(Value::Bool(false)) else {
            let message = "`read` of `cuda.copy_wait` must be True or False and a compile-time constant";
            return self.error(Code::NotConstant, span, message);
        };
        let pending = pending.unwrap_or(Value::Int(0));
        let pending = if let Value::Int(known) = pending { Some(known) } else { None };
        match pending.map(u8::try_from) {
            Some(Ok(pending)) => self.copies(AsyncCopy::Wait { pending, read }, span),
            Some(Err(_)) | None => {
                let message = "the number of groups in `cuda.copy_wait` must be a compile-time integer from 0 to 255";
                self.error(Code::NotConstant, span, message)
            }
        }
    }

    fn copies(&mut self, copy: AsyncCopy, span: Span) -> Value {
        self.stmt(Ir::Op { op: Op::AsyncCopy(copy), results: Vec::new(), args: Vec::new() }, span);
        Value::NONE
    }
}
