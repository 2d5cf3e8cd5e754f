//! Thread block clusters: `cuda.cluster`.

use weft_artifact::Scalar;

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        expr::Args,
        lowerer::FnLowerer,
        object::{Exception, ObjectKind},
        ty::{ArrayTy, Sites, Ty, shown_path},
        value::{ArrayValue, Atom, Value},
    },
    intrinsics::Intrinsic,
    ir::{BinaryOp, ClusterOp, CompareOp, LocalId, Op, Space, StmtKind as Ir, Type},
    source::Span,
};

/// The most blocks of a cluster.
const MOST_BLOCKS: i128 = 16;
/// The type of ranks in the IR.
const WORD: Type = Type::Scalar(Scalar::U32);

impl FnLowerer<'_> {
    /// A function of `cuda.cluster`.
    pub(super) fn cluster(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let name = row.path.rsplit('.').next().unwrap_or_default();
        if name == "shared" {
            return self.cluster_shared(row, args, span);
        }
        let Some([]) = self.exactly(row, args, span) else { return Value::Poison };
        match name {
            "sync" => {
                self.cluster_sync(span);
                Value::NONE
            }
            "rank" => self.cluster_number(ClusterOp::Rank, MOST_BLOCKS - 1, span),
            _ => self.cluster_number(ClusterOp::Size, 2 * MOST_BLOCKS - 1, span),
        }
    }

    /// A barrier of the cluster. On the CPU, a thread ends if the others can never come to it.
    fn cluster_sync(&mut self, span: Span) {
        let sync = |results| Ir::Op { op: Op::Cluster(ClusterOp::Sync), results, args: Vec::new() };
        if self.cx.ptx {
            return self.stmt(sync(Vec::new()), span);
        }
        let done = self.b.new_temp(Type::BOOL);
        self.stmt(sync(vec![done]), span);
        let (done, no) = (self.b.read(done, span), self.b.bool(false, span));
        let cond = self.b.compare(CompareOp::Eq, done, no, span);
        let message = "the other threads of the cluster wait elsewhere: they can never come to this barrier";
        self.end_thread_always_if(cond, Exception::builtin("RuntimeError", message), span);
    }

    /// A number of at most `most`, which is one less than a power of two: so analyses of ranges know that it is not negative.
    fn cluster_number(&mut self, op: ClusterOp, most: i128, span: Span) -> Value {
        let number = self.b.new_temp(WORD);
        self.stmt(Ir::Op { op: Op::Cluster(op), results: vec![number], args: Vec::new() }, span);
        let (number, most) = (self.b.read(number, span), self.b.int(Scalar::U32, most, span));
        let number = self.b.binary(BinaryOp::And, number, most, span);
        Value::Scalar(self.b.convert(number, Type::I32, span), Scalar::I32)
    }

    /// `shared(array, rank)`: the array, or the barriers, in the shared memory of another block.
    fn cluster_shared(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([Some(given), Some(rank)]) = self.named(row, ["array", "rank"], 2, args, span) else {
            return Value::Poison;
        };
        let types = [given.ty(), rank.ty()];
        if types.iter().any(Ty::is_poison) {
            return Value::Poison;
        }
        if !rank.ty().scalar().is_some_and(Scalar::is_int) {
            return self.no_overload(row, &types, span);
        }
        if let Value::Int(known) = rank
            && !(0..MOST_BLOCKS).contains(&known)
        {
            let message = format!("the rank of a block in its cluster is from 0 to {}, not {known}", MOST_BLOCKS - 1);
            return self.error(Code::NoMatchingOverload, span, message);
        }
        match given {
            Value::Array(array) => match self.in_shared_of(row, &array, &rank, span) {
                Some(array) => Value::Array(array),
                None => Value::Poison,
            },
            Value::Object(kind @ (ObjectKind::Swizzled(_) | ObjectKind::Barrier), items) => {
                let [Value::Array(array)] = items.as_slice() else { return Value::Poison };
                match self.in_shared_of(row, array, &rank, span) {
                    Some(array) => Value::Object(kind, vec![Value::Array(array)]),
                    None => Value::Poison,
                }
            }
            Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison => self.no_overload(row, &types, span),
        }
    }

    fn in_shared_of(&mut self, row: &Intrinsic, array: &ArrayValue, rank: &Value, span: Span) -> Option<ArrayValue> {
        if array.ty.space != Space::Shared {
            let message = format!("`{}` takes an array in the block's shared memory", shown_path(row.path));
            let diagnostic = Diagnostic::error(Code::NoMatchingOverload, span, message);
            self.report(diagnostic.help("pass what `cuda.shared.array` or `cuda.barrier` returns, or a part of it"));
            return None;
        }
        let rank = self.number(rank, Scalar::U32, span)?;
        let rank = self.b.temp(rank, span);
        self.check_rank(rank, span);
        let ty = ArrayTy { space: Space::Generic, own: false, sites: Sites::NONE, ..array.ty };
        let operands = vec![self.use_atom(array.data, span), self.b.read(rank, span)];
        let Type::Ptr(element, _) = self.b.ty(operands[0]) else { return None };
        let data = self.b.new_temp(Type::Ptr(element, Space::Generic));
        self.stmt(Ir::Op { op: Op::Cluster(ClusterOp::Shared), results: vec![data], args: operands }, span);
        Some(ArrayValue { ty, data: Atom::Local(data), ..array.clone() })
    }

    /// Ends the thread, on the CPU, if the cluster has no block of a rank.
    fn check_rank(&mut self, rank: LocalId, span: Span) {
        if self.cx.ptx {
            return;
        }
        let size = self.b.new_temp(WORD);
        self.stmt(Ir::Op { op: Op::Cluster(ClusterOp::Size), results: vec![size], args: Vec::new() }, span);
        let (rank, size) = (self.b.read(rank, span), self.b.read(size, span));
        let cond = self.b.compare(CompareOp::Ge, rank, size, span);
        let message =
            "the cluster has no block of this rank: launch the kernel with a cluster, or test `cuda.cluster.size()`";
        self.end_thread_always_if(cond, Exception::builtin("IndexError", message), span);
    }
}
