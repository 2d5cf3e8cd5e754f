//! Lowering of products of matrices of a warp.
//!
//! ```text
//!                                    store a0[t] = $a0; store b0[t] = $b0; store c0[t] = $c0
//!                                    of_warps: once for the threads from w to w + 31
//!  $d0 = multiply.m16n8k16… $a0, …       multiply_cells.m16n8k16… &a0[w], &b0[w], &c0[w]
//!                                    $d0 = c0[t]
//! ```
//!
//! Each operand has an array of cells. A thread writes and reads only its own cells, and the runtime accesses them only
//! after all lanes have written theirs and before one reads its result, so that consecutive products may use the same
//! arrays. On fibers, a barrier before and one after the product ensure this.

use weft_artifact::{MatrixProduct, Scalar};

use super::{Cells, Site};
use crate::{
    backend::host::plan::plan_ir::cells::LANES,
    ir::{Block, ExprId, ExprKind, LocalId, Module, Op, SharedId, Space, StmtKind, Type},
    source::Span,
};

impl Cells {
    /// The array of the operand with a number among those of its type.
    fn of_operand(&mut self, module: &mut Module, (elem, number): (Scalar, usize), span: Span) -> SharedId {
        let known = self.operands.iter().filter(|(of, _)| *of == elem).nth(number);
        if let Some((_, array)) = known {
            return *array;
        }
        let array = Self::new_array(module, elem, span);
        self.operands.push((elem, array));
        array
    }
}

impl Site<'_> {
    pub(crate) fn multiply(&mut self, product: MatrixProduct, results: &[LocalId], args: &[ExprId]) {
        let mut arrays: Vec<(SharedId, Scalar)> = Vec::with_capacity(args.len());
        for &value in args {
            let mut value = value;
            if product.reads_memory() && self.function.exprs[value].ty.scalar().is_none() {
                // The address of a matrix in shared memory.
                value = self.make().expr(ExprKind::Convert(value), Type::Scalar(Scalar::U64));
            }
            let Some(elem) = self.function.exprs[value].ty.scalar() else { return };
            let number = arrays.iter().filter(|(_, of)| *of == elem).count();
            let array = self.cells.of_operand(self.module, (elem, number), self.span);
            arrays.push((array, elem));
            self.leave(array, value);
        }
        let all = self.make().int(-1);
        let mask = self.assigned("mask", all);
        if self.cells.stacks {
            self.barrier(mask);
        } else {
            self.push(StmtKind::Op { op: Op::OfWarps, results: Vec::new(), args: Vec::new() });
        }
        let mut make = self.make();
        let mut cells = Vec::with_capacity(arrays.len());
        for &(array, elem) in &arrays {
            let first = make.thread();
            let index = make.shifted(first, LANES);
            let cell = make.cell(array, elem, index);
            cells.push(make.expr(ExprKind::Convert(cell), Type::Ptr(Scalar::U8, Space::Shared)));
        }
        let product = make.stmt(StmtKind::Op { op: Op::MultiplyCells(product), results: Vec::new(), args: cells });
        let cond = make.is_first_lane();
        self.push(StmtKind::If { cond, then: vec![product], otherwise: Block::new() });
        if self.cells.stacks {
            self.barrier(mask);
        }
        let accumulators = &arrays[arrays.len() - results.len()..];
        for (&result, &(array, elem)) in results.iter().zip(accumulators) {
            let mut make = self.make();
            let thread = make.thread();
            let value = make.cell_of(array, elem, thread);
            self.push(StmtKind::Assign(result, value));
        }
    }
}
