//! Array privatization: each worker thread accumulates in a private copy of an array's first elements, and combines the
//! copy with the array at the end.
//!
//! ```text
//! atomic add $bins.data[$i], 1        $t = $i
//!                                     if uint64($t) < 8192 {
//!                                         atomic add @bins.data[$t], 1
//!                                     } else {
//!                                         atomic add $bins.data[$t], 1
//!                                     }
//! ```
//!
//! The emitter fills the copies with the neutral element before the worker's first block. After its last block, it
//! executes one atomic operation for each element that is no longer neutral.
//!
//! Legal for arrays that the kernel only accumulates into, if the launch assumes that no other argument shares memory
//! with them ([`only_accumulated`]): no thread observes the elements, or the order of the operations, while the kernel
//! runs.
//!
//! Profitable because only one CPU thread accesses a copy, so that atomic operations on it are plain loads and stores.
//! The copies are small enough for the L1 cache.

use weft_artifact::Scalar;

use crate::{
    analysis::{Interval, Ranges, Rematerializable, any_expr, only_accumulated},
    backend::host::plan::plan_ir::{COMBINED_ELEMENTS, Privatized},
    ir::{
        Accumulation, BinaryOp, Block, Class, CompareOp, Const, Expr, ExprId, ExprKind, Function, Leaf, Local, LocalId,
        LocalKind, Module, Op, SharedArray, SharedKind, Space, Stmt, StmtKind, Type, for_each_stmt,
    },
    source::Span,
};

/// Largest size of a copy in bytes.
const MAX_BYTES: u64 = 32 << 10;

/// An atomic operation of the kernel.
struct Site {
    param: LocalId,
    element: Scalar,
    accumulation: Accumulation,
    /// The terms of the index, each of type `I64` and with a constant factor.
    index: Vec<(ExprId, u32)>,
    /// The range of the index.
    range: Interval,
}

/// Analyses of the body.
struct Known {
    fixed: Rematerializable,
    ranges: Ranges,
}

/// Privatizes the arrays of the module's kernel, whose body the caller has taken out of the function.
pub(crate) fn rewrite(module: &mut Module, function: &mut Function, body: &mut Block) -> Vec<Privatized> {
    let accumulated: Vec<LocalId> = only_accumulated(module)
        .into_iter()
        .flat_map(|only| function.params.iter().copied().zip(only))
        .filter_map(|(param, only)| legal!("privatize.only-accumulated", only).then_some(param))
        .collect();
    let Some(kernel) = module.kernel.filter(|_| !accumulated.is_empty()) else { return Vec::new() };
    let known =
        Known { fixed: Rematerializable::of(function, body), ranges: Ranges::of(module).swap_remove(kernel.index()) };
    let mut found: Vec<Privatized> = Vec::new();
    for_each_stmt(body, &mut |stmt| {
        let site = known.site(function, &stmt.kind).filter(|site| accumulated.contains(&site.param));
        let Some(Site { param, element, accumulation, range, .. }) = site else { return };
        let most = MAX_BYTES / element.size_bytes();
        let len = length(range, most).unwrap_or(most);
        if let Some(one) = found.iter_mut().find(|one| one.param == param) {
            one.len = one.len.max(len);
            module.shared[one.array].len = one.len;
            return;
        }
        let (name, span) = (function.locals[param].name.clone(), function.span);
        let array = SharedArray {
            name,
            kind: SharedKind::Privatized,
            elem: element,
            len,
            shape: Vec::new(),
            align: COMBINED_ELEMENTS * element.size_bytes(),
            span,
        };
        found.push(Privatized { param, element, array: module.shared.push(array), len, accumulation });
    });
    *body = replaced(function, &known, &found, std::mem::take(body));
    found
}

/// The length of a copy that contains a range of indices; `None` if it would be too long.
fn length(range: Interval, most: u64) -> Option<u64> {
    let last = u64::try_from(range.high).ok().filter(|last| range.low >= 0 && *last < most)?;
    Some((last + 1).next_multiple_of(COMBINED_ELEMENTS))
}

