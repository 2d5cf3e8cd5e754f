//! Bounds-checks the stores of one function.

use std::collections::BTreeMap;

use weft_artifact::{Scalar, SlotField};

use super::{
    Bounds, Summary,
    element_addresses::ElementAddress,
    proven_indices::ProvenIndices,
    roots::{Arrays, Root, root_of, roots},
    store_waits::ends_by_memory,
};
use crate::{
    ir::{
        BinaryOp, Block, CompareOp, Const, Expr, ExprId, ExprKind, FuncId, Function, Local, LocalId, LocalKind, Memory,
        Module, Op, Stmt, StmtKind, Type, falls_through, for_each_stmt,
    },
    passes::prove_nonneg::is_nonneg,
    source::Span,
};

/// The type of addresses and numbers of bytes.
const WORD: Type = Type::Scalar(Scalar::U64);

/// A local that points to an element, and its bounds.
#[derive(Clone, Copy)]
struct Element {
    /// The local that is true if the element is in bounds; `None` if this is proven.
    inside: Option<LocalId>,
    bytes: i128,
}

/// The condition of a store.
enum Check {
    /// No condition: the address is proven to be in bounds, or the memory is private.
    None,
    /// This condition.
    If(ExprId),
}

/// Bounds-checks the stores of a function.
pub(super) struct Writer<'a> {
    summaries: &'a [Summary],
    pub(super) function: Function,
    pub(super) arrays: Arrays,
    roots: Vec<Root>,
    /// How often each local is assigned.
    assigned: Vec<u32>,
    /// Locals through which the function stores, at a constant offset.
    written: Vec<bool>,
    elements: BTreeMap<LocalId, Element>,
    bounds: Bounds,
    proven: ProvenIndices,
    /// The number of stores visited that may be out of bounds.
    unproven: u32,
}

impl<'a> Writer<'a> {
    /// A writer for a function whose callees have these summaries; `None` if the function has a store that cannot be
    /// bounds-checked.
    pub(super) fn new(
        module: &'a Module,
        function: Function,
        arrays: Arrays,
        summaries: &'a [Summary],
    ) -> Option<Self> {
        let roots = roots(module, &function, summaries);
        let mut assigned = vec![0; function.locals.len()];
        let mut known = true;
        for_each_stmt(&function.body, &mut |stmt| {
            stmt.kind.assigned().into_iter().for_each(|local| assigned[LocalId::index(local)] += 1);
            if let StmtKind::Op { op, .. } = &stmt.kind {
                // A copy writes more than the element that its pointer points to.
                known &= op.row().memory != Memory::All && !matches!(op, Op::AsyncCopy(copy) if copy.is_store());
            }
        });
        let params = known && function.params.iter().all(|param| assigned[param.index()] == 0);
        let written = Vec::new();
        let (elements, bounds, proven) = (BTreeMap::new(), Bounds::default(), ProvenIndices::default());
        params.then_some(Self {
            summaries,
            function,
            arrays,
            roots,
            assigned,
            written,
            elements,
            bounds,
            proven,
            unproven: 0,
        })
    }

    /// The function with its stores bounds-checked; `None` if a store cannot be checked.
    pub(super) fn bound_stores(mut self) -> Option<(Function, Summary)> {
        let params = self.function.params.clone();
        self.note_written();
        let body = std::mem::take(&mut self.function.body);
        let mut results = vec![Root::None; self.function.results.len()];
        for_each_stmt(&body, &mut |stmt| {
            let StmtKind::Return(values) = &stmt.kind else { return };
            for (result, value) in results.iter_mut().zip(values) {
                *result = result.join(root_of(&self.function, &self.roots, *value));
            }
        });
        self.function.body = self.block(body)?;
        let bounded = self.bounds.order.iter().map(|data| params.iter().position(|param| param == data));
        let bounded = bounded.collect::<Option<Vec<_>>>()?;
        let summary = Summary { bounded, unproven: self.unproven > 0, results, params };
        Some((self.function, summary))
    }

