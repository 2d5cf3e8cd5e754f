//! Bulk copies: between global and shared memory, of arrays and of boxes of tensor maps. A barrier counts copies to shared
//! memory (`cuda.copy_async(to, source, bar)`); copies to global memory are in groups (`cuda.copy_async(to, source)`).

use weft_artifact::{BoxType, ClassId, Layout, Number, Numbers, Scalar};

use super::barriers::one_barrier;
use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        expr::{Args, Index},
        lowerer::FnLowerer,
        object::{Exception, ObjectKind},
        swizzle::{Swizzle, array_of},
        ty::{Ty, shown_path},
        value::{ArrayValue, Atom, Value},
    },
    intrinsics::Intrinsic,
    ir::{AsyncCopy, BinaryOp, CompareOp, ExprId, LocalId, Space, StmtKind as Ir, Type},
    source::Span,
};

/// The alignment of bulk copies, and what their size is a multiple of.
const BULK_ALIGN: i64 = 16;
/// The alignment in bytes of the shared memory that has a box.
const BOX_ALIGN: u64 = 128;
/// The type of counts and bytes.
const WORD: Type = Type::Scalar(Scalar::U32);
/// The errors of copies that are not aligned, and of those to several blocks.
const UNALIGNED: &str = "the addresses and the size of an asynchronous copy must be multiples of 16 bytes";
const SEVERAL: &str = "the address of a copy must be a multiple of 16 bytes, or 128 for a box, `multicast` must name blocks of \
                       the cluster, and each must have made the barrier: call `cuda.cluster.sync()` after `cuda.barrier`";

