//! Computes values in 32 bits that provably fit.
//!
//! ```text
//! $i = int64(blockIdx.x) * int64(blockDim.x)        $i = add_exact(mul_exact(blockIdx.x, blockDim.x), threadIdx.x)
//!     + int64(threadIdx.x)
//! if $i < $n {                                      if $i < int32($n) {
//!     $low = max($i - 1, 0)                             $low = max(sub_exact($i, 1:int32), 0:int32)
//! ```
//!
//! Numba's rules make most integers `int64`, but a GPU computes with 32 bits: a 64-bit addition is two instructions, a
//! minimum four, a product many, and LLVM does not narrow them. [`Ranges`] proves which values fit: locals whose values
//! all fit become `int32`, and so do expressions that fit and whose operands fit, or of whose operands only the lower
//! halves matter. A use in 64 bits extends the value: the product of an index and an element's size takes 32-bit
//! operands and gives 64 bits in one instruction. An index in brackets fits if the array is known to be small enough,
//! even if its operands do not ([`address`]).
//!
//! Locals whose values do not fit become narrow, too, if only their lower halves are read ([`halves`]), and locals that
//! fit `uint32` become `uint32`: states of random number generators, hashes.
//!
//! Unsigned 64-bit integers become signed first, if this changes no value ([`signs`]).
//!
//! Clamps of floats that are converted to integers are computed in 32 bits if they fit ([`saturated`]).
//!
//! On a CPU, where vectors of 32 bits have twice as many elements, only values that are not part of an
//! [index](wide_values) become narrow: indices have the width of its registers, and the vectorizer recognizes 64-bit
//! sums as linear.
//!
//! Sums, differences and products are marked as exact, so that LLVM can still split a constant off an index, and derive
//! the range of an induction variable.

mod address;
mod halves;
mod saturated;
mod signs;
mod wide_values;

use std::collections::{BTreeMap, BTreeSet};

use weft_artifact::Scalar;

use crate::{
    analysis::{Interval, PointerExtents, Ranges},
    ir::{
        Arith, BinaryOp, Block, Class, Const, Expr, ExprId, ExprKind, Function, Leaf, LocalId, Module, Stmt, StmtKind,
        Type, UnaryOp, falls_through, for_each_expr, for_each_expr_of_block, for_each_stmt,
    },
    source::Span,
};

/// `uint32`.
const UNSIGNED: Type = Type::Scalar(Scalar::U32);

/// The maximum trip count of loops that LLVM unrolls fully, if their body is short.
const UNROLLED: i128 = 64;

/// Runs the pass for a CPU.
pub(super) fn run_on_host(module: &mut Module) {
    signs::make_signed(module);
    let ranges = Ranges::of(module);
    for ((_, function), ranges) in module.functions.iter_mut().zip(&ranges) {
        let kept = wide_values::wide_values(function);
        narrow_function(function, ranges, None, kept);
    }
}

/// Runs the pass.
pub(super) fn run(module: &mut Module) {
    signs::make_signed(module);
    let ranges = Ranges::of(module);
    let reaches = PointerExtents::of(module);
    let functions = module.functions.iter().zip(&ranges);
    let addresses: Vec<_> = functions
        .map(|((id, function), ranges)| {
            // Counters that are not strength-reduced to pointers.
            let around = around_short(function, ranges);
            let is_short = |local| is_short(ranges.local(function, local));
            let narrow = |local| around.contains(&local) || is_short(local);
            let addresses = address::Addresses::of(module, &reaches, (&narrow, &is_short), (id, function));
            (addresses, address_counters(function, &narrow))
        })
        .collect();
    for (((_, function), ranges), (addresses, kept)) in module.functions.iter_mut().zip(&ranges).zip(addresses) {
        narrow_function(function, ranges, Some(&addresses), kept);
    }
}

fn narrow_function(
    function: &mut Function,
    ranges: &Ranges,
    addresses: Option<&address::Addresses>,
    kept: BTreeSet<LocalId>,
) {
    let is_narrow = |address| addresses.is_some_and(|addresses| addresses.is_narrow(address));
    let (locals, saturated) = narrow_locals(function, ranges, (&is_narrow, addresses.is_some()), &kept);
    let body = std::mem::take(&mut function.body);
    let guard = address::Guard::Outside;
    let mut pass = Narrow { function, ranges, addresses, locals, saturated, kept, guard, before_branch: Block::new() };
    let body = pass.block(body);
    let Narrow { function, locals, .. } = pass;
    for (id, ty) in locals {
        let fits = ranges.local(function, id).fits(Type::I32);
        let local = &mut function.locals[id];
        local.ty = ty;
        // The counter does not reach the maximum of its type.
        local.counts = false;
        local.nonneg &= fits;
    }
    function.body = body;
}

