//! The start of an adjoint kernel: the adjoints of shared and local arrays are 0.

use weft_artifact::Scalar;

use super::Emitter;
use crate::{
    autodiff::{dynamic, tape::Barrier},
    ir::{
        Align, Base, BinaryOp, Block, CompareOp, Const, ExprId, ExprKind, LocalId, Space, SpecialRegister, Stmt,
        StmtKind, Type, UnaryOp,
    },
};

impl Emitter<'_> {
    /// Sets them to 0, each thread a part of those of the block.
    pub(super) fn clear(&mut self) {
        let adjoints: Vec<Base> = self.tape.arrays.own_adjoints().collect();
        let is_shared = |base: &Base| matches!(base, Base::Shared(_) | Base::Dynamic);
        let (mut thread, mut threads) = (None, None);
        if adjoints.iter().any(is_shared) {
            (thread, threads) = (Some(self.number_of_thread()), Some(self.number_of_threads()));
        }
        let span = self.function.span;
        for base in &adjoints {
            match *base {
                Base::Shared(id) => {
                    let array = &self.module.shared[id];
                    let (elem, len) = (array.elem, array.len);
                    let pointer = (ExprKind::SharedBase(id), Type::Ptr(elem, Space::Shared));
                    let len = self.int(i128::from(len), span);
                    self.clear_array(pointer, len, (thread, threads));
                }
                Base::Local(id) => {
                    let array = &self.function.local_arrays[id];
                    let (elem, len) = (array.elem, array.len);
                    let pointer = (ExprKind::LocalBase(id), Type::Ptr(elem, Space::Local));
                    let len = self.int(i128::from(len), span);
                    self.clear_array(pointer, len, (None, None));
                }
                Base::Dynamic => {
                    let elem = self.tape.activity.dynamic.unwrap_or(Scalar::U8);
                    let ty = Type::Ptr(elem, Space::Shared);
                    let base = self.expr(ExprKind::DynamicShared, ty, span);
                    let bytes = dynamic::first_adjoint(self.function, Type::I64, span);
                    let size = dynamic::size(self.function, span);
                    let each = self.int(i128::from(elem.size_bytes()), span);
                    let len = self.binary(BinaryOp::DivNonneg, size, each, span);
                    self.clear_array((ExprKind::ByteOffset { base, bytes }, ty), len, (thread, threads));
                }
                Base::Const(_) => {}
            }
        }
        if adjoints.iter().any(is_shared) {
            self.barrier(Barrier::Block, span);
        }
    }

    /// A special register as an `int64`.
    pub(super) fn special(&mut self, register: SpecialRegister) -> ExprId {
        let span = self.function.span;
        let value = self.expr(ExprKind::Special(register), Type::I32, span);
        self.expr(ExprKind::Convert(value), Type::I64, span)
    }

    pub(super) fn number_of_thread(&mut self) -> LocalId {
        let span = self.function.span;
        let [x, y, z] = [0, 1, 2].map(|axis| self.special(SpecialRegister::ThreadIdx(axis)));
        let [width, height] = [0, 1].map(|axis| self.special(SpecialRegister::BlockDim(axis)));
        let rows = self.binary(BinaryOp::Mul, z, height, span);
        let rows = self.binary(BinaryOp::Add, rows, y, span);
        let before = self.binary(BinaryOp::Mul, rows, width, span);
        let value = self.binary(BinaryOp::Add, before, x, span);
        self.assigned_to_new("thread", value)
    }

    pub(super) fn number_of_threads(&mut self) -> LocalId {
        let span = self.function.span;
        let [width, height, depth] = [0, 1, 2].map(|axis| self.special(SpecialRegister::BlockDim(axis)));
        let area = self.binary(BinaryOp::Mul, width, height, span);
        let value = self.binary(BinaryOp::Mul, area, depth, span);
        self.assigned_to_new("threads", value)
    }

    pub(super) fn assigned_to_new(&mut self, name: &str, value: ExprId) -> LocalId {
        let local = self.temp(name, Type::I64);
        self.push(StmtKind::Assign(local, value), self.function.span);
        local
    }

    /// `for index in range(first, len, by): array[index] = 0`; by default from 0 and by 1.
    fn clear_array(
        &mut self,
        (base, ty): (ExprKind, Type),
        len: ExprId,
        (first, by): (Option<LocalId>, Option<LocalId>),
    ) {
        let span = self.function.span;
        let start = match first {
            Some(first) => self.read(first, span),
            None => self.int(0, span),
        };
        let index = self.assigned_to_new("index", start);
        let now = self.read(index, span);
        let more = self.expr(ExprKind::Compare(CompareOp::Lt, now, len), Type::BOOL, span);
        let cond = self.expr(ExprKind::Unary(UnaryOp::Not, more), Type::BOOL, span);
        let then = vec![Stmt { kind: StmtKind::Break, span }];
        let (base, at) = (self.expr(base, ty, span), self.read(index, span));
        let pointer = self.expr(ExprKind::Offset { base, index: at, scale: 1 }, ty, span);
        let Type::Ptr(elem, _) = ty else { return };
        // Arrays of bytes have floats in them, too.
        let zero = if elem.is_float() { Const::Float(0.0) } else { Const::Int(0) };
        let value = self.expr(ExprKind::Const(zero), Type::Scalar(elem), span);
        let body = vec![
            Stmt { kind: StmtKind::If { cond, then, otherwise: Block::new() }, span },
            Stmt { kind: StmtKind::Store { pointer, value, align: Align::Natural }, span },
        ];
        let now = self.read(index, span);
        let step = match by {
            Some(by) => self.read(by, span),
            None => self.int(1, span),
        };
        let next = self.binary(BinaryOp::Add, now, step, span);
        let step = vec![Stmt { kind: StmtKind::Assign(index, next), span }];
        self.push(StmtKind::Loop { body, step }, span);
    }
}