    /// Marks the locals through which the function stores.
    fn note_written(&mut self) {
        let mut written = vec![false; self.function.locals.len()];
        let body = &self.function.body;
        for_each_stmt(body, &mut |stmt| {
            for pointer in self.written_by(&stmt.kind) {
                if let Some(local) = self.function.local(self.peel(pointer).0) {
                    written[local.index()] = true;
                }
            }
        });
        // Including copies of pointers, which come after their sources.
        loop {
            let before = written.clone();
            for_each_stmt(body, &mut |stmt| {
                if let StmtKind::Assign(local, value) = stmt.kind
                    && written[local.index()]
                    && let Some(source) = self.function.local(self.peel(value).0)
                {
                    written[source.index()] = true;
                }
            });
            if written == before {
                break;
            }
        }
        self.written = written;
    }

    /// The pointers that a statement itself stores through.
    fn written_by(&self, kind: &StmtKind) -> Vec<ExprId> {
        match kind {
            StmtKind::Store { pointer, .. } => vec![*pointer],
            StmtKind::Op { op, args, .. } if op.row().memory.writes() => {
                let is_pointer = |arg: &ExprId| matches!(self.function.exprs[*arg].ty, Type::Ptr(..));
                op.accessed(args).1.iter().copied().filter(is_pointer).collect()
            }
            StmtKind::Assign(..)
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => Vec::new(),
        }
    }

    fn block(&mut self, block: Block) -> Option<Block> {
        let mut out = Block::with_capacity(block.len());
        for stmt in block {
            self.stmt(stmt, &mut out)?;
        }
        Some(out)
    }

    fn stmt(&mut self, Stmt { kind, span }: Stmt, out: &mut Block) -> Option<()> {
        let kind = match kind {
            StmtKind::Assign(local, value) => {
                self.note_element(local, value, span, out);
                self.proven.assign(&mut self.function, local, value);
                StmtKind::Assign(local, value)
            }
            StmtKind::Store { pointer, value, align } => match self.check(pointer, span, out)? {
                Check::None => StmtKind::Store { pointer, value, align },
                Check::If(cond) => {
                    // Reading past an array's end is allowed: without a condition LLVM can vectorize the load.
                    self.once(value, span, out);
                    let store = Stmt { kind: StmtKind::Store { pointer, value, align }, span };
                    // The parts of an element share one condition, and their values are computed before the first of
                    // them is stored.
                    if let Some(Stmt { kind: StmtKind::If { cond: before, then, otherwise }, .. }) = out.last_mut()
                        && otherwise.is_empty()
                        && self.function.local(cond).is_some()
                        && self.function.local(*before) == self.function.local(cond)
                    {
                        then.push(store);
                        return Some(());
                    }
                    let then = vec![store];
                    StmtKind::If { cond, then, otherwise: Block::new() }
                }
            },
            StmtKind::Op { op, results, args } => self.op(StmtKind::Op { op, results, args }, span, out)?,
            StmtKind::Call { results, func, args } => self.call(results, func, args, span)?,
            StmtKind::If { cond, then, otherwise } => self.branch(cond, then, otherwise)?,
            StmtKind::Loop { body, step } => self.bound_loop(body, step)?,
            other @ (StmtKind::Break | StmtKind::Continue | StmtKind::Return(_)) => other,
        };
        out.push(Stmt { kind, span });
        Some(())
    }

    fn op(&mut self, kind: StmtKind, span: Span, out: &mut Block) -> Option<StmtKind> {
        let pointers = self.written_by(&kind);
        let assigned = kind.assigned();
        let check = match pointers.as_slice() {
            [] => Check::None,
            [pointer] => self.check(*pointer, span, out)?,
            _ => return None,
        };
        self.proven.forget(&self.function, &assigned);
        let Check::If(cond) = check else { return Some(kind) };
        // The result of an out-of-bounds atomic operation is zero.
        let mut otherwise = Block::new();
        for local in assigned {
            let ty = self.function.locals[local].ty;
            let zero = match ty {
                Type::Scalar(Scalar::Bool) => Const::Bool(false),
                Type::Scalar(scalar) if scalar.is_float() => Const::Float(0.0),
                Type::Scalar(_) => Const::Int(0),
                Type::Ptr(..) => Const::Null,
            };
            let zero = self.expr(ExprKind::Const(zero), ty, span);
            otherwise.push(Stmt { kind: StmtKind::Assign(local, zero), span });
        }
        Some(StmtKind::If { cond, then: vec![Stmt { kind, span }], otherwise })
    }