/// The locals that become narrow, and their types: those with values that fit 32 bits, those of which only the lower
/// halves are used, and those that may saturate, which are also returned alone.
fn narrow_locals(
    function: &Function,
    ranges: &Ranges,
    (is_narrow, is_gpu): (&dyn Fn(ExprId) -> bool, bool),
    kept: &BTreeSet<LocalId>,
) -> (BTreeMap<LocalId, Type>, BTreeSet<LocalId>) {
    let mut free: BTreeSet<LocalId> =
        function.locals.iter().filter(|(_, local)| local.ty == Type::I64).map(|(id, _)| id).collect();
    for param in &function.params {
        free.remove(param);
    }
    free.retain(|local| !kept.contains(local));
    // The result of an operation or a call has a fixed type.
    for_each_stmt(&function.body, &mut |stmt| {
        if !matches!(stmt.kind, StmtKind::Assign(..)) {
            for local in stmt.kind.assigned() {
                free.remove(&local);
            }
        }
    });
    let fits = |local: LocalId, ty: Type| ranges.local(function, local).fits(ty);
    let (small, large): (BTreeSet<_>, BTreeSet<_>) = free.into_iter().partition(|local| fits(*local, Type::I32));
    // A counter that saturates at the maximum of its type must retain its type.
    let wrapping = large.iter().copied().filter(|local| !function.locals[*local].counts).collect();
    let halves = halves::lower_halves(function, ranges, is_narrow, wrapping);
    let left = large.iter().copied().filter(|local| is_gpu && !halves.contains(local)).collect();
    let saturated = saturated::saturated_locals(function, ranges, left);
    let is_left = |local: &LocalId| !halves.contains(local) && !saturated.contains(local);
    let unsigned = large.into_iter().filter(|local| is_left(local) && fits(*local, UNSIGNED));
    let mut narrow: BTreeMap<LocalId, Type> = unsigned.map(|local| (local, UNSIGNED)).collect();
    narrow.extend(small.into_iter().chain(halves).chain(saturated.iter().copied()).map(|local| (local, Type::I32)));
    (narrow, saturated)
}

/// Loop counters in addresses of global memory, and their copies. LLVM strength-reduces them to pointers with a
/// constant increment, so narrowing gains nothing; and with a 32-bit counter beside the pointers, ptxas did not group
/// the loads of an unrolled matrix product, which took 1.3 times as long on an H200.
fn address_counters(function: &Function, narrow: &dyn Fn(LocalId) -> bool) -> BTreeSet<LocalId> {
    let mut counters = BTreeSet::new();
    for_each_stmt(&function.body, &mut |stmt| {
        if let StmtKind::Loop { step, .. } = &stmt.kind {
            counters.extend(step.iter().flat_map(|stmt| stmt.kind.assigned()));
        }
    });
    counters.retain(|counter| !narrow(*counter));
    // A copy, and its source.
    let mut copies = Vec::new();
    for_each_stmt(&function.body, &mut |stmt| {
        if let StmtKind::Assign(local, value) = stmt.kind
            && let Some(of) = function.local(value).filter(|of| counters.contains(of))
        {
            copies.push((local, of));
        }
    });
    let addressed = addressed(function, &function.body);
    counters.retain(|counter| {
        addressed.contains(counter) || copies.iter().any(|(copy, of)| of == counter && addressed.contains(copy))
    });
    let kept: Vec<LocalId> = copies.iter().filter(|(_, of)| counters.contains(of)).map(|(copy, _)| *copy).collect();
    counters.extend(kept);
    counters
}

/// The locals in addresses of global memory.
fn addressed(function: &Function, block: &Block) -> BTreeSet<LocalId> {
    let mut found = BTreeSet::new();
    for_each_expr_of_block(function, block, &mut |id| {
        if let Class::Address { base, by, .. } = function.class(id)
            && !address::is_own(function.exprs[base].ty)
        {
            for_each_expr(function, by, &mut |part| found.extend(function.local(part)));
        }
    });
    found
}