impl FnLowerer<'_> {
    /// `copy_async(to, source, bar)`: begins to copy an array, or a box of a tensor map.
    pub(super) fn bulk_copy(&mut self, row: &Intrinsic, mut args: Args, span: Span) -> Value {
        let mask = args.keywords.iter().position(|(name, ..)| name == "multicast");
        let mask = mask.map(|place| args.keywords.remove(place).1);
        let Some([to, source, barrier]) = self.exactly(row, args, span) else { return Value::Poison };
        let types = [to.ty(), source.ty(), barrier.ty()];
        if types.iter().any(Ty::is_poison) {
            return Value::Poison;
        }
        let mask = match mask.map(|mask| self.cluster_mask(&mask, span)) {
            Some(None) => return Value::Poison,
            Some(Some(mask)) => Some(mask),
            None => None,
        };
        let Some(word) = one_barrier(&barrier) else {
            let message =
                format!("the third argument of `{}` is a barrier, not {}", shown_path(row.path), barrier.ty());
            let diagnostic = Diagnostic::error(Code::NoMatchingOverload, span, message);
            return self.report(diagnostic.help("an element is copied by `cuda.copy_async(to, i, source, j)`"));
        };
        if word.ty.space != Space::Shared {
            let message = "the barrier that counts a copy is that of the thread's own block";
            let diagnostic = Diagnostic::error(Code::NoMatchingOverload, span, message);
            return self.report(diagnostic.help("pass the own barrier; `multicast=` counts at that of each block"));
        }
        let counter = word.data;
        let Ok((to, swizzle)) = array_of(to) else { return self.no_overload(row, &types, span) };
        if to.ty.space != Space::Shared || to.ty.layout != Layout::C {
            let message = format!("`{}` copies to a C-contiguous array in shared memory", shown_path(row.path));
            return self.error(Code::NoMatchingOverload, span, message);
        }
        let source = match source {
            Value::Object(ObjectKind::MapBox(class), items) => {
                let Some(of) = BoxType::of_class(class) else { return Value::Poison };
                return self.box_copy((&to, swizzle), (counter, mask), &of, items, span);
            }
            Value::Object(ObjectKind::Struct(class), _) if let Some(of) = BoxType::of_class(class) => {
                return self.no_box(row, &of, span);
            }
            Value::Array(source) if swizzle.is_none() => source,
            Value::Array(_)
            | Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison => return self.no_overload(row, &types, span),
        };
        if source.ty.dtype != to.ty.dtype {
            return self.no_overload(row, &types, span);
        }
        if source.ty.space != Space::Global || source.ty.layout != Layout::C {
            let message = format!("`{}` copies from a C-contiguous array in global memory", shown_path(row.path));
            return self.error(Code::NoMatchingOverload, span, message);
        }
        let Some(bytes) = self.bulk_bytes(&to, &source, span) else { return Value::Poison };
        let operands = [to.data, source.data, counter].map(|data| self.byte_pointer(data, span));
        let message = if mask.is_some() { SEVERAL } else { UNALIGNED };
        let copy = AsyncCopy::Bulk { multicast: mask.is_some() };
        let operands = operands.into_iter().chain([bytes]).chain(mask).collect();
        self.checked_op(copy, operands, Exception::builtin("ValueError", message), span);
        Value::NONE
    }

    /// A pointer as one to bytes.
    fn byte_pointer(&mut self, data: Atom, span: Span) -> ExprId {
        let pointer = self.use_atom(data, span);
        let Type::Ptr(_, space) = self.b.ty(pointer) else { return pointer };
        self.b.convert(pointer, Type::Ptr(Scalar::U8, space), span)
    }

    /// The known number of elements, or an expression of it.
    fn elements(&mut self, array: &ArrayValue, span: Span) -> Result<i64, ExprId> {
        let extents: Vec<Atom> = array.shape.iter().map(|extent| self.fixed(*extent)).collect();
        let known = extents.iter().map(|extent| if let Atom::Int(known) = extent { Some(*known) } else { None });
        if let Some(known) = known.collect::<Option<Vec<_>>>() {
            return Ok(known.iter().product());
        }
        let mut product = self.b.i64(1, span);
        for extent in extents {
            let extent = self.use_atom(extent, span);
            product = self.b.binary(BinaryOp::Mul, product, extent, span);
        }
        Err(product)
    }

    /// Ends the thread, on the CPU, if an array does not have the number of elements of what is copied to it.
    fn check_sizes(&mut self, sizes: [ExprId; 2], span: Span) {
        if self.cx.ptx {
            return;
        }
        let sizes = sizes.map(|n| self.b.temp(n, span));
        let [to, given] = sizes.map(|n| self.b.read(n, span));
        let cond = self.b.compare(CompareOp::Ne, to, given, span);
        self.b.open();
        let [to, given] = sizes.map(|n| self.b.read(n, span));
        self.bad_extents(Numbers::Elements, [given, to], span);
        let then = self.b.close();
        self.stmt(Ir::If { cond, then, otherwise: Vec::new() }, span);
    }

    /// The number of bytes of a bulk copy. On the CPU, the thread ends if the arrays have different sizes.
    fn bulk_bytes(&mut self, to: &ArrayValue, source: &ArrayValue, span: Span) -> Option<ExprId> {
        let size = to.ty.dtype.size_bytes() as i64;
        let sizes = [self.elements(to, span), self.elements(source, span)];
        let wrong = match sizes {
            [Ok(n), _] | [Err(_), Ok(n)] if n * size % BULK_ALIGN != 0 => {
                Some(format!("a copy has a multiple of {BULK_ALIGN} bytes, not {} bytes", n * size))
            }
            [Ok(to), Ok(source)] if to != source => {
                Some(format!("an array of {source} elements cannot be copied to one of {to}"))
            }
            [Ok(_) | Err(_), Ok(_) | Err(_)] => None,
        };
        if let Some(message) = wrong {
            self.error(Code::NoMatchingOverload, span, message);
            return None;
        }
        let known = sizes.iter().all(Result::is_ok);
        let [n, given] = sizes.map(|n| n.map_or_else(|n| n, |n| self.b.i64(n, span)));
        let n = self.b.temp(n, span);
        if !known {
            let n = self.b.read(n, span);
            self.check_sizes([n, given], span);
        }
        let (n, size) = (self.b.read(n, span), self.b.i64(size, span));
        let bytes = self.b.binary(BinaryOp::Mul, n, size, span);
        Some(self.b.convert(bytes, WORD, span))
    }

    /// The box of a tensor map whose first element has these indices.
    pub(super) fn map_box(
        &mut self,
        class: ClassId,
        of: &BoxType,
        words: &ArrayValue,
        indices: &[Index],
        span: Span,
    ) -> Value {
        if indices.len() != of.sizes.len() {
            let message = format!("a box of {of} has {} indices, not {}", of.sizes.len(), indices.len());
            return self.error(Code::IndexCount, span, message);
        }
        let mut items = vec![Value::Array(words.clone())];
        for index in indices {
            let Index::At { expr, known, .. } = index else {
                let message = "a box of a tensor map is selected by integers, which do not count from the end";
                return self.error(Code::BadIndex, span, message);
            };
            let start = known.filter(|_| items.len() == of.sizes.len());
            if let Some(start) = start.filter(|start| start * of.scalar.size_bytes() as i64 % BULK_ALIGN != 0) {
                let message = format!(
                    "the index of a box along the last dimension must be a multiple of {BULK_ALIGN} bytes: {start} \
                     elements have {} bytes",
                    start * of.scalar.size_bytes() as i64
                );
                return self.error(Code::BadIndex, span, message);
            }
            items.push(Value::Scalar(*expr, Scalar::I64));
        }
        Value::Object(ObjectKind::MapBox(class), items)
    }

    /// Begins to copy a box to an array, which the barrier counts; in each block of the mask, if there is one.
    fn box_copy(
        &mut self,
        to: (&ArrayValue, Option<Swizzle>),
        (counter, mask): (Atom, Option<ExprId>),
        of: &BoxType,
        items: Vec<Value>,
        span: Span,
    ) -> Value {
        let Some((map, indices)) = self.checked_box(to, of, items, span) else { return Value::Poison };
        let mut operands: Vec<ExprId> = Vec::new();
        for data in [to.0.data, map, counter] {
            operands.push(self.byte_pointer(data, span));
        }
        operands.extend(indices.into_iter().map(|index| self.b.read(index, span)));
        operands.extend(mask);
        let message =
            if mask.is_some() { SEVERAL } else { "the address that receives a box must be a multiple of 128 bytes" };
        let copy = AsyncCopy::Box { dims: of.sizes.len() as u8, multicast: mask.is_some() };
        self.checked_op(copy, operands, Exception::builtin("ValueError", message), span);
        self.align_shared(of.elements().saturating_mul(of.scalar.size_bytes()));
        Value::NONE
    }

    /// Checks that an array has the elements of a box. Returns the address of the map, and the first indices.
    fn checked_box(
        &mut self,
        (array, swizzle): (&ArrayValue, Option<Swizzle>),
        of: &BoxType,
        items: Vec<Value>,
        span: Span,
    ) -> Option<(Atom, Vec<LocalId>)> {
        if of.swizzle.to_string() != swizzle.map_or_else(|| "0".to_owned(), |width| width.to_string()) {
            let message = format!("the array's swizzle is not that of the tensor map, {of}");
            let help = "pass the same `swizzle=` to `cuda.shared.array` and to `cuda.tensor_map`";
            self.report(Diagnostic::error(Code::NoMatchingOverload, span, message).help(help));
            return None;
        }
        if array.ty.dtype.number() != Some(Number::Real(of.scalar)) {
            let message = format!("an array of {} does not fit a box of {of}", array.ty.dtype);
            self.error(Code::NoMatchingOverload, span, message);
            return None;
        }
        match self.elements(array, span) {
            Ok(n) if n.cast_unsigned() == of.elements() => {}
            Ok(n) => {
                let message = format!("a box of {of} has {} elements, but the array has {n}", of.elements());
                self.error(Code::NoMatchingOverload, span, message);
                return None;
            }
            Err(n) => {
                let wanted = self.b.i64(of.elements().cast_signed(), span);
                self.check_sizes([n, wanted], span);
            }
        }
        let mut items = items.into_iter();
        let Some(Value::Array(words)) = items.next() else { return None };
        let mut indices = Vec::new();
        let last = of.sizes.len() - 1;
        for (dim, index) in items.enumerate() {
            let index = self.number(&index, Scalar::I32, span)?;
            let index = if dim == last { self.checked_start(index, of, span) } else { index };
            indices.push(self.b.temp(index, span));
        }
        Some((words.data, indices))
    }

    /// `copy_async(to, source)`: begins to copy an array in shared memory to global memory, or to a box of a tensor map.
    pub(super) fn bulk_store(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([to, source]) = self.exactly(row, args, span) else { return Value::Poison };
        let types = [to.ty(), source.ty()];
        if types.iter().any(Ty::is_poison) {
            return Value::Poison;
        }
        let Ok((source, swizzle)) = array_of(source) else { return self.no_overload(row, &types, span) };
        if source.ty.space != Space::Shared || source.ty.layout != Layout::C {
            let message = format!(
                "`{}` without a barrier copies from a C-contiguous array in shared memory",
                shown_path(row.path)
            );
            let diagnostic = Diagnostic::error(Code::NoMatchingOverload, span, message);
            return self.report(
                diagnostic.help("a copy to shared memory takes a barrier: `cuda.copy_async(to, source, bar)`"),
            );
        }
        match to {
            Value::Object(ObjectKind::MapBox(class), items) => {
                let Some(of) = BoxType::of_class(class) else { return Value::Poison };
                self.box_store((&source, swizzle), &of, items, span)
            }
            Value::Object(ObjectKind::Struct(class), _) if let Some(of) = BoxType::of_class(class) => {
                self.no_box(row, &of, span)
            }
            Value::Array(to) if swizzle.is_none() && to.ty.dtype == source.ty.dtype => {
                self.array_store(row, &to, &source, span)
            }
            Value::Array(_)
            | Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison => self.no_overload(row, &types, span),
        }
    }

    fn array_store(&mut self, row: &Intrinsic, to: &ArrayValue, source: &ArrayValue, span: Span) -> Value {
        if to.ty.readonly {
            let message = format!("`{}` writes its first array, which is read-only", shown_path(row.path));
            return self.error(Code::ReadonlyArray, span, message);
        }
        if to.ty.space != Space::Global || to.ty.layout != Layout::C {
            let message = format!("`{}` copies to a C-contiguous array in global memory", shown_path(row.path));
            return self.error(Code::NoMatchingOverload, span, message);
        }
        let Some(bytes) = self.bulk_bytes(to, source, span) else { return Value::Poison };
        let operands = [to.data, source.data].map(|data| self.byte_pointer(data, span));
        let operands = operands.into_iter().chain([bytes]).collect();
        self.checked_op(AsyncCopy::BulkStore, operands, Exception::builtin("ValueError", UNALIGNED), span);
        Value::NONE
    }

    fn box_store(
        &mut self,
        source: (&ArrayValue, Option<Swizzle>),
        of: &BoxType,
        items: Vec<Value>,
        span: Span,
    ) -> Value {
        let Some((map, indices)) = self.checked_box(source, of, items, span) else { return Value::Poison };
        // A GPU has no such instruction.
        let checks = !self.cx.ptx;
        for index in indices.iter().copied().filter(|_| checks) {
            let (index, zero) = (self.b.read(index, span), self.b.int(Scalar::I32, 0, span));
            let cond = self.b.compare(CompareOp::Lt, index, zero, span);
            let message = "the first indices of a box that is written must not be negative";
            self.end_thread_always_if(cond, Exception::builtin("ValueError", message), span);
        }
        let mut operands = vec![self.byte_pointer(map, span), self.byte_pointer(source.0.data, span)];
        operands.extend(indices.into_iter().map(|index| self.b.read(index, span)));
        let message = "the address of the elements of a box must be a multiple of 128 bytes";
        let copy = AsyncCopy::BoxStore { dims: of.sizes.len() as u8 };
        self.checked_op(copy, operands, Exception::builtin("ValueError", message), span);
        self.align_shared(of.elements().saturating_mul(of.scalar.size_bytes()));
        Value::NONE
    }

    fn no_box(&mut self, row: &Intrinsic, of: &BoxType, span: Span) -> Value {
        let message = format!("`{}` copies a box of the tensor map, not {of}", shown_path(row.path));
        let diagnostic = Diagnostic::error(Code::NoMatchingOverload, span, message);
        self.report(diagnostic.help("select a box by its first indices: `tensor_map[i, j]`"))
    }

    /// The mask of the blocks of the cluster that receive a copy.
    fn cluster_mask(&mut self, mask: &Value, span: Span) -> Option<ExprId> {
        let fits = match mask {
            Value::Int(known) => (1..=0xFFFF).contains(known),
            Value::Scalar(_, scalar) => scalar.is_int(),
            Value::Poison => return None,
            Value::Complex(..) | Value::Bool(_) | Value::Array(_) | Value::Object(..) | Value::Static(_) => false,
        };
        if !fits {
            let message = "`multicast` is an integer with a bit for each block of the cluster that receives the copy";
            let diagnostic = Diagnostic::error(Code::NoMatchingOverload, span, message);
            self.report(diagnostic.help("bit `r` is the block of rank `r`: 0b11 for the first two blocks"));
            return None;
        }
        self.number(mask, Scalar::I32, span)
    }

    /// Aligns the shared memory that can receive a box of some number of bytes.
    fn align_shared(&mut self, bytes: u64) {
        if self.is_dry() {
            return;
        }
        let module = &mut self.cx.module;
        module.dynamic_shared_align = module.dynamic_shared_align.max(BOX_ALIGN);
        for (_, array) in module.shared.iter_mut() {
            if array.len.saturating_mul(array.elem.size_bytes()) >= bytes {
                array.align = array.align.max(BOX_ALIGN);
            }
        }
    }

    /// The index of a box along the last dimension. On the CPU, the thread ends if it is no multiple of 16 bytes, which
    /// is an illegal instruction on a GPU.
    fn checked_start(&mut self, index: ExprId, of: &BoxType, span: Span) -> ExprId {
        let per_part = BULK_ALIGN / of.scalar.size_bytes() as i64;
        if self.cx.ptx || per_part < 2 {
            return index;
        }
        let index = self.b.temp(index, span);
        let (value, mask) = (self.b.read(index, span), self.b.int(Scalar::I32, (per_part - 1).into(), span));
        let (rest, zero) = (self.b.binary(BinaryOp::And, value, mask, span), self.b.int(Scalar::I32, 0, span));
        let cond = self.b.compare(CompareOp::Ne, rest, zero, span);
        let message = "the index of a box along the last dimension must be a multiple of 16 bytes";
        self.end_thread_always_if(cond, Exception::builtin("ValueError", message), span);
        self.b.read(index, span)
    }
}
