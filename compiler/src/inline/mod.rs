//! Inlines device functions: those that reach a barrier, so that only the kernel is split into barrier regions, and
//! small functions, so that the kernel is planned with their code.
//!
//! The callee's locals, arrays and expressions are appended to the caller's. A return becomes assignments to the call's
//! results, and the code after it moves into the branch that does not return. If a loop, or a nested branch, returns
//! only on some paths, a flag guards the code after it.

pub(crate) mod copies;

use crate::{
    analysis::escapes,
    ir::Const,
    ir::{
        Base, Block, Circles, Class, Effects, Expr, ExprId, ExprKind, FuncId, Function, Handle, Leaf, Local,
        LocalArrayId, LocalId, LocalKind, Module, Stmt, StmtKind, Type, UnaryOp, for_each_expr_of_block, for_each_stmt,
        for_each_stmt_mut,
    },
    source::Span,
};

/// The maximum number of expressions of a small function, including those of its callees.
const MOST_OF_SMALL: usize = 400;

/// The maximum number of expressions of a kernel after small functions are inlined.
const MOST_WITH_SMALL: usize = 1500;

/// The callee's array that an array of the caller replaces; `None` if it belongs to a single call.
type Origin = Option<(FuncId, LocalArrayId)>;

/// Inlines every call of a function that reaches a barrier, in the whole module.
pub(crate) fn barrier_functions(module: &mut Module, effects: &[Effects]) {
    put_in(module, &|func| Effects::of_function(effects, func).synchronizes());
}

/// Whether [`barrier_functions`] would make the module too large.
pub(crate) fn too_many_copies(module: &Module, effects: &[Effects]) -> bool {
    copies::too_many(module, &|func| Effects::of_function(effects, func).synchronizes())
}

/// Inlines every call of the chosen functions, and of functions that call these, except recursive ones. Does nothing if
/// the result would be too large.
pub(crate) fn functions(module: &mut Module, circles: &Circles, some: &[bool]) {
    let mut reaching = some.to_vec();
    // Callees come before their callers.
    for (id, function) in module.functions.iter() {
        for_each_stmt(&function.body, &mut |stmt| {
            if let StmtKind::Call { func, .. } = stmt.kind {
                reaching[id.index()] |= reaching[func.index()] && !circles.contains(id);
            }
        });
    }
    if !copies::too_many(module, &|func| reaching[func.index()]) {
        put_in(module, &|func| reaching[func.index()]);
    }
}

/// Inlines the calls of small functions, so that a kernel is planned with their code: clamped indices of stencils, and
/// loops with divergent exits.
pub(crate) fn small_functions(module: &mut Module) {
    let circles = Circles::of(module);
    let mut sizes: Vec<usize> = Vec::with_capacity(module.functions.len());
    let mut small: Vec<bool> = Vec::with_capacity(module.functions.len());
    // Callees come before their callers.
    for (id, function) in module.functions.iter() {
        let mut size = 0;
        for_each_expr_of_block(function, &function.body, &mut |_| size += 1);
        for_each_stmt(&function.body, &mut |stmt| {
            if let StmtKind::Call { func, .. } = stmt.kind {
                size += sizes.get(func.index()).copied().unwrap_or(0);
            }
        });
        small.push(size <= MOST_OF_SMALL && !circles.contains(id));
        sizes.push(size);
    }
    let kernel = module.kernel.and_then(|kernel| sizes.get(kernel.index()));
    if kernel.is_some_and(|&size| size <= MOST_WITH_SMALL) {
        put_in(module, &|func| small[func.index()]);
    }
}

/// Inlines every call of the kernel, except recursive ones, and those of functions that are differentiated by a rule.
/// Does nothing if the result would be too large.
pub(crate) fn all(module: &mut Module) {
    let circles = Circles::of(module);
    let some: Vec<bool> =
        module.functions.iter().map(|(id, function)| !circles.contains(id) && function.rule.is_none()).collect();
    if !copies::too_many(module, &|func| some[func.index()]) {
        put_in(module, &|func| some[func.index()]);
    }
}

/// Replaces the returns of a function without results by branches.
pub(crate) fn without_returns(function: &mut Function) {
    let body = std::mem::take(&mut function.body);
    function.body = if escapes(&body).returns { lower_returns(function, body, Vec::new()) } else { body };
}