    /// Passes the bounds of the arguments to a callee.
    fn call(&mut self, results: Vec<LocalId>, func: FuncId, mut args: Vec<ExprId>, span: Span) -> Option<StmtKind> {
        let summary = self.summaries.get(func.index())?;
        self.unproven += u32::from(summary.unproven);
        for place in &summary.bounded {
            let bounds = match root_of(&self.function, &self.roots, *args.get(*place)?) {
                Root::Unknown => return None,
                Root::Param(data) => {
                    let bounds = self.bounds.get(&mut self.function, data);
                    bounds.map(ExprKind::Local)
                }
                Root::None | Root::Own => SlotField::BOUNDS.map(|field| {
                    let all = field.no_bound();
                    let is_word = field.bound_type() == Some(Scalar::U64);
                    let all = if is_word { i128::from(all) } else { i128::from(all.cast_signed()) };
                    ExprKind::Const(Const::Int(all))
                }),
            };
            for (bound, field) in bounds.into_iter().zip(SlotField::BOUNDS) {
                let ty = Type::Scalar(field.bound_type()?);
                args.push(self.expr(bound, ty, span));
            }
        }
        self.proven.forget(&self.function, &results);
        Some(StmtKind::Call { results, func, args })
    }

    fn branch(&mut self, cond: ExprId, then: Block, otherwise: Block) -> Option<StmtKind> {
        let before = self.proven.clone();
        let assigned = assigned(&[&then, &otherwise]);
        let goes_on = [falls_through(&then), falls_through(&otherwise)];
        self.proven.assume(&self.function, cond, true);
        let flags = falsified(&self.function, &otherwise);
        let then = self.block(then)?;
        let behind_then = std::mem::replace(&mut self.proven, before.clone());
        self.proven.assume(&self.function, cond, false);
        let otherwise = self.block(otherwise)?;
        self.proven = before;
        match goes_on {
            [true, true] => {}
            [goes_on, _] => self.proven.assume(&self.function, cond, goes_on),
        }
        let cond_before = self.proven.clone();
        self.proven.forget(&self.function, &assigned);
        for flag in flags {
            self.proven.join(&self.function, &cond_before, cond, &behind_then, flag, &assigned);
        }
        Some(StmtKind::If { cond, then, otherwise })
    }

    fn bound_loop(&mut self, body: Block, step: Block) -> Option<StmtKind> {
        let assigned = assigned(&[&body, &step]);
        self.proven.forget(&self.function, &assigned);
        let before = (self.proven.clone(), self.unproven);
        let ends_by_memory = ends_by_memory(&self.function, &body, &step);
        let body = self.block(body)?;
        self.proven = before.0.clone();
        let step = self.block(step)?;
        self.proven = before.0;
        let may_stay = ends_by_memory && self.unproven > before.1;
        (!may_stay).then_some(StmtKind::Loop { body, step })
    }

