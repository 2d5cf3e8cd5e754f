//! Barriers in shared memory, and the copies that they count: `cuda.barrier`, and `cuda.copy_async(to, source, bar)`.
//!
//! A barrier is an object whose item is the zero-dimensional array with its word; several are one with a one-dimensional
//! array.

use weft_artifact::{BoxType, ClassId, DType, Layout, Number, Numbers, Scalar};

use super::arrays::Declared;
use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        expr::{Args, Index},
        lowerer::FnLowerer,
        object::{Exception, ObjectKind},
        swizzle::array_of,
        ty::{ArrayTy, Sites, Ty, shown_path},
        value::{ArrayValue, Atom, Value},
    },
    intrinsics::Intrinsic,
    ir::{AsyncCopy, BinaryOp, CompareOp, ExprId, Op, Space, SpecialRegister, StmtKind as Ir, Type},
    source::Span,
};

/// The most barriers of one call.
const MOST_BARRIERS: i128 = 256;
/// The most arrivals in a phase of a barrier, and the most bytes (PTX ISA, "Contents of the mbarrier object").
const MOST_ARRIVALS: i128 = (1 << 20) - 1;
/// The alignment of bulk copies, and what their size is a multiple of.
const BULK_ALIGN: i64 = 16;
/// The alignment in bytes of the memory that receives a box.
const BOX_ALIGN: u64 = 128;
/// The type of counts and bytes.
const WORD: Type = Type::Scalar(Scalar::U32);