fn put_in(module: &mut Module, reaches: &dyn Fn(FuncId) -> bool) {
    let ids: Vec<FuncId> = module.functions.iter().map(|(id, _)| id).collect();
    let of = |(id, function): (FuncId, &Function)| -> Vec<Origin> {
        function.local_arrays.iter().map(|(array, _)| Some((id, array))).collect()
    };
    let mut origins: Vec<Vec<Origin>> = module.functions.iter().map(of).collect();
    for id in ids {
        let calls = |function: &Function| {
            let mut calls = false;
            for_each_stmt(&function.body, &mut |stmt| {
                calls |= matches!(stmt.kind, StmtKind::Call { func, .. } if reaches(func));
            });
            calls
        };
        if calls(&module.functions[id]) {
            // Callees come before their callers, so the callees of this function contain no such call any more.
            let mut function = module.functions[id].clone();
            let body = std::mem::take(&mut function.body);
            let own = std::mem::take(&mut origins[id.index()]);
            let mut inliner = Inliner { module, reaches, origins: &origins, own };
            function.body = inliner.block(&mut function, body);
            origins[id.index()] = inliner.own;
            module.functions[id] = function;
        }
    }
}

struct Inliner<'a> {
    module: &'a Module,
    reaches: &'a dyn Fn(FuncId) -> bool,
    /// The origins of every function's arrays, complete for the callees.
    origins: &'a [Vec<Origin>],
    /// The origins of the caller's arrays.
    own: Vec<Origin>,
}

impl Inliner<'_> {
    fn block(&mut self, function: &mut Function, block: Block) -> Block {
        let mut out = Block::new();
        for stmt in block {
            let span = stmt.span;
            match stmt.kind {
                StmtKind::Call { results, func, args } if (self.reaches)(func) => {
                    let arrays = self.arrays(function, func);
                    out.extend(expand(function, &self.module.functions[func], arrays, results, &args, span));
                }
                StmtKind::If { cond, then, otherwise } => {
                    let then = self.block(function, then);
                    let otherwise = self.block(function, otherwise);
                    out.push(Stmt { kind: StmtKind::If { cond, then, otherwise }, span });
                }
                StmtKind::Loop { body, step } => {
                    let body = self.block(function, body);
                    let step = self.block(function, step);
                    out.push(Stmt { kind: StmtKind::Loop { body, step }, span });
                }
                kind @ (StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_)) => out.push(Stmt { kind, span }),
            }
        }
        out
    }

    /// The caller's arrays that replace a callee's. A thread is in one call of a function at a time, so all calls share
    /// them, except for arrays that the callee may return a pointer to.
    fn arrays(&mut self, function: &mut Function, func: FuncId) -> Vec<LocalArrayId> {
        let callee = &self.module.functions[func];
        let given = given(callee);
        let mut arrays = Vec::with_capacity(callee.local_arrays.len());
        for ((id, array), &origin) in callee.local_arrays.iter().zip(&self.origins[func.index()]) {
            let origin = origin.filter(|_| !given[id.index()]);
            let known = origin.and_then(|origin| self.own.iter().position(|&own| own == Some(origin)));
            arrays.push(match known {
                Some(index) => Handle::new(index as u32),
                None => {
                    self.own.push(origin);
                    function.local_arrays.push(array.clone())
                }
            });
        }
        arrays
    }
}

/// By the array's index: whether a pointer that the function returns may point to it.
fn given(function: &Function) -> Vec<bool> {
    let mut given = vec![false; function.local_arrays.len()];
    if !function.results.iter().any(|ty| matches!(ty, Type::Ptr(..))) {
        return given;
    }
    // Pointers are stored only in locals. This marks the locals from which a returned pointer may be derived.
    let mut locals = vec![false; function.locals.len()];
    for_each_stmt(&function.body, &mut |stmt| {
        if let StmtKind::Return(values) = &stmt.kind {
            for &value in values {
                follow(function, value, &mut locals, &mut given);
            }
        }
    });
    loop {
        let before = locals.clone();
        for_each_stmt(&function.body, &mut |stmt| {
            if stmt.kind.assigned().iter().any(|local| before[local.index()]) {
                for value in stmt.kind.exprs() {
                    follow(function, value, &mut locals, &mut given);
                }
            }
        });
        if locals == before {
            return given;
        }
    }
}

