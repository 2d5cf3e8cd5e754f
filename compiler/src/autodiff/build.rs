//! From a kernel's statements to a tape. The kernel has no calls and no returns.

use std::collections::BTreeSet;

use weft_artifact::Scalar;

use super::{
    loops::{Normal, normal_form},
    refusals::{unsupported, which_array},
    tape::{Barrier, Branch, Call, Callee, Carried, Exchange, Join, List, Node, Repeat, Write},
};
use crate::{
    diagnostic::Diagnostic,
    ir::{
        AtomicOp, Block, Class, Const, Expr, ExprId, ExprKind, FuncId, Function, Local, LocalId, LocalKind, MathFn, Op,
        Rule, Space, Stmt, StmtKind, Type, for_each_expr, for_each_stmt,
    },
    source::Span,
};

/// The current value of a local.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Version {
    /// Not assigned yet.
    None,
    /// A value.
    Value(LocalId),
    /// A pointer: an expression of values.
    Pointer(ExprId),
    /// One of several pointers.
    Unknown,
}

/// Builds the tape of a function's body.
pub(super) struct Recorder<'a> {
    function: &'a mut Function,
    /// By the index of the local.
    env: Vec<Version>,
    loops: usize,
    events: usize,
    /// The rules of the module's functions, by index.
    rules: &'a [Option<Rule>],
    /// The kernel writes integers to arguments.
    writes_integers: bool,
}

type Result<T> = std::result::Result<T, Diagnostic>;

/// Builds the tape of a function, whose body is taken, in a module whose functions have rules. Returns the number of
/// loops, too.
pub(super) fn record(function: &mut Function, rules: &[Option<Rule>]) -> Result<(List, usize)> {
    let body = std::mem::take(&mut function.body);
    let mut env = vec![Version::None; function.locals.len()];
    for &param in &function.params {
        env[param.index()] = Version::Value(param);
    }
    let writes_integers = writes_integers(function, &body);
    let mut recorder = Recorder { function, env, loops: 0, events: 0, rules, writes_integers };
    let mut list = List::new();
    recorder.list(body, &mut list)?;
    Ok((list, recorder.loops))
}

/// The scalar type, if it is a float whose adjoints are supported.
pub(super) fn is_float(ty: Type) -> bool {
    matches!(ty, Type::Scalar(scalar) if scalar.is_float())
}

/// Whether it is a 16-bit float.
pub(super) fn is_half(ty: Type) -> bool {
    matches!(ty, Type::Scalar(scalar) if scalar.is_half())
}

/// The type of the adjoint or the tangent of a value: float32 for a 16-bit float, whose sums would lose digits.
pub(super) fn adjoint_type(ty: Type) -> Type {
    if is_half(ty) { Type::Scalar(Scalar::F32) } else { ty }
}

/// The value in a type.
pub(super) fn converted(function: &mut Function, value: ExprId, ty: Type) -> ExprId {
    let Expr { ty: from, span, .. } = function.exprs[value];
    if from == ty { value } else { function.exprs.push(Expr { kind: ExprKind::Convert(value), ty, span }) }
}

/// The float32 that a conversion makes a 16-bit float of; another value itself.
pub(super) fn unrounded(function: &Function, value: ExprId) -> ExprId {
    if let ExprKind::Convert(wide) = function.exprs[value].kind
        && is_half(function.exprs[value].ty)
        && function.exprs[wide].ty == Type::Scalar(Scalar::F32)
    {
        wide
    } else {
        value
    }
}

/// Whether an expression is a constant or a read of a local.
fn is_leaf(function: &Function, id: ExprId) -> bool {
    matches!(function.class(id), Class::Leaf(_))
}

/// The space that a load loads from.
fn space_of_load(function: &Function, id: ExprId) -> Option<Space> {
    let Class::Load(pointer) = function.class(id) else { return None };
    match function.exprs[pointer].ty {
        Type::Ptr(_, space) => Some(space),
        Type::Scalar(_) => None,
    }
}