    /// The condition of a store through a pointer. If there is one, the pointer is read from a local from now on.
    fn check(&mut self, pointer: ExprId, span: Span, out: &mut Block) -> Option<Check> {
        let root = match root_of(&self.function, &self.roots, pointer) {
            Root::Unknown => return None,
            Root::None | Root::Own => return Some(Check::None),
            Root::Param(data) => data,
        };
        let size = self.size(pointer);
        let (base, offset) = self.peel(pointer);
        let known = self.function.local(base).and_then(|local| self.elements.get(&local)).copied();
        if let Some(Element { inside, bytes }) = known
            && offset >= 0
            && offset + size <= bytes
        {
            let Some(inside) = inside else { return Some(Check::None) };
            self.unproven += 1;
            return Some(Check::If(self.expr(ExprKind::Local(inside), Type::BOOL, span)));
        }
        let place = self.place(pointer).filter(|place| place.offset >= 0 && place.offset + size <= place.bytes);
        let Some(cond) = self.is_inside(pointer, root, place, size, span, out) else { return Some(Check::None) };
        self.unproven += 1;
        Some(Check::If(cond))
    }

    /// The condition that `n` bytes from a pointer on are in the memory of its array; `None` if this is proven.
    fn is_inside(
        &mut self,
        pointer: ExprId,
        root: LocalId,
        place: Option<ElementAddress>,
        size: i128,
        span: Span,
        out: &mut Block,
    ) -> Option<ExprId> {
        let mut indices = None;
        if let Some(place) = place.filter(|place| place.data == root) {
            let proven = std::mem::take(&mut self.proven);
            let mut dims = place.dims;
            dims.retain(|(index, extent)| !proven.is_inside(&self.function, *index, *extent));
            self.proven = proven;
            if dims.is_empty() {
                return None;
            }
            if let Some(number) = place.number {
                return Some(self.is_within(number, root, span, out));
            }
            for (index, extent) in dims {
                self.once(index, span, out);
                let index = self.again(index);
                let index = self.expr(ExprKind::Convert(index), WORD, span);
                let extent = self.expr(ExprKind::Local(extent), Type::I64, span);
                let extent = self.expr(ExprKind::Convert(extent), WORD, span);
                let below = self.expr(ExprKind::Compare(CompareOp::Lt, index, extent), Type::BOOL, span);
                indices = Some(self.both(BinaryOp::And, indices, below, span));
            }
        }
        self.once(pointer, span, out);
        let [start, room, _, _] = self.bounds.get(&mut self.function, root);
        let at = self.again(pointer);
        let at = self.expr(ExprKind::Convert(at), WORD, span);
        let [start, room] = [start, room].map(|local| self.expr(ExprKind::Local(local), WORD, span));
        let from_start = self.expr(ExprKind::Binary(BinaryOp::Sub, at, start), WORD, span);
        let size = self.expr(ExprKind::Const(Const::Int(size)), WORD, span);
        let last = self.expr(ExprKind::Binary(BinaryOp::Sub, room, size), WORD, span);
        let address = self.expr(ExprKind::Compare(CompareOp::Le, from_start, last), Type::BOOL, span);
        Some(self.both(BinaryOp::Or, indices, address, span))
    }

    /// The condition that an element's linear index may be stored to.
    fn is_within(&mut self, number: ExprId, root: LocalId, span: Span, out: &mut Block) -> ExprId {
        let nonneg = is_nonneg(&self.function, number);
        self.once(number, span, out);
        let [_, _, least, limit] = self.bounds.get(&mut self.function, root);
        let [least, limit] = [least, limit].map(|local| self.expr(ExprKind::Local(local), Type::I64, span));
        let at = self.again(number);
        let below = self.expr(ExprKind::Compare(CompareOp::Lt, at, limit), Type::BOOL, span);
        if nonneg {
            return below;
        }
        let at = self.again(number);
        let above = self.expr(ExprKind::Compare(CompareOp::Ge, at, least), Type::BOOL, span);
        self.expr(ExprKind::Binary(BinaryOp::And, above, below), Type::BOOL, span)
    }

    fn both(&mut self, op: BinaryOp, one: Option<ExprId>, other: ExprId, span: Span) -> ExprId {
        match one {
            None => other,
            Some(one) => self.expr(ExprKind::Binary(op, one, other), Type::BOOL, span),
        }
    }