/// Marks the locals and the arrays that a pointer is derived from.
fn follow(function: &Function, pointer: ExprId, locals: &mut [bool], given: &mut [bool]) {
    let expr = &function.exprs[pointer];
    if !matches!(expr.ty, Type::Ptr(..)) {
        return;
    }
    if let ExprKind::LocalBase(array) = expr.kind {
        given[array.index()] = true;
    } else if let ExprKind::Local(local) = expr.kind {
        locals[local.index()] = true;
    }
    for operand in expr.kind.operands() {
        follow(function, operand, locals, given);
    }
}

/// The callee's statements, which replace its call.
fn expand(
    function: &mut Function,
    callee: &Function,
    arrays: Vec<LocalArrayId>,
    results: Vec<LocalId>,
    args: &[ExprId],
    span: Span,
) -> Block {
    let copy = Copy { locals: function.locals.len(), arrays, exprs: function.exprs.len() };
    for (_, local) in callee.locals.iter() {
        let name = format!("{}.{}", callee.name, local.name);
        function.locals.push(Local { name, ..local.clone() });
    }
    for (_, expr) in callee.exprs.iter() {
        function.exprs.push(copy.expr(expr));
    }
    let mut out = Block::new();
    for (&param, &arg) in callee.params.iter().zip(args) {
        out.push(Stmt { kind: StmtKind::Assign(copy.local(param), arg), span });
    }
    let body = copy.block(&callee.body);
    out.extend(if escapes(&body).returns { lower_returns(function, body, results) } else { body });
    out
}

/// The statements of a body without its returns, which assign the results.
fn lower_returns(function: &mut Function, body: Block, results: Vec<LocalId>) -> Block {
    let span = function.span;
    let flag = function.locals.push(Local::new("returned", LocalKind::Variable, Type::BOOL));
    let mut returns = Returns { function, results, flag };
    let mut out = vec![returns.set_flag(false, span)];
    out.extend(returns.lower(body).0);
    out
}

/// Maps the callee's handles to those of the copy.
struct Copy {
    locals: usize,
    arrays: Vec<LocalArrayId>,
    exprs: usize,
}

impl Copy {
    fn shift<T>(handle: Handle<T>, by: usize) -> Handle<T> {
        Handle::new((handle.index() + by) as u32)
    }

    fn local(&self, id: LocalId) -> LocalId {
        Self::shift(id, self.locals)
    }

    fn id(&self, id: ExprId) -> ExprId {
        Self::shift(id, self.exprs)
    }

    fn expr(&self, expr: &Expr) -> Expr {
        let kind = match expr.kind.class() {
            Class::Leaf(Leaf::Local(local)) => ExprKind::Local(self.local(local)),
            Class::Leaf(Leaf::Base(Base::Local(array))) => ExprKind::LocalBase(self.arrays[array.index()]),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => {
                expr.kind.clone().map_operands(&mut |operand| self.id(operand))
            }
        };
        Expr { kind, ty: expr.ty, span: expr.span }
    }

    fn block(&self, block: &Block) -> Block {
        let mut copy = block.clone();
        for_each_stmt_mut(&mut copy, &mut |stmt| {
            stmt.kind.for_each_assigned_mut(&mut |local| *local = self.local(*local));
        });
        copy.into_iter().map(|Stmt { kind, span }| Stmt { kind: kind.map_exprs(&mut |id| self.id(id)), span }).collect()
    }
}

/// Whether a list of statements returns: never, on some paths, or on all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exit {
    Never,
    Sometimes,
    Always,
}

/// Replaces the returns of a copied body by assignments.
struct Returns<'a> {
    function: &'a mut Function,
    results: Vec<LocalId>,
    /// `true` once the callee has returned.
    flag: LocalId,
}