/// Whether statements write integers to arguments.
fn writes_integers(function: &Function, body: &Block) -> bool {
    let is_integer = |id: ExprId| !is_float(function.exprs[id].ty);
    let is_global = |id: ExprId| matches!(function.exprs[id].ty, Type::Ptr(_, Space::Global | Space::Generic));
    let mut writes = false;
    for_each_stmt(body, &mut |stmt| {
        if let StmtKind::Store { pointer, value, .. } = stmt.kind {
            writes |= is_global(pointer) && is_integer(value);
        } else if let StmtKind::Op { args, .. } = &stmt.kind
            && let &[pointer, value, ..] = args.as_slice()
        {
            writes |= is_global(pointer) && is_integer(value);
        }
    });
    writes
}

impl Recorder<'_> {
    fn list(&mut self, block: Block, out: &mut List) -> Result<()> {
        for stmt in block {
            self.stmt(stmt, out)?;
        }
        Ok(())
    }

    fn stmt(&mut self, Stmt { kind, span }: Stmt, out: &mut List) -> Result<()> {
        match kind {
            StmtKind::Assign(to, value) => self.assign(to, value, span, out)?,
            StmtKind::Store { pointer, value, .. } => self.write(pointer, value, span, out)?,
            StmtKind::Op { op, results, args } => self.op(op, &results, &args, span, out)?,
            StmtKind::Call { results, func, args } => self.call(func, &results, args, span, out)?,
            StmtKind::If { cond, then, otherwise } => self.branch(cond, then, otherwise, span, out)?,
            StmtKind::Loop { body, step } => self.repeat(body, step, span, out)?,
            StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => {
                return Err(unsupported(span, "this jump", "write the loop without it"));
            }
        }
        Ok(())
    }

    fn assign(&mut self, to: LocalId, value: ExprId, span: Span, out: &mut List) -> Result<()> {
        let value = self.value(value, out)?;
        self.env[to.index()] = match self.function.exprs[value].ty {
            Type::Ptr(..) => Version::Pointer(value),
            Type::Scalar(_) => Version::Value(match self.function.local(value) {
                Some(known) => known,
                None => self.define(Some(to), value, span, out),
            }),
        };
        Ok(())
    }

    fn write(&mut self, pointer: ExprId, value: ExprId, span: Span, out: &mut List) -> Result<()> {
        let (pointer, value) = (self.value(pointer, out)?, self.value(value, out)?);
        let event = self.event();
        out.push(Node::Store(Write { pointer, value, atomic: None, event, span }));
        Ok(())
    }

    fn call(
        &mut self,
        func: FuncId,
        results: &[LocalId],
        mut args: Vec<ExprId>,
        span: Span,
        out: &mut List,
    ) -> Result<()> {
        let Some(rule) = self.rules.get(func.index()).copied().flatten() else {
            return Err(unsupported(
                span,
                "a function that is not inlined",
                "make the function smaller, and do not let it call itself",
            ));
        };
        for arg in &mut args {
            *arg = self.value(*arg, out)?;
        }
        self.called(Callee::Function(func, rule), results, args, span, out);
        Ok(())
    }

    fn called(&mut self, callee: Callee, results: &[LocalId], args: Vec<ExprId>, span: Span, out: &mut List) {
        let values: Vec<LocalId> =
            results.iter().map(|&result| self.fresh(Some(result), self.function.locals[result].ty)).collect();
        for (result, &value) in results.iter().zip(&values) {
            self.env[result.index()] = Version::Value(value);
        }
        let event = matches!(callee, Callee::Function(_, Rule::Symmetric)).then(|| self.event());
        out.push(Node::Call(Call { callee, args, results: values, event, span }));
    }

    fn op(&mut self, op: Op, results: &[LocalId], args: &[ExprId], span: Span, out: &mut List) -> Result<()> {
        match (op, args) {
            (Op::Print(_), _) => return Ok(()),
            (Op::Atomic { op: function, .. }, &[pointer, value, ..]) => {
                let is_integer = !matches!(self.function.exprs[value].ty, Type::Scalar(scalar) if scalar.is_float());
                let is_sum = matches!(function, AtomicOp::Add | AtomicOp::Sub);
                if !(is_integer || is_sum && results.is_empty()) {
                    let help =
                        "the result depends on the order of the threads: use `cuda.atomic.add` without its result";
                    return Err(unsupported(span, "this atomic operation", help));
                }
                let (pointer, value) = (self.value(pointer, out)?, self.value(value, out)?);
                let event = self.event();
                out.push(Node::Add(Write { pointer, value, atomic: Some(op), event, span }));
                self.unrepeatable(results, span, out);
            }
            (Op::Load(_), &[pointer]) if results.len() == 1 => {
                let pointer = self.value(pointer, out)?;
                let Type::Ptr(elem, _) = self.function.exprs[pointer].ty else { return Ok(()) };
                let kind = ExprKind::Load(pointer, crate::ir::Align::Natural);
                let value = self.function.exprs.push(Expr { kind, ty: Type::Scalar(elem), span });
                let value = self.define(results.first().copied(), value, span, out);
                for &result in results {
                    self.env[result.index()] = Version::Value(value);
                }
            }
            (Op::Store(_), &[pointer, value]) => self.write(pointer, value, span, out)?,
            (Op::Clock(_) | Op::ActiveMask, _) => self.unrepeatable(results, span, out),
            // The sanitizer checked the indices when the kernel ran; the adjoint kernel has no others.
            (Op::Nanosleep | Op::SetRegisters { .. } | Op::Breakpoint | Op::Check(_), _) => {}
            (Op::Barrier, _) => {
                let event = self.event();
                out.push(Node::Barrier { event, scope: Barrier::Block, span });
            }
            (Op::WarpBarrier, &[mask]) => {
                let Some(mask) = self.function.int(mask) else {
                    let help =
                        "give `cuda.syncwarp()` a mask that is a constant, or let all lanes reach it without one";
                    return Err(unsupported(span, "a barrier of a warp whose mask is computed", help));
                };
                let (event, mask) = (self.event(), (mask as u32).cast_signed());
                out.push(Node::Barrier { event, scope: Barrier::Warp(mask), span });
            }
            (
                Op::WarpBarrier
                | Op::GridBarrier
                | Op::BarrierReduce(_)
                | Op::Fence(_)
                | Op::OfWarps
                | Op::WarpRegion(_),
                _,
            ) => {
                return Err(unsupported(span, "this barrier", TOGETHER));
            }
            (Op::Shuffle(shuffle), &[mask, value, by, width]) if results.len() == 1 => {
                let mut values = [mask, value, by, width];
                for value in &mut values {
                    *value = self.value(*value, out)?;
                }
                let [mask, value, by, width] = values;
                for &result in results {
                    let to = self.fresh(Some(result), self.function.locals[result].ty);
                    out.push(Node::Exchange(Exchange { to, shuffle, value, mask, by, width, span }));
                    self.env[result.index()] = Version::Value(to);
                }
            }
            // The result is not used.
            (Op::Shuffle(_), _) if results.is_empty() => {}
            (Op::Vote(_) | Op::MatchAny | Op::MatchAll | Op::WarpReduce(_), _) => {
                let args = args.iter().map(|&arg| self.value(arg, out)).collect::<Result<_>>()?;
                self.called(Callee::Op(op), results, args, span, out);
            }
            (
                Op::Shuffle(_)
                | Op::LaneBits(_)
                | Op::LaneFold(_)
                | Op::Multiply(_)
                | Op::MatrixLoad(_)
                | Op::ProductWait(_)
                | Op::MultiplyCells(_),
                _,
            ) => return Err(unsupported(span, "an operation of a warp", TOGETHER)),
            (Op::AsyncCopy(_), _) => {
                return Err(unsupported(span, "an asynchronous copy", "assign the elements"));
            }
            (Op::Cluster(_), _) => return Err(unsupported(span, "an operation of a cluster", TOGETHER)),
            (Op::Ptx { .. } | Op::External(_), _) => {
                return Err(unsupported(span, "code of another language", "write the function in Python"));
            }
            (Op::Atomic { .. } | Op::Load(_) | Op::Store(_) | Op::Fault(_) | Op::FaultCall(_), _) => {
                return Err(unsupported(
                    span,
                    "a check at run time",
                    "make the adjoint kernel from a kernel without `debug`, `exceptions` and `boundscheck`",
                ));
            }
        }
        Ok(())
    }

    fn unrepeatable(&mut self, results: &[LocalId], span: Span, out: &mut List) {
        for &result in results {
            let to = self.fresh(Some(result), self.function.locals[result].ty);
            out.push(Node::Unrepeatable { to, span });
            self.env[result.index()] = Version::Value(to);
        }
    }

    fn branch(&mut self, cond: ExprId, then: Block, otherwise: Block, span: Span, out: &mut List) -> Result<()> {
        let cond = self.value(cond, out)?;
        let assigned = assigned([&then, &otherwise]);
        let before = self.env.clone();
        let mut branch = Branch { cond, then: List::new(), otherwise: List::new(), joins: Vec::new(), span };
        self.list(then, &mut branch.then)?;
        let after_then = std::mem::replace(&mut self.env, before);
        self.list(otherwise, &mut branch.otherwise)?;
        for local in assigned {
            let (a, b) = (after_then[local.index()], self.env[local.index()]);
            self.env[local.index()] = match (a, b) {
                (one, other) if one == other => one,
                (Version::Value(then), Version::Value(otherwise)) => {
                    let to = self.fresh(Some(local), self.function.locals[local].ty);
                    branch.joins.push(Join { to, then, otherwise });
                    Version::Value(to)
                }
                // The kernel reads it only where it was assigned.
                (Version::None, one) | (one, Version::None) => one,
                (
                    Version::Value(_) | Version::Pointer(_) | Version::Unknown,
                    Version::Value(_) | Version::Pointer(_) | Version::Unknown,
                ) => Version::Unknown,
            };
        }
        out.push(Node::If(branch));
        Ok(())
    }

    fn repeat(&mut self, body: Block, step: Block, span: Span, out: &mut List) -> Result<()> {
        let Normal { before, head, exit, body, step } = normal_form(self.function, body, step, span)?;
        self.env.resize(self.function.locals.len(), Version::None);
        self.list(before, out)?;
        let mut carried = Vec::new();
        for local in assigned([&head, &body, &step]) {
            let version = &mut self.env[local.index()];
            let init = match *version {
                Version::Value(init) => Some(init),
                Version::None | Version::Pointer(_) | Version::Unknown => None,
            };
            if self.function.locals[local].ty.scalar().is_none() {
                // A pointer that an iteration reads before it assigns it is unknown.
                *version = Version::Unknown;
                continue;
            }
            let header = self.fresh(Some(local), self.function.locals[local].ty);
            self.env[local.index()] = Version::Value(header);
            carried.push((local, init, header));
        }
        let id = self.loops;
        self.loops += 1;
        let count = self.fresh(None, Type::I64);
        let (mut first, mut rest) = (List::new(), List::new());
        self.list(head, &mut first)?;
        let exit = self.value(exit, &mut first)?;
        let at_exit = self.env.clone();
        self.list(body, &mut rest)?;
        self.list(step, &mut rest)?;
        let carried = carried
            .into_iter()
            .map(|(local, init, header)| {
                let next = match self.env[local.index()] {
                    Version::Value(next) => next,
                    Version::None | Version::Pointer(_) | Version::Unknown => header,
                };
                Carried { init, header, next }
            })
            .collect();
        self.env = at_exit;
        out.push(Node::Loop(Box::new(Repeat { id, head: first, exit, body: rest, carried, count, span })));
        Ok(())
    }

    /// The number of the next event.
    fn event(&mut self) -> usize {
        self.events += 1;
        self.events
    }

    /// A new value: a version of a local, or a temporary.
    fn fresh(&mut self, of: Option<LocalId>, ty: Type) -> LocalId {
        let local = match of {
            Some(local) => self.function.locals[local].clone(),
            None => Local::new("t", LocalKind::Temp, ty),
        };
        let fresh = self.function.locals.push(local);
        self.env.resize(self.function.locals.len(), Version::None);
        fresh
    }

    fn define(&mut self, of: Option<LocalId>, value: ExprId, span: Span, out: &mut List) -> LocalId {
        let to = self.fresh(of, self.function.exprs[value].ty);
        out.push(Node::Define { to, value, span });
        to
    }

    fn read(&mut self, local: LocalId, span: Span) -> ExprId {
        let ty = self.function.locals[local].ty;
        self.function.exprs.push(Expr { kind: ExprKind::Local(local), ty, span })
    }

    /// The expression in terms of values. Each operation on floats becomes a value of its own.
    fn value(&mut self, id: ExprId, out: &mut List) -> Result<ExprId> {
        let Expr { kind, ty, span } = self.function.exprs[id].clone();
        if let ExprKind::Local(local) = kind {
            return match self.env[local.index()] {
                Version::Value(value) => Ok(self.read(value, span)),
                Version::Pointer(pointer) => Ok(self.function.copy_expr(pointer)),
                Version::Unknown => Err(which_array(span)),
                Version::None => {
                    let value = match ty {
                        Type::Ptr(..) => Const::Null,
                        Type::BOOL => Const::Bool(false),
                        Type::Scalar(scalar) if scalar.is_float() => Const::Float(0.0),
                        Type::Scalar(_) => Const::Int(0),
                    };
                    Ok(self.function.exprs.push(Expr { kind: ExprKind::Const(value), ty, span }))
                }
            };
        }
        if let ExprKind::Select(cond, a, b) = kind
            && !(is_leaf(self.function, a) && is_leaf(self.function, b))
            && (is_float(ty) || self.loads_own(a) || self.loads_own(b))
        {
            return self.select(cond, a, b, span, out);
        }
        let mut failure = None;
        let kind = kind.map_operands(&mut |operand| {
            self.value(operand, out).unwrap_or_else(|error| {
                failure.get_or_insert(error);
                operand
            })
        });
        if let Some(error) = failure {
            return Err(error);
        }
        let bits = matches!(kind, ExprKind::Math(MathFn::Bits, _));
        let is_leaf = matches!(kind.class(), Class::Leaf(_));
        let value = self.function.exprs.push(Expr { kind, ty, span });
        // The array has this value only now.
        let is_own = self.loads_changing(value);
        if is_leaf || !(is_float(ty) || bits || is_own) {
            return Ok(value);
        }
        let to = self.define(None, value, span, out);
        Ok(self.read(to, span))
    }

    /// Whether an expression loads from memory of the thread or of its block, or from arguments that may change.
    fn loads_own(&self, id: ExprId) -> bool {
        let mut loads = false;
        for_each_expr(self.function, id, &mut |id| loads |= self.loads_changing(id));
        loads
    }

    /// Whether it is a load of an integer that the kernel may overwrite, or from memory of the thread or of its block.
    fn loads_changing(&self, id: ExprId) -> bool {
        match space_of_load(self.function, id) {
            Some(Space::Shared | Space::Local | Space::Generic) => true,
            Some(Space::Global) => self.writes_integers,
            Some(Space::Constant) | None => false,
        }
    }

    /// A choice between two computations becomes a branch, so that the one that was not chosen adds nothing to the
    /// adjoints, even if its derivative is infinite.
    fn select(&mut self, cond: ExprId, a: ExprId, b: ExprId, span: Span, out: &mut List) -> Result<ExprId> {
        let cond = self.value(cond, out)?;
        let mut branch = Branch { cond, then: List::new(), otherwise: List::new(), joins: Vec::new(), span };
        let then = self.arm(a, span, &mut branch.then)?;
        let otherwise = self.arm(b, span, &mut branch.otherwise)?;
        let to = self.fresh(None, self.function.locals[then].ty);
        branch.joins.push(Join { to, then, otherwise });
        out.push(Node::If(branch));
        Ok(self.read(to, span))
    }

    fn arm(&mut self, id: ExprId, span: Span, out: &mut List) -> Result<LocalId> {
        let value = self.value(id, out)?;
        Ok(match self.function.local(value) {
            Some(local) => local,
            None => self.define(None, value, span, out),
        })
    }
}

const TOGETHER: &str = "write the computation without communication between threads, or its adjoint by hand";

/// The locals that blocks assign.
fn assigned<const N: usize>(blocks: [&Block; N]) -> BTreeSet<LocalId> {
    let mut all = BTreeSet::new();
    for block in blocks {
        for_each_stmt(block, &mut |stmt| all.extend(stmt.kind.assigned()));
    }
    all
}