impl Known {
    /// Matches an atomic operation that accumulates in an array parameter.
    fn site(&self, function: &Function, stmt: &StmtKind) -> Option<Site> {
        let StmtKind::Op { op: Op::Atomic { op, .. }, args, .. } = stmt else { return None };
        let mut at = *args.first()?;
        let Type::Ptr(element, _) = function.exprs[at].ty else { return None };
        let accumulation = Accumulation::of(*op, element)?;
        let (mut index, mut range) = (Vec::new(), Interval::of(0));
        loop {
            match function.exprs[at].kind {
                ExprKind::Offset { base, index: by, scale } if function.exprs[by].ty == Type::I64 => {
                    let along = self.ranges.expr(function, by).times(Interval::of(i128::from(scale)));
                    range = range.plus(along);
                    index.push((by, scale));
                    at = base;
                }
                ExprKind::Local(local) => match self.fixed.value(local) {
                    Some(value) => at = value,
                    None => return Some(Site { param: local, element, accumulation, index, range }),
                },
                ExprKind::Const(_)
                | ExprKind::Special(_)
                | ExprKind::SharedBase(_)
                | ExprKind::ConstBase(_)
                | ExprKind::DynamicShared
                | ExprKind::LocalBase(_)
                | ExprKind::Unary(..)
                | ExprKind::Binary(..)
                | ExprKind::Compare(..)
                | ExprKind::Select(..)
                | ExprKind::Convert(_)
                | ExprKind::Math(..)
                | ExprKind::Wrap { .. }
                | ExprKind::Offset { .. }
                | ExprKind::ByteOffset { .. }
                | ExprKind::Load(..) => return None,
            }
        }
    }
}

/// Replaces the operations on privatized arrays in a body.
fn replaced(function: &mut Function, known: &Known, found: &[Privatized], body: Block) -> Block {
    let mut done = Block::with_capacity(body.len());
    for mut stmt in body {
        let site = known.site(function, &stmt.kind);
        let one = site.as_ref().and_then(|site| found.iter().find(|one| one.param == site.param));
        match &mut stmt.kind {
            StmtKind::Op { op, args, .. } => {
                if let (Some(site), Some(one)) = (site, one) {
                    done.extend(Step { function, one, op: *op, span: stmt.span }.replaced(&site, args));
                    continue;
                }
            }
            StmtKind::If { then, otherwise, .. } => {
                for arm in [then, otherwise] {
                    *arm = replaced(function, known, found, std::mem::take(arm));
                }
            }
            StmtKind::Loop { body, step } => {
                for part in [body, step] {
                    *part = replaced(function, known, found, std::mem::take(part));
                }
            }
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Call { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => {}
        }
        done.push(stmt);
    }
    done
}

/// If-conversion of operations on a copy: if a loaded value decides whether one integer is added to an element at a
/// constant index, all threads execute the addition, and those for which the condition is false add 0. Such a branch
/// would often be mispredicted.
pub(crate) fn without_branches(function: &mut Function, found: &[Privatized], body: &mut Block) {
    if found.is_empty() {
        return;
    }
    let fixed = Rematerializable::of(function, body);
    always(function, &fixed, found, body);
}

fn always(function: &mut Function, fixed: &Rematerializable, found: &[Privatized], body: &mut Block) {
    for stmt in body {
        let span = stmt.span;
        if let StmtKind::If { cond, then, otherwise } = &mut stmt.kind
            && legal!("privatize.no-else", otherwise.is_empty())
            && let [Stmt { kind: step @ StmtKind::Op { .. }, .. }] = then.as_mut_slice()
            && adds_to_one(function, found, step)
            && is_loaded(function, fixed, *cond)
            && let StmtKind::Op { args, .. } = step
        {
            let ty = function.exprs[args[1]].ty;
            let nothing = function.exprs.push(Expr { kind: ExprKind::Const(Const::Int(0)), ty, span });
            let kind = ExprKind::Select(*cond, args[1], nothing);
            args[1] = function.exprs.push(Expr { kind, ty, span });
            stmt.kind = step.clone();
            continue;
        }
        match &mut stmt.kind {
            StmtKind::If { then: one, otherwise: other, .. } | StmtKind::Loop { body: one, step: other } => {
                always(function, fixed, found, one);
                always(function, fixed, found, other);
            }
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => {}
        }
    }
}

/// Whether a statement adds a constant or a local to an element of a copy at a constant index, where 0 is the neutral
/// element.
fn adds_to_one(function: &Function, found: &[Privatized], step: &StmtKind) -> bool {
    let StmtKind::Op { op: Op::Atomic { .. }, args, .. } = step else { return false };
    let &[pointer, value] = args.as_slice() else { return false };
    let ExprKind::Offset { base, index, .. } = function.exprs[pointer].kind else { return false };
    let is_leaf = |id| matches!(function.class(id), Class::Leaf(Leaf::Const(_) | Leaf::Local(_)));
    let adds = |one: &Privatized| {
        let zero_is_nothing = match one.accumulation {
            Accumulation::Sum | Accumulation::Or | Accumulation::Xor => one.element.is_int(),
            Accumulation::And | Accumulation::Max | Accumulation::Min => false,
        };
        legal!("privatize.neutral-zero", zero_is_nothing)
            && legal!("privatize.copy", function.exprs[base].kind == ExprKind::SharedBase(one.array))
    };
    legal!("privatize.constant-index", function.int(index).is_some())
        && legal!("privatize.plain-value", is_leaf(value))
        && found.iter().any(adds)
}

/// Whether a condition depends on memory: it has a load, or reads a local that is neither a parameter nor
/// rematerializable.
fn is_loaded(function: &Function, fixed: &Rematerializable, cond: ExprId) -> bool {
    any_expr(function, cond, &|kind| match kind {
        ExprKind::Load(..) => true,
        ExprKind::Local(local) => fixed.value(*local).is_none() && !function.params.contains(local),
        ExprKind::Const(_)
        | ExprKind::Special(_)
        | ExprKind::SharedBase(_)
        | ExprKind::ConstBase(_)
        | ExprKind::DynamicShared
        | ExprKind::LocalBase(_)
        | ExprKind::Unary(..)
        | ExprKind::Binary(..)
        | ExprKind::Compare(..)
        | ExprKind::Select(..)
        | ExprKind::Convert(_)
        | ExprKind::Math(..)
        | ExprKind::Wrap { .. }
        | ExprKind::Offset { .. }
        | ExprKind::ByteOffset { .. } => false,
    })
}

/// An operation that is being replaced.
struct Step<'a> {
    function: &'a mut Function,
    one: &'a Privatized,
    op: Op,
    span: Span,
}