    /// At an assignment of an element's address to a local, computes once whether the element is in bounds.
    fn note_element(&mut self, local: LocalId, value: ExprId, span: Span, out: &mut Block) {
        let is_sole = self.assigned[local.index()] == 1 && self.written[local.index()];
        if !is_sole || !matches!(self.function.locals[local].ty, Type::Ptr(..)) {
            return;
        }
        let (base, offset) = self.peel(value);
        if let Some(of) = self.function.local(base)
            && self.assigned[of.index()] == 1
            && let Some(known) = self.elements.get(&of).copied()
        {
            if offset == 0 {
                // The value of the source may change before the use.
                let inside = known.inside.map(|inside| {
                    let value = self.expr(ExprKind::Local(inside), Type::BOOL, span);
                    self.note_inside(local, value, span, out)
                });
                self.elements.insert(local, Element { inside, ..known });
            }
            return;
        }
        let Some(place) = self.place(value).filter(|place| place.offset == 0) else { return };
        let (Root::Param(root), bytes) = (root_of(&self.function, &self.roots, value), place.bytes) else { return };
        let inside = self
            .is_inside(value, root, Some(place), bytes, span, out)
            .map(|cond| self.note_inside(local, cond, span, out));
        self.elements.insert(local, Element { inside, bytes });
    }

    /// A local that is true if the element at the pointer is in bounds.
    fn note_inside(&mut self, pointer: LocalId, cond: ExprId, span: Span, out: &mut Block) -> LocalId {
        let name = format!("{}.inside", self.function.locals[pointer].name);
        let inside = self.local(name, Type::BOOL);
        out.push(Stmt { kind: StmtKind::Assign(inside, cond), span });
        inside
    }

    /// Computes an expression here, into a local that replaces it from here on.
    fn once(&mut self, id: ExprId, span: Span, out: &mut Block) {
        let expr = self.function.exprs[id].clone();
        if matches!(expr.kind, ExprKind::Const(_) | ExprKind::Local(_)) {
            return;
        }
        let ty = expr.ty;
        let nonneg = ty == Type::I64 && is_nonneg(&self.function, id);
        let local = self.local("t".to_owned(), ty);
        self.function.locals[local].nonneg = nonneg;
        if matches!(ty, Type::Ptr(..)) {
            self.roots[local.index()] = root_of(&self.function, &self.roots, id);
        }
        let value = self.function.exprs.push(expr);
        out.push(Stmt { kind: StmtKind::Assign(local, value), span });
        self.function.exprs[id].kind = ExprKind::Local(local);
    }

    /// A second use of an expression that [`Writer::once`] has replaced.
    fn again(&mut self, id: ExprId) -> ExprId {
        let expr = self.function.exprs[id].clone();
        self.function.exprs.push(expr)
    }

    fn expr(&mut self, kind: ExprKind, ty: Type, span: Span) -> ExprId {
        self.function.exprs.push(Expr { kind, ty, span })
    }

    fn local(&mut self, name: String, ty: Type) -> LocalId {
        let local = self.function.locals.push(Local::new(name, LocalKind::Temp, ty));
        let len = self.function.locals.len();
        self.roots.resize(len, Root::None);
        self.assigned.resize(len, 1);
        self.written.resize(len, false);
        local
    }
}

/// The locals of a block that contains only assignments of false to them.
fn falsified(function: &Function, block: &Block) -> Vec<LocalId> {
    let falsified = |stmt: &Stmt| match stmt.kind {
        StmtKind::Assign(local, value) if function.exprs[value].kind == ExprKind::Const(Const::Bool(false)) => {
            Some(local)
        }
        StmtKind::Assign(..)
        | StmtKind::Store { .. }
        | StmtKind::Op { .. }
        | StmtKind::Call { .. }
        | StmtKind::If { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return(_) => None,
    };
    block.iter().map(falsified).collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// The locals that statements, or nested ones, assign.
fn assigned(blocks: &[&Block]) -> Vec<LocalId> {
    let mut all = Vec::new();
    for block in blocks {
        for_each_stmt(block, &mut |stmt| all.extend(stmt.kind.assigned()));
    }
    all
}