/// Counters, and their copies, in addresses of global memory in a short inner loop. LLVM unrolls the inner loop fully,
/// and would then need a pointer for each of many accesses, which exceeds the registers.
fn around_short(function: &Function, ranges: &Ranges) -> BTreeSet<LocalId> {
    let mut in_short = BTreeSet::new();
    for_each_stmt(&function.body, &mut |stmt| {
        if let StmtKind::Loop { body, step } = &stmt.kind
            && let Some(counter) = step.iter().flat_map(|stmt| stmt.kind.assigned()).next()
            && is_short(ranges.local(function, counter))
        {
            in_short.extend([body, step].into_iter().flat_map(|block| addressed(function, block)));
        }
    });
    for_each_stmt(&function.body, &mut |stmt| {
        if let StmtKind::Assign(copy, value) = stmt.kind
            && in_short.contains(&copy)
        {
            in_short.extend(function.local(value));
        }
    });
    in_short
}

/// Whether a counter has so few values that LLVM unrolls its loop fully.
fn is_short(values: Interval) -> bool {
    values.high.saturating_sub(values.low) <= UNROLLED
}

struct Narrow<'a> {
    function: &'a mut Function,
    ranges: &'a Ranges,
    /// The addresses that become narrow; `None` on a CPU, where addresses remain wide.
    addresses: Option<&'a address::Addresses>,
    locals: BTreeMap<LocalId, Type>,
    /// Those of them that hold values [clamped to 32 bits](saturated).
    saturated: BTreeSet<LocalId>,
    /// Values that remain wide although they would fit.
    kept: BTreeSet<LocalId>,
    /// Where the current statement is.
    guard: address::Guard,
    /// Statements to insert before the branch that the current statement is under.
    before_branch: Block,
}