impl Returns<'_> {
    fn set_flag(&mut self, value: bool, span: Span) -> Stmt {
        let value = self.function.exprs.push(Expr { kind: ExprKind::Const(Const::Bool(value)), ty: Type::BOOL, span });
        Stmt { kind: StmtKind::Assign(self.flag, value), span }
    }

    fn read_flag(&mut self, span: Span) -> ExprId {
        self.function.exprs.push(Expr { kind: ExprKind::Local(self.flag), ty: Type::BOOL, span })
    }

    fn unless_returned(&mut self, then: Block, span: Span) -> Stmt {
        let flag = self.read_flag(span);
        let cond = self.function.exprs.push(Expr { kind: ExprKind::Unary(UnaryOp::Not, flag), ty: Type::BOOL, span });
        Stmt { kind: StmtKind::If { cond, then, otherwise: Block::new() }, span }
    }

    fn assign_results(&mut self, values: &[ExprId], span: Span, out: &mut Block) {
        for (&result, &value) in self.results.iter().zip(values) {
            out.push(Stmt { kind: StmtKind::Assign(result, value), span });
        }
        let set = self.set_flag(true, span);
        out.push(set);
    }

    /// Lowers statements outside of the callee's loops.
    fn lower(&mut self, block: Block) -> (Block, Exit) {
        let mut out = Block::new();
        let mut stmts = block.into_iter();
        while let Some(Stmt { kind, span }) = stmts.next() {
            match kind {
                StmtKind::Return(values) => {
                    self.assign_results(&values, span, &mut out);
                    return (out, Exit::Always);
                }
                StmtKind::If { cond, then, otherwise } => {
                    let (mut then, then_exit) = self.lower(then);
                    let (mut otherwise, else_exit) = self.lower(otherwise);
                    let branch = |then, otherwise| Stmt { kind: StmtKind::If { cond, then, otherwise }, span };
                    match (then_exit, else_exit) {
                        (Exit::Never, Exit::Never) => {
                            out.push(branch(then, otherwise));
                            continue;
                        }
                        (Exit::Always, Exit::Always) => {
                            out.push(branch(then, otherwise));
                            return (out, Exit::Always);
                        }
                        _ => {}
                    }
                    let (rest, rest_exit) = self.lower(stmts.collect());
                    let exit = if rest_exit == Exit::Always { Exit::Always } else { Exit::Sometimes };
                    match (then_exit, else_exit) {
                        (Exit::Always, Exit::Never) => otherwise.extend(rest),
                        (Exit::Never, Exit::Always) => then.extend(rest),
                        _ => {
                            out.push(branch(then, otherwise));
                            if !rest.is_empty() {
                                let guarded = self.unless_returned(rest, span);
                                out.push(guarded);
                            }
                            return (out, exit);
                        }
                    }
                    out.push(branch(then, otherwise));
                    return (out, exit);
                }
                StmtKind::Loop { body, step } => {
                    let returns = escapes(&body).returns;
                    let body = self.lower_in_loop(body);
                    out.push(Stmt { kind: StmtKind::Loop { body, step }, span });
                    if returns {
                        let (rest, rest_exit) = self.lower(stmts.collect());
                        if !rest.is_empty() {
                            let guarded = self.unless_returned(rest, span);
                            out.push(guarded);
                        }
                        return (out, if rest_exit == Exit::Always { Exit::Always } else { Exit::Sometimes });
                    }
                }
                kind @ (StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Break
                | StmtKind::Continue) => out.push(Stmt { kind, span }),
            }
        }
        (out, Exit::Never)
    }

    /// Lowers statements in one of the callee's loops: a return becomes a break.
    fn lower_in_loop(&mut self, block: Block) -> Block {
        let mut out = Block::new();
        for Stmt { kind, span } in block {
            match kind {
                StmtKind::Return(values) => {
                    self.assign_results(&values, span, &mut out);
                    out.push(Stmt { kind: StmtKind::Break, span });
                    return out;
                }
                StmtKind::If { cond, then, otherwise } => {
                    let then = self.lower_in_loop(then);
                    let otherwise = self.lower_in_loop(otherwise);
                    out.push(Stmt { kind: StmtKind::If { cond, then, otherwise }, span });
                }
                StmtKind::Loop { body, step } => {
                    let returns = escapes(&body).returns;
                    let body = self.lower_in_loop(body);
                    out.push(Stmt { kind: StmtKind::Loop { body, step }, span });
                    if returns {
                        let cond = self.read_flag(span);
                        let then = vec![Stmt { kind: StmtKind::Break, span }];
                        out.push(Stmt { kind: StmtKind::If { cond, then, otherwise: Block::new() }, span });
                    }
                }
                kind @ (StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Break
                | StmtKind::Continue) => out.push(Stmt { kind, span }),
            }
        }
        out
    }
}
