//! Barriers in shared memory: `cuda.barrier`.
//!
//! A barrier is an object whose item is the zero-dimensional array with its word; several are one with a one-dimensional
//! array.

use weft_artifact::{BoxType, DType, Layout, Number, Scalar};

use super::arrays::Declared;
use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        expr::{Args, Index},
        lowerer::FnLowerer,
        object::{Exception, ObjectKind},
        ty::{ArrayTy, Sites, shown_path},
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
        let (data, remote) = (word.data, word.ty.space == Space::Generic);
        let (copy, operand) = match row.path.rsplit('.').next().unwrap_or_default() {
            "arrive" => {
                let Some([]) = self.exactly(row, args, span) else { return Value::Poison };
                (AsyncCopy::BarrierArrive { remote }, None)
            }
            "expect" => {
                let Some([Some(bytes)]) = self.named(row, ["bytes"], 1, args, span) else { return Value::Poison };
                (AsyncCopy::BarrierExpect { remote }, Some(bytes))
            }
            _ if remote => {
                let message = "a thread can only wait for barriers of its own block";
                let diagnostic = Diagnostic::error(Code::NoMatchingOverload, span, message);
                return self
                    .report(diagnostic.help("wait for a barrier of this block, at which the other block arrives"));
            }
            _ => {
                let Some([Some(phase)]) = self.named(row, ["phase"], 1, args, span) else { return Value::Poison };
                (AsyncCopy::BarrierWait, Some(phase))
            }
        };
        let mut operands = vec![self.use_atom(data, span)];
        if let Some(value) = operand {
            if let Value::Int(known) = value
                && copy != AsyncCopy::BarrierWait
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
        } else if remote {
            let message = "the other block has not made the barrier: call `cuda.cluster.sync()` after `cuda.barrier`";
            self.checked_op(copy, operands, Exception::builtin("RuntimeError", message), span);
        } else {
            self.copy_op(copy, operands, span);
        }
        Value::NONE
    }

    /// Emits an operation that, on the CPU, may fail: then the thread ends with an exception.
    pub(super) fn checked_op(&mut self, copy: AsyncCopy, args: Vec<ExprId>, exception: Exception, span: Span) {
        if self.cx.ptx {
            return self.copy_op(copy, args, span);
        }
        let done = self.b.new_temp(Type::BOOL);
        self.stmt(Ir::Op { op: Op::AsyncCopy(copy), results: vec![done], args }, span);
        let (done, no) = (self.b.read(done, span), self.b.bool(false, span));
        let cond = self.b.compare(CompareOp::Eq, done, no, span);
        self.end_thread_always_if(cond, exception, span);
    }

    fn parity(&mut self, phase: ExprId, span: Span) -> ExprId {
        let one = self.b.int(Scalar::U32, 1, span);
        self.b.binary(BinaryOp::And, phase, one, span)
    }
}

/// The word of a value that is one barrier.
pub(super) fn one_barrier(value: &Value) -> Option<&ArrayValue> {
    let Value::Object(ObjectKind::Barrier, items) = value else { return None };
    if let [Value::Array(word)] = items.as_slice() { Some(word).filter(|word| word.ty.ndim == 0) } else { None }
}