impl Narrow<'_> {
    fn block(&mut self, block: Block) -> Block {
        let (guard, mut all) = (self.guard, Block::with_capacity(block.len()));
        // The branch that the following statements are under, if it leaves the iteration.
        let mut branch = None;
        for (index, stmt) in block.into_iter().enumerate() {
            let is_test = index == 0 && stmt.kind.exit_condition().is_some();
            let leaves = match &stmt.kind {
                StmtKind::If { then, otherwise, .. } if guard == address::Guard::Window && !is_test => {
                    self.guard = address::Guard::Tested;
                    !falls_through(then) || !falls_through(otherwise)
                }
                StmtKind::If { .. }
                | StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => false,
            };
            let at = branch.unwrap_or(all.len());
            if leaves {
                branch = Some(at);
            }
            all.push(self.stmt(stmt));
            if guard != address::Guard::Tested {
                let before = std::mem::take(&mut self.before_branch);
                branch = branch.map(|branch| branch + before.len());
                all.splice(at..at, before);
            }
            self.guard = if branch.is_some() { address::Guard::Tested } else { guard };
        }
        self.guard = guard;
        all
    }

    fn stmt(&mut self, Stmt { kind, span }: Stmt) -> Stmt {
        let kind = match kind {
            StmtKind::Assign(local, value) if self.saturated.contains(&local) => {
                StmtKind::Assign(local, self.saturated(value))
            }
            StmtKind::Assign(local, value) if let Some(&ty) = self.locals.get(&local) => {
                let narrow = self.narrow(value);
                StmtKind::Assign(local, self.as_type(narrow, ty))
            }
            StmtKind::If { cond, then, otherwise } => {
                StmtKind::If { cond: self.wide(cond), then: self.block(then), otherwise: self.block(otherwise) }
            }
            StmtKind::Loop { body, step } => {
                let guard = self.guard;
                self.guard = self.addresses.map_or(guard, |addresses| addresses.inside(guard, &step));
                let body = self.block(body);
                self.guard = guard;
                StmtKind::Loop { body, step: self.block(step) }
            }
            kind @ (StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_)) => kind.map_exprs(&mut |id| self.wide(id)),
        };
        Stmt { kind, span }
    }

    fn ty(&self, id: ExprId) -> Type {
        self.function.exprs[id].ty
    }

    fn span(&self, id: ExprId) -> Span {
        self.function.exprs[id].span
    }

    fn push(&mut self, kind: ExprKind, ty: Type, span: Span) -> ExprId {
        self.function.exprs.push(Expr { kind, ty, span })
    }

    /// A 32-bit integer as another 32-bit type.
    fn as_type(&mut self, id: ExprId, ty: Type) -> ExprId {
        let span = self.span(id);
        if self.ty(id) == ty { id } else { self.push(ExprKind::Convert(id), ty, span) }
    }

    /// The range of an original expression.
    fn range(&self, id: ExprId) -> Interval {
        let here = self.ranges.expr(self.function, id);
        match self.function.local(id) {
            Some(local) => here.meet(self.ranges.local(self.function, local)),
            None => here,
        }
    }

    /// Whether an original expression is 64 bits wide and its value fits 32.
    fn fits(&self, id: ExprId) -> bool {
        self.ty(id) == Type::I64 && self.range(id).fits(Type::I32)
    }

    /// Whether an expression is a [wide](Self::kept) counter, or a sum or product with one.
    fn goes_with_counter(&self, id: ExprId) -> bool {
        match self.function.class(id) {
            Class::Leaf(Leaf::Local(local)) => self.kept.contains(&local),
            Class::Arith(Arith::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, a, b)) => {
                self.goes_with_counter(a) || self.goes_with_counter(b)
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
        }
    }

    /// Whether an expression is a sum or similar operation of [wide](Self::kept) values or of thread indices.
    fn is_wide(&self, id: ExprId) -> bool {
        wide_values::is_wide(self.function, &self.kept, id)
    }

    /// The expression with its own type; its operands are narrowed.
    fn wide(&mut self, id: ExprId) -> ExprId {
        if self.addresses.is_none() && self.is_wide(id) {
            return self.rebuilt(id);
        }
        let span = self.span(id);
        match self.function.class(id) {
            Class::Leaf(Leaf::Local(local)) if let Some(&ty) = self.locals.get(&local) => {
                let narrow = self.push(ExprKind::Local(local), ty, span);
                self.push(ExprKind::Convert(narrow), Type::I64, span)
            }
            Class::Leaf(_) => id,
            // A conversion that only extends remains one.
            Class::Arith(Arith::Convert(from)) if self.ty(id) == Type::I64 && self.ty(from) != Type::I64 => {
                self.rebuilt(id)
            }
            Class::Arith(Arith::Convert(from))
                if self.fits(from) || (self.ty(from) == Type::I64 && keeps_lower_half(self.ty(id))) =>
            {
                let (narrow, ty) = (self.narrow(from), self.ty(id));
                self.as_type(narrow, ty)
            }
            Class::Arith(Arith::Compare(op, a, b))
                if self.fits(a) && self.fits(b) && !self.goes_with_counter(a) && !self.goes_with_counter(b) =>
            {
                let (a, b) = (self.narrow(a), self.narrow(b));
                self.push(ExprKind::Compare(op, a, b), Type::BOOL, span)
            }
            Class::Arith(Arith::Compare(op, a, b))
                if self.compares(a, b) && !self.goes_with_counter(a) && !self.goes_with_counter(b) =>
            {
                let compared = self.compared(op, a, b);
                self.push(compared, Type::BOOL, span)
            }
            Class::Arith(arith) if self.fits(id) && self.gains(id, arith) && !self.goes_with_counter(id) => {
                let narrow = self.narrow(id);
                self.push(ExprKind::Convert(narrow), Type::I64, span)
            }
            Class::Address { base, by, .. } => self.address(id, base, by),
            Class::Arith(_) | Class::Load(_) => self.rebuilt(id),
        }
    }

    /// The same operation on narrowed operands.
    fn rebuilt(&mut self, id: ExprId) -> ExprId {
        let kind = self.function.exprs[id].kind.clone().map_operands(&mut |operand| self.wide(operand));
        self.function.exprs[id].kind = kind;
        id
    }

    /// The lower 32 bits of a 64-bit expression, computed in 32 bits if possible; its value if it [`fits`](Self::fits).
    fn narrow(&mut self, id: ExprId) -> ExprId {
        let span = self.span(id);
        if self.addresses.is_none() && self.is_wide(id) {
            let wide = self.rebuilt(id);
            return self.push(ExprKind::Convert(wide), Type::I32, span);
        }
        let kind = match self.function.class(id) {
            Class::Leaf(Leaf::Const(Const::Int(value))) => ExprKind::Const(Const::Int(i128::from(value as i32))),
            Class::Leaf(Leaf::Local(local)) if let Some(&ty) = self.locals.get(&local) => {
                let narrow = self.push(ExprKind::Local(local), ty, span);
                return self.as_type(narrow, Type::I32);
            }
            Class::Arith(Arith::Convert(from)) if self.ty(from) == Type::I32 => return self.wide(from),
            // An extended integer has the lower half of its operand. A float whose integer value fits converts to the
            // same 32-bit value.
            Class::Arith(Arith::Convert(from)) if is_int(self.ty(from)) || self.fits(id) => {
                ExprKind::Convert(self.wide(from))
            }
            Class::Arith(Arith::Binary(op, a, b)) => match self.narrow_op(id, op, a, b) {
                None if self.clamps(id, op, a, b) => self.clamped(op, a, b),
                Some(op) => ExprKind::Binary(op, self.narrow(a), self.narrow(b)),
                None => ExprKind::Convert(self.rebuilt(id)),
            },
            Class::Arith(Arith::Unary(op @ (UnaryOp::Neg | UnaryOp::Not), a)) => ExprKind::Unary(op, self.narrow(a)),
            Class::Arith(Arith::Unary(op @ UnaryOp::Abs, a)) if self.fits(a) && self.fits(id) => {
                ExprKind::Unary(op, self.narrow(a))
            }
            Class::Arith(Arith::Select(cond, a, b)) => {
                ExprKind::Select(self.wide(cond), self.narrow(a), self.narrow(b))
            }
            Class::Arith(Arith::Wrap { index, extent }) if self.fits(index) => {
                ExprKind::Wrap { index: self.narrow(index), extent: self.narrow(extent) }
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => {
                ExprKind::Convert(self.rebuilt(id))
            }
        };
        self.push(kind, Type::I32, span)
    }

    /// Whether narrowing makes the operation itself narrow, instead of only truncating its result.
    fn gains(&self, id: ExprId, arith: Arith<'_>) -> bool {
        match arith {
            Arith::Binary(op, a, b) => self.narrow_op(id, op, a, b).is_some() || self.clamps(id, op, a, b),
            Arith::Unary(UnaryOp::Abs, a) | Arith::Wrap { index: a, .. } => self.fits(a),
            Arith::Unary(UnaryOp::Neg | UnaryOp::Not, _) | Arith::Select(..) => true,
            Arith::Compare(..) | Arith::Convert(_) | Arith::Math(..) => false,
        }
    }

    /// The 32-bit operator that computes the lower half of `a op b`, if there is one.
    fn narrow_op(&self, id: ExprId, op: BinaryOp, a: ExprId, b: ExprId) -> Option<BinaryOp> {
        let whole = self.fits(id) && self.fits(a) && self.fits(b);
        let small_amount = self.range(b).within(Interval::new(0, 31));
        let fine = match op {
            BinaryOp::Add | BinaryOp::AddExact => {
                return Some(if whole { BinaryOp::AddExact } else { BinaryOp::Add });
            }
            BinaryOp::Sub | BinaryOp::SubExact => {
                return Some(if whole { BinaryOp::SubExact } else { BinaryOp::Sub });
            }
            BinaryOp::Mul | BinaryOp::MulExact => {
                return Some(if whole { BinaryOp::MulExact } else { BinaryOp::Mul });
            }
            // The lower half of the result depends only on the lower halves of the operands.
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => true,
            BinaryOp::Shl => small_amount,
            BinaryOp::Shr => small_amount && self.fits(a),
            BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::FloorDiv
            | BinaryOp::FloorMod
            | BinaryOp::DivNonneg
            | BinaryOp::ModNonneg => whole,
            BinaryOp::Pow | BinaryOp::Div => false,
        };
        fine.then_some(op)
    }
}

/// Whether the conversion of a 64-bit integer to a type depends only on its lower half.
fn keeps_lower_half(to: Type) -> bool {
    to.scalar().is_some_and(|scalar| scalar.is_int() && scalar.size_bytes() <= 4)
}

fn is_int(ty: Type) -> bool {
    ty.scalar().is_some_and(Scalar::is_int)
}