impl FnLowerer<'_> {
    /// `barrier(count, n=None)`: barriers that thread 0 initializes for all threads of the block.
    pub(super) fn shared_barrier(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([Some(count), n]) = self.named(row, ["count", "n"], 1, args, span) else { return Value::Poison };
        let several = match &n {
            None => None,
            Some(Value::Int(n @ 1..=MOST_BARRIERS)) => Some(*n as i64),
            Some(Value::Poison) => return Value::Poison,
            Some(_) => {
                let message =
                    format!("the number of barriers must be a compile-time integer from 1 to {MOST_BARRIERS}");
                return self.error(Code::NotConstant, span, message);
            }
        };
        if let Value::Int(known) = &count
            && !(1..=MOST_ARRIVALS).contains(known)
        {
            let message = format!("a phase of a barrier has 1 to {MOST_ARRIVALS} arrivals, not {known}");
            return self.error(Code::NoMatchingOverload, span, message);
        }
        if !count.ty().scalar().is_some_and(Scalar::is_int) {
            return self.no_overload(row, &[count.ty()], span);
        }
        if !self.loops.open.is_empty() {
            let message = "`cuda.barrier` in a loop would initialize a barrier that threads may use";
            let diagnostic = Diagnostic::error(Code::UnsupportedExpression, span, message);
            return self.report(diagnostic.help("make the barrier before the loop: its phases follow one another"));
        }
        if self.cx.sanitize {
            let message = "the sanitizer cannot check kernels with `cuda.barrier`";
            let diagnostic = Diagnostic::error(Code::NotInTarget, span, message);
            return self.report(diagnostic.help("launch it without `WEFT_SANITIZE` and `sanitize=`"));
        }
        let Some(count) = self.number(&count, Scalar::U32, span) else { return Value::Poison };
        let shape: Vec<i64> = several.into_iter().collect();
        let ty = ArrayTy {
            dtype: DType::from(Number::Real(Scalar::U64)),
            ndim: shape.len(),
            layout: Layout::C,
            readonly: false,
            space: Space::Shared,
            packed: false,
            own: false,
            sites: Sites::NONE,
        };
        let barriers = several.unwrap_or(1) as u32;
        let declared = Declared { name: "barrier".to_owned(), elem: Scalar::U64, len: barriers.into(), align: 8 };
        let Value::Array(array) = self.allocate(ty, shape, declared, span) else { return Value::Poison };
        let count = self.b.temp(count, span);
        let cond = self.is_first_thread(span);
        self.b.open();
        let operands = vec![self.use_atom(array.data, span), self.b.read(count, span)];
        self.copy_op(AsyncCopy::BarrierInit { barriers }, operands, span);
        let then = self.b.close();
        self.stmt(Ir::If { cond, then, otherwise: Vec::new() }, span);
        self.stmt(Ir::Op { op: Op::Barrier, results: Vec::new(), args: Vec::new() }, span);
        Value::Object(ObjectKind::Barrier, vec![Value::Array(array)])
    }

    fn copy_op(&mut self, copy: AsyncCopy, args: Vec<ExprId>, span: Span) {
        self.stmt(Ir::Op { op: Op::AsyncCopy(copy), results: Vec::new(), args }, span);
    }

    /// Whether the thread is the block's first.
    fn is_first_thread(&mut self, span: Span) -> ExprId {
        let [x, y, z] = [0, 1, 2].map(|axis| self.b.special(SpecialRegister::ThreadIdx(axis), span));
        let any = self.b.binary(BinaryOp::Or, x, y, span);
        let any = self.b.binary(BinaryOp::Or, any, z, span);
        let zero = self.b.zero(Type::I32, span);
        self.b.compare(CompareOp::Eq, any, zero, span)
    }

    /// `bars[i]`, and a box `tensor_map[i, j]`; `None` for other values.
    pub(in crate::frontend) fn barrier_item(&mut self, base: &Value, indices: &[Index], span: Span) -> Option<Value> {
        let Value::Object(kind, items) = base else { return None };
        let [Value::Array(array)] = items.as_slice() else { return None };
        if *kind == ObjectKind::Barrier && array.ty.ndim == 1 {
            let Some(pointer) = self.element(array, indices, span) else { return Some(Value::Poison) };
            let data = Atom::Local(self.b.temp(pointer, span));
            let ty = ArrayTy { ndim: 0, ..array.ty };
            let word = ArrayValue { ty, data, shape: Vec::new(), strides: Vec::new() };
            return Some(Value::Object(ObjectKind::Barrier, vec![Value::Array(word)]));
        }
        let ObjectKind::Struct(class) = kind else { return None };
        BoxType::of_class(*class).map(|of| self.map_box(*class, &of, array, indices, span))
    }

    /// A method of a barrier, which is the first argument.
    pub(super) fn barrier_method(&mut self, row: &Intrinsic, mut args: Args, span: Span) -> Value {
        if args.positional.is_empty() {
            return Value::Poison;
        }
        let (barrier, _) = args.positional.remove(0);
        let Some(word) = one_barrier(&barrier) else {
            let message = format!("`{}` is a method of one barrier: select it by `[i]`", shown_path(row.path));
            return self.error(Code::NoMatchingOverload, span, message);
        };
        let data = word.data;
        let (copy, operand) = match row.path.rsplit('.').next().unwrap_or_default() {
            "arrive" => {
                let Some([]) = self.exactly(row, args, span) else { return Value::Poison };
                (AsyncCopy::BarrierArrive, None)
            }
            "expect" => {
                let Some([Some(bytes)]) = self.named(row, ["bytes"], 1, args, span) else { return Value::Poison };
                (AsyncCopy::BarrierExpect, Some(bytes))
            }
            _ => {
                let Some([Some(phase)]) = self.named(row, ["phase"], 1, args, span) else { return Value::Poison };
                (AsyncCopy::BarrierWait, Some(phase))
            }
        };
        let mut operands = vec![self.use_atom(data, span)];
        if let Some(value) = operand {
            if let Value::Int(known) = value
                && copy == AsyncCopy::BarrierExpect
                && !(0..=MOST_ARRIVALS).contains(&known)
            {
                let message = format!("a phase of a barrier has up to {MOST_ARRIVALS} bytes, not {known}");
                return self.error(Code::NoMatchingOverload, span, message);
            }
            if !value.ty().scalar().is_some_and(Scalar::is_int) {
                return self.no_overload(row, &[value.ty()], span);
            }
            let Some(value) = self.number(&value, Scalar::U32, span) else { return Value::Poison };
            operands.push(if copy == AsyncCopy::BarrierWait { self.parity(value, span) } else { value });
        }
        if copy == AsyncCopy::BarrierWait {
            let message = "all threads of the block wait: no thread can complete this phase of the barrier";
            self.checked_op(copy, operands, Exception::builtin("RuntimeError", message), span);
        } else {
            self.copy_op(copy, operands, span);
        }
        Value::NONE
    }

    /// Emits an operation that, on the CPU, may fail: then the thread ends with an exception.
    fn checked_op(&mut self, copy: AsyncCopy, args: Vec<ExprId>, exception: Exception, span: Span) {
        if self.cx.ptx {
            return self.copy_op(copy, args, span);
        }
        let done = self.b.new_temp(Type::BOOL);
        self.stmt(Ir::Op { op: Op::AsyncCopy(copy), results: vec![done], args }, span);
        let (done, no) = (self.b.read(done, span), self.b.bool(false, span));
        let cond = self.b.compare(CompareOp::Eq, done, no, span);
        self.end_thread_always_if(cond, exception, span);
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

    fn parity(&mut self, phase: ExprId, span: Span) -> ExprId {
        let one = self.b.int(Scalar::U32, 1, span);
        self.b.binary(BinaryOp::And, phase, one, span)
    }

    /// `copy_async(to, source, bar)`: begins to copy an array, or a box of a tensor map.
    pub(super) fn bulk_copy(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([to, source, barrier]) = self.exactly(row, args, span) else { return Value::Poison };
        let types = [to.ty(), source.ty(), barrier.ty()];
        if types.iter().any(Ty::is_poison) {
            return Value::Poison;
        }
        let Some(counter) = one_barrier(&barrier).map(|word| word.data) else {
            let message =
                format!("the third argument of `{}` is a barrier, not {}", shown_path(row.path), barrier.ty());
            let diagnostic = Diagnostic::error(Code::NoMatchingOverload, span, message);
            return self.report(diagnostic.help("an element is copied by `cuda.copy_async(to, i, source, j)`"));
        };
        let Ok((to, swizzle)) = array_of(to) else { return self.no_overload(row, &types, span) };
        if to.ty.space != Space::Shared || to.ty.layout != Layout::C {
            let message = format!("`{}` copies to a C-contiguous array in shared memory", shown_path(row.path));
            return self.error(Code::NoMatchingOverload, span, message);
        }
        let source = match source {
            Value::Object(ObjectKind::MapBox(class), items) => {
                let Some(of) = BoxType::of_class(class) else { return Value::Poison };
                if of.swizzle.to_string() != swizzle.map_or_else(|| "0".to_owned(), |width| width.to_string()) {
                    let message = format!("the array's swizzle is not that of the tensor map, {of}");
                    let help = "pass the same `swizzle=` to `cuda.shared.array` and to `cuda.tensor_map`";
                    return self.report(Diagnostic::error(Code::NoMatchingOverload, span, message).help(help));
                }
                return self.box_copy((&to, counter), &of, items, span);
            }
            Value::Object(ObjectKind::Struct(class), _) if let Some(of) = BoxType::of_class(class) => {
                let message = format!("`{}` copies a box of the tensor map, not {of}", shown_path(row.path));
                let diagnostic = Diagnostic::error(Code::NoMatchingOverload, span, message);
                return self.report(diagnostic.help("select a box by its first indices: `tensor_map[i, j]`"));
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
        let message = "the addresses and the size of an asynchronous copy must be multiples of 16 bytes";
        let operands = operands.into_iter().chain([bytes]).collect();
        self.checked_op(AsyncCopy::Bulk, operands, Exception::builtin("ValueError", message), span);
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
            [Ok(n), _] if n * size % BULK_ALIGN != 0 => {
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
    fn map_box(&mut self, class: ClassId, of: &BoxType, words: &ArrayValue, indices: &[Index], span: Span) -> Value {
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

    fn box_copy(&mut self, (to, counter): (&ArrayValue, Atom), of: &BoxType, items: Vec<Value>, span: Span) -> Value {
        if to.ty.dtype.number() != Some(Number::Real(of.scalar)) {
            let message = format!("an array of {} cannot receive a box of {of}", to.ty.dtype);
            return self.error(Code::NoMatchingOverload, span, message);
        }
        match self.elements(to, span) {
            Ok(n) if n.cast_unsigned() == of.elements() => {}
            Ok(n) => {
                let message = format!("a box of {of} has {} elements, but the array has {n}", of.elements());
                return self.error(Code::NoMatchingOverload, span, message);
            }
            Err(n) => {
                let wanted = self.b.i64(of.elements().cast_signed(), span);
                self.check_sizes([n, wanted], span);
            }
        }
        let mut items = items.into_iter();
        let Some(Value::Array(words)) = items.next() else { return Value::Poison };
        let mut operands: Vec<ExprId> = Vec::new();
        for data in [to.data, words.data, counter] {
            operands.push(self.byte_pointer(data, span));
        }
        let last = of.sizes.len() - 1;
        for (dim, index) in items.enumerate() {
            let Some(index) = self.number(&index, Scalar::I32, span) else { return Value::Poison };
            operands.push(if dim == last { self.checked_start(index, of, span) } else { index });
        }
        let message = "the address that receives a box must be a multiple of 128 bytes";
        let copy = AsyncCopy::Box { dims: of.sizes.len() as u8 };
        self.checked_op(copy, operands, Exception::builtin("ValueError", message), span);
        self.align_shared(of.elements().saturating_mul(of.scalar.size_bytes()));
        Value::NONE
    }
}

impl FnLowerer<'_> {
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

/// The word of a value that is one barrier.
fn one_barrier(value: &Value) -> Option<&ArrayValue> {
    let Value::Object(ObjectKind::Barrier, items) = value else { return None };
    if let [Value::Array(word)] = items.as_slice() { Some(word).filter(|word| word.ty.ndim == 0) } else { None }
}