impl Step<'_> {
    fn push(&mut self, kind: ExprKind, ty: Type) -> ExprId {
        self.function.edit(self.span).expr(kind, ty)
    }

    fn stmt(&self, kind: StmtKind) -> Stmt {
        Stmt { kind, span: self.span }
    }

    fn replaced(mut self, site: &Site, args: &[ExprId]) -> Vec<Stmt> {
        let index = self.index(&site.index);
        let copy = ExprKind::SharedBase(self.one.array);
        let is_in_copy = site.range.low >= 0 && site.range.high < i128::from(self.one.len);
        if legal!("privatize.index-in-copy", is_in_copy) {
            return vec![self.on(copy, Space::Shared, index, args)];
        }
        // The index is evaluated once: memory that it loads from may change.
        let local = self.function.locals.push(Local::new("t", LocalKind::Temp, Type::I64));
        let [asked, of_copy, of_array] = [(); 3].map(|()| self.push(ExprKind::Local(local), Type::I64));
        let number = self.push(ExprKind::Convert(asked), Type::Scalar(Scalar::U64));
        let len = self.push(ExprKind::Const(Const::Int(self.one.len.into())), Type::Scalar(Scalar::U64));
        let cond = self.push(ExprKind::Compare(CompareOp::Lt, number, len), Type::BOOL);
        let then = vec![self.on(copy, Space::Shared, of_copy, args)];
        let otherwise = vec![self.on(ExprKind::Local(self.one.param), Space::Global, of_array, args)];
        vec![self.stmt(StmtKind::Assign(local, index)), self.stmt(StmtKind::If { cond, then, otherwise })]
    }

    /// Sums the terms of the index.
    fn index(&mut self, parts: &[(ExprId, u32)]) -> ExprId {
        let mut sum = None;
        for &(part, scale) in parts {
            let mut part = part;
            if scale != 1 {
                let scale = self.push(ExprKind::Const(Const::Int(scale.into())), Type::I64);
                part = self.push(ExprKind::Binary(BinaryOp::Mul, part, scale), Type::I64);
            }
            sum = Some(match sum {
                None => part,
                Some(sum) => self.push(ExprKind::Binary(BinaryOp::Add, sum, part), Type::I64),
            });
        }
        sum.unwrap_or_else(|| self.push(ExprKind::Const(Const::Int(0)), Type::I64))
    }

    /// The operation on an element of an array.
    fn on(&mut self, base: ExprKind, space: Space, index: ExprId, args: &[ExprId]) -> Stmt {
        let ty = Type::Ptr(self.one.element, space);
        let base = self.push(base, ty);
        let mut args = args.to_vec();
        args[0] = self.push(ExprKind::Offset { base, index, scale: 1 }, ty);
        self.stmt(StmtKind::Op { op: self.op, args, results: Vec::new() })
    }
}
