//! Kernels and device functions: parameters, bodies, returns.

use std::{collections::BTreeMap, sync::Arc};

use weft_artifact::{Access, ArgType, BoxType, DType, Field, Param, SlotField, SlotSource};

use super::{
    expr::shown_types,
    in_flight,
    lowerer::{FnLowerer, Lowerer},
    object::Static,
    promote,
    state::{Compiled, Iterators, LoopTable, Loops, Lowering, Names, Returns, Var, Variables},
    ty::Ty,
    typing::{find_types, joined_returns, typed},
    value::Value,
};
use crate::{
    diagnostic::{Code, Diagnostic, Severity},
    ir::{AsyncCopy, Builder, Circles, Function, FunctionKind, LocalId, Op, StmtKind, Type, for_each_stmt_mut},
    request::{FunctionDef, Request},
    source::Span,
    syntax::ast,
};

/// Lowers the kernel of a request into the lowerer's module.
pub(super) fn lower_kernel(cx: &mut Lowerer, request: &Request) {
    let def = Arc::clone(&request.function);
    cx.root.def = Some(Arc::clone(&def));
    cx.root.is_kernel = true;
    let file = cx.sources.add(&def.source);
    let name = def.ast.name.clone();
    let span = def.ast.name_span;
    let builder = Builder::new(Function::new(name, FunctionKind::Kernel, def.ast.span));
    let mut lowerer = FnLowerer::new(cx, Arc::clone(&def), builder, LoopTable::new());
    if !lowerer.check_param_kinds() {
        return;
    }
    if def.ast.params.len() != request.args.len() {
        lowerer.report(
            Diagnostic::error(
                Code::ArgumentCount,
                span,
                format!(
                    "kernel `{}` takes {}, but its signature has {}",
                    def.ast.name,
                    count(def.ast.params.len(), "argument"),
                    request.args.len()
                ),
            )
            .label("defined here"),
        );
        return;
    }
    for (param, arg) in def.ast.params.iter().zip(&request.args) {
        if let Some(dtype) = by_value(arg) {
            let message = format!(
                "`{}` takes {} {dtype} by value: pass an array of it",
                param.name,
                weft_artifact::article(&dtype.to_string())
            );
            lowerer.error(Code::UnsupportedValue, param.span, message);
            return;
        }
    }
    let traverse = |lowerer: &mut FnLowerer<'_>| {
        for (index, (param, arg)) in def.ast.params.iter().zip(&request.args).enumerate() {
            lowerer.kernel_param(index as u32, param, arg);
        }
        lowerer.body();
    };
    lowerer.loops.known = find_types(lowerer.cx, &def, traverse);
    traverse(&mut lowerer);
    let function = lowerer.finish(file);
    let params = def.ast.params.iter().zip(&request.args).map(|(param, ty)| Param {
        name: param.name.clone(),
        ty: ty.clone(),
        access: Access { reads: true, writes: true, accumulates: false },
    });
    cx.module.params = params.collect();
    let id = cx.module.functions.push(function);
    cx.module.kernel = Some(id);
    if cx.functions.has_circles {
        cx.module.order_functions();
        let circles = Circles::of(&cx.module);
        for (id, function) in cx.module.functions.iter_mut() {
            // A recursive function cannot be inlined completely.
            function.inline &= !circles.contains(id);
        }
    }
}

/// Lowers the function of a request as a device function, and returns its result type; `None` if a result of this type
/// cannot be passed on. Errors are recorded in the lowerer.
pub(super) fn lower_result(cx: &mut Lowerer, request: &Request) -> Option<ArgType> {
    let def = &request.function;
    cx.root.def = Some(Arc::clone(def));
    let file = cx.sources.add(&def.source);
    let (takes, given) = (def.ast.params.len(), request.args.len());
    if takes != given {
        let message = format!("`{}` takes {}, not {given}", def.ast.name, count(takes, "argument"));
        let at = Span { file, ..def.ast.name_span };
        cx.diagnostics.push(Diagnostic::error(Code::ArgumentCount, at, message).label("defined here"));
        return None;
    }
    let args: Vec<Ty> = request.args.iter().map(Ty::of_arg).collect();
    lower_device(cx, def, &args).and_then(|(_, lowering)| lowering.returns.arg())
}

/// The first dtype in an argument's type that is passed by value and is not a number.
pub(super) fn by_value(arg: &ArgType) -> Option<DType> {
    match arg {
        ArgType::Value(dtype) => Ty::of_arg(arg).is_poison().then_some(*dtype),
        ArgType::Tuple(items) | ArgType::Struct(_, items) => items.iter().find_map(by_value),
        ArgType::Optional(of) => by_value(of),
        ArgType::Array(_)
        | ArgType::None
        | ArgType::Enum(..)
        | ArgType::Record(_)
        | ArgType::Class(_)
        | ArgType::Pointer(_) => None,
    }
}

/// `3 arguments`, `1 argument`.
pub(super) fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

impl<'a> FnLowerer<'a> {
    /// A lowerer for one pass over a function, with the loop types that earlier passes found.
    pub(super) fn new(cx: &'a mut Lowerer, def: Arc<FunctionDef>, mut b: Builder, known_loops: LoopTable) -> Self {
        let file = cx.sources.add(&def.source);
        b.function.inline = def.inline;
        let closure = cx.closures.iter().find(|closure| closure.is_of(&def));
        let writes = closure.map(|closure| closure.writes.clone()).unwrap_or_default();
        let names = Names::of(&def, writes);
        Self {
            cx,
            file,
            b,
            env: Some(BTreeMap::new()),
            variables: Variables::default(),
            names,
            iterators: Iterators::default(),
            scopes: Vec::new(),
            loops: Loops { known: known_loops, ..Loops::default() },
            returns: None,
            ends_thread: false,
            closing: Vec::new(),
            where_true: Vec::new(),
            hint: None,
            def,
        }
    }

    /// Reports `*args`, `**kwargs` and parameters that no launch can pass; returns whether there are none.
    fn check_param_kinds(&mut self) -> bool {
        let def = Arc::clone(&self.def);
        let variadic: Vec<_> =
            def.ast.params.iter().filter_map(|param| Some((param.span, param.variadic()?))).collect();
        for (span, what) in &variadic {
            self.error(Code::UnsupportedStatement, *span, format!("a kernel cannot have `{what}`"));
        }
        variadic.is_empty()
    }

    /// Declares the run-time parts of a kernel argument, with their slots.
    fn kernel_param(&mut self, index: u32, param: &ast::Param, arg: &ArgType) {
        let ty = Ty::of_arg(arg);
        let locals = self.storage(&param.name, &ty);
        for (local, (path, Field { field, .. })) in locals.iter().zip(arg.fields()) {
            self.b.function.params.push(*local);
            self.b.function.slots.push(SlotSource::Argument { param: index, path, field });
            self.b.function.locals[*local].nonneg = matches!(field, SlotField::Shape(_));
        }
        if self.cx.ptx {
            self.acquire_maps(arg, &mut locals.iter().copied(), param.span);
        }
        self.declare_param(param, ty, locals);
    }

    /// Makes the tensor maps of a parameter, which the host has written, visible to the copies of boxes.
    fn acquire_maps(&mut self, arg: &ArgType, locals: &mut dyn Iterator<Item = LocalId>, span: Span) {
        match arg {
            ArgType::Struct(class, _) if BoxType::of_class(*class).is_some() => {
                let words: Vec<LocalId> = locals.take(arg.fields().len()).collect();
                let args: Vec<_> = words.iter().take(1).map(|&data| self.b.read(data, span)).collect();
                self.b.op(Op::AsyncCopy(AsyncCopy::BoxMap), Vec::new(), args, span);
            }
            ArgType::Tuple(items) | ArgType::Struct(_, items) => {
                for item in items {
                    self.acquire_maps(item, locals, span);
                }
            }
            ArgType::Value(_)
            | ArgType::Array(_)
            | ArgType::None
            | ArgType::Enum(..)
            | ArgType::Record(_)
            | ArgType::Class(_)
            | ArgType::Pointer(_)
            | ArgType::Optional(_) => locals.take(arg.fields().len()).for_each(drop),
        }
    }

    /// Declares a parameter as a variable. One that is assigned in the body gets locals of its own, so that array
    /// values with the parameter's locals do not change.
    fn declare_param(&mut self, param: &ast::Param, ty: Ty, locals: Vec<LocalId>) {
        self.record_type(&param.name, &ty, param.span);
        self.note_type(&ty, param.span, Some(&param.name));
        let var = Var { ty: ty.clone(), span: param.span, maybe_undefined: false };
        if let Some(env) = &mut self.env {
            env.insert(param.name.clone(), var);
        }
        if self.names.assigned.contains(&param.name) {
            let value = self.rebuild(&ty, &mut locals.into_iter(), param.span);
            self.variables.storage.remove(&param.name);
            self.assign_var(&param.name, value, param.span);
        }
    }

    fn body(&mut self) {
        self.record_structure();
        let def = Arc::clone(&self.def);
        self.stmts(&def.ast.body);
    }

    /// Closes the function; `file` is its file in the source map.
    pub(super) fn finish(mut self, file: u32) -> Function {
        let span = self.def.ast.name_span;
        let mut head = self.zero_maybe_undefined(span);
        let mut function = self.b.finish();
        head.append(&mut function.body);
        function.body = head;
        for (_, expr) in function.exprs.iter_mut() {
            expr.span.file = file;
        }
        for (_, array) in function.local_arrays.iter_mut() {
            array.span.file = file;
        }
        function.span.file = file;
        for_each_stmt_mut(&mut function.body, &mut |stmt| stmt.span.file = file);
        let may_end = self.returns.as_ref().is_some_and(|returns| returns.may_end_thread);
        // An error in the function may be the reason for a product without a wait.
        let is_within = |error: &Diagnostic| {
            error.span.file == file && error.span.start >= span.start && error.span.end <= function.span.end
        };
        if !self.cx.diagnostics.iter().any(is_within) {
            self.cx.diagnostics.extend(in_flight::check(&mut function, may_end));
        }
        if !self.cx.ptx {
            in_flight::complete_at_once(&mut function);
        }
        function
    }

    /// The compiled device function for argument types. At `call`, reports recursion that cannot be compiled.
    pub(super) fn device_function(&mut self, def: &Arc<FunctionDef>, args: &[Ty], call: Span) -> Compiled {
        if let Some(known) =
            self.cx.functions.lowered.iter().find(|known| Arc::ptr_eq(&known.def, def) && known.args == args)
        {
            return known.clone();
        }
        let mut compiled = Compiled {
            def: Arc::clone(def),
            args: args.to_vec(),
            func: None,
            returns: Ty::Poison,
            may_end_thread: false,
            errors: Vec::new(),
        };
        let name = &def.ast.name;
        if self.cx.root.is_this_kernel(def) {
            let diagnostic = Diagnostic::error(Code::Recursion, call, format!("the kernel `{name}` calls itself"));
            self.report(diagnostic.help("make the recursive part a device function, and call it from the kernel"));
            return compiled;
        }
        if let Some(open) =
            self.cx.functions.lowering.iter_mut().find(|open| Arc::ptr_eq(&open.def, def) && open.args == args)
        {
            // Reserve its index in the module.
            let functions = &mut self.cx.module.functions;
            let empty = || functions.push(Function::new("", FunctionKind::Device, def.ast.span));
            compiled.func = Some(*open.func.get_or_insert_with(empty));
            compiled.returns = open.returns.clone();
            compiled.may_end_thread = open.may_end_thread;
            self.cx.functions.has_circles = true;
            self.check_end(&compiled, call);
            return compiled;
        }
        if self.cx.functions.has_too_many(def) {
            let message = format!("`{name}` calls itself with new argument types each time");
            let mut diagnostic = Diagnostic::error(Code::Recursion, call, message)
                .label("this call is one of them")
                .help("pass values of the same types: use an array instead of a growing tuple");
            for open in
                self.cx.functions.lowering.iter().filter(|open| Arc::ptr_eq(&open.def, def)).take(MOST_TYPES_SHOWN)
            {
                diagnostic = diagnostic.note(format!("it is called with ({})", shown_types(&open.args)));
            }
            self.report(diagnostic);
            return compiled;
        }
        let errors_before = self.cx.diagnostics.len();
        let lowered = lower_device(self.cx, def, args);
        compiled.errors = self.cx.diagnostics.split_off(errors_before);
        let is_good = compiled.errors.iter().all(|diagnostic| diagnostic.severity == Severity::Warning);
        if let Some((function, open)) = lowered.filter(|_| is_good) {
            let functions = &mut self.cx.module.functions;
            compiled.func = Some(match open.func {
                Some(func) => {
                    functions[func] = function;
                    func
                }
                None => functions.push(function),
            });
            compiled.returns = open.returns;
            compiled.may_end_thread = open.may_end_thread;
        }
        self.cx.functions.lowered.push(compiled.clone());
        compiled
    }

    /// Reports a recursive call of a function that never returns without it, unless the function has another error.
    fn check_end(&mut self, compiled: &Compiled, call: Span) {
        let name = &compiled.def.ast.name;
        let is_endless = compiled.returns == Ty::Bottom;
        let message = if is_endless {
            format!("`{name}` calls itself on every path: the recursion has no end")
        } else if compiled.returns.is_poison() {
            format!("`{name}` returns values whose types cannot be joined")
        } else {
            return;
        };
        let diagnostic = Diagnostic::error(Code::Recursion, self.at(call), message)
            .label("this call is part of the recursion")
            .help("add a branch that returns without recursing");
        self.cx.undefined.push(if is_endless {
            diagnostic.numba("cannot type infer runaway recursion")
        } else {
            diagnostic
        });
    }
}

/// The maximum number of types that an error shows.
const MOST_TYPES_SHOWN: usize = 4;

/// The declared result type of a device function, for arguments that were converted to one of its signatures.
pub(super) fn declared_result(def: &FunctionDef, args: &[Ty]) -> Option<Ty> {
    let args: Vec<_> = args.iter().map(Ty::arg).collect::<Option<_>>()?;
    let signature = def.signatures.iter().find(|sig| sig.args == args)?;
    signature.returns.as_ref().map(Ty::of_arg)
}

/// Lowers a device function: its parameters, its body, the `None` at its end. Returns the types of its `return`s.
pub(super) fn traverse_device(
    lowerer: &mut FnLowerer<'_>,
    args: &[Ty],
    expected: Option<Ty>,
    may_end_thread: bool,
) -> Vec<(Ty, Span)> {
    let def = Arc::clone(&lowerer.def);
    lowerer.returns = Some(Returns { expected, may_end_thread, found: Vec::new() });
    for (param, ty) in def.ast.params.iter().zip(args) {
        let locals = lowerer.storage(&param.name, ty);
        lowerer.b.function.params.extend(locals.iter().copied());
        if let Ty::Array(array) = ty {
            for (local, field) in locals.iter().zip(array.fields()) {
                lowerer.b.function.locals[*local].nonneg = matches!(field, SlotField::Shape(_));
            }
        }
        lowerer.declare_param(param, ty.clone(), locals);
    }
    lowerer.body();
    let end = Span { start: def.ast.span.end, ..def.ast.span };
    if lowerer.env.is_some() {
        lowerer.lower_return(Value::Static(Static::None), end);
    }
    lowerer.returns.take().map(|returns| returns.found).unwrap_or_default()
}

/// Lowers a device function for argument types, and returns it with the information that its callers need. `None` if
/// its types could not be inferred, which has been reported.
fn lower_device(cx: &mut Lowerer, def: &Arc<FunctionDef>, args: &[Ty]) -> Option<(Function, Lowering)> {
    let name = format!("{}.{}", def.ast.name, cx.functions.n_named);
    cx.functions.n_named += 1;
    let file = cx.sources.add(&def.source);
    let Some(index) = typed(cx, def, args) else {
        cx.fault(Span { file, ..def.ast.name_span }, "a function has no argument types");
        return None;
    };
    let typed = &mut cx.functions.typed[index];
    let (loops, converges) = (std::mem::take(&mut typed.loops), typed.converges);
    let (returns, may_end_thread) = (typed.returns.clone(), typed.may_end_thread);
    cx.functions.lowering.push(Lowering {
        def: Arc::clone(def),
        args: args.to_vec(),
        func: None,
        returns: returns.clone(),
        may_end_thread,
    });
    let builder = Builder::new(Function::new(name, FunctionKind::Device, def.ast.span));
    let mut lowerer = FnLowerer::new(cx, Arc::clone(def), builder, loops);
    if !converges {
        let message = format!("the type that `{}` returns grows with each recursive call", def.ast.name);
        let diagnostic = Diagnostic::error(Code::Recursion, def.ast.name_span, message);
        lowerer.report(diagnostic.help("return values of one type, and write the growing result into an array"));
    }
    let found = traverse_device(&mut lowerer, args, Some(returns.clone()), may_end_thread);
    let joined = joined_returns(&found, def.typing.unwrap_or_default()).map_or(Ty::Static(Static::None), |(ty, _)| ty);
    let called_back = lowerer.cx.functions.lowering.last().is_some_and(|open| open.func.is_some());
    if let Ty::Conflict(conflict) = &joined {
        let diagnostic = Diagnostic::error(
            Code::ReturnTypes,
            conflict.second_span,
            format!("`{}` returns {} here and {} elsewhere", def.ast.name, conflict.second, conflict.first),
        )
        .also(conflict.first_span, format!("returns {} here", conflict.first))
        .help("return values of one type on every path");
        lowerer.report(diagnostic);
    } else {
        // The result types of a recursive function may have become more general after these returns were lowered.
        let here = def.ast.name_span;
        let holds = joined == returns
            || (called_back && promote::join(&returns, here, &joined, here, def.typing.unwrap_or_default()) == returns);
        let ends = lowerer.ends_thread == may_end_thread || (called_back && may_end_thread);
        if !(holds || declared_result(def, args).is_some()) || !ends {
            let place = lowerer.at(here);
            if !lowerer.cx.explained() {
                lowerer.cx.fault(place, "a function does not return the type that its typing found");
            }
        }
    }
    lowerer.b.function.results = returns.parts().into_iter().map(|(_, ty)| ty).collect::<Vec<Type>>();
    let end_type = lowerer.end_type();
    lowerer.b.function.results.extend(may_end_thread.then_some(end_type));
    let function = lowerer.finish(file);
    Some((function, cx.functions.lowering.pop()?))
}

impl FnLowerer<'_> {
    /// Lowers `return value` in a device function: converts the value to the common type of all returns.
    pub(super) fn lower_return(&mut self, value: Value, span: Span) {
        let value = self.close_over(value, span);
        let value = self.with_written(value, span);
        let ty = self.ty_of(&value);
        let is_there = |expected: &Ty| expected.optional().is_none() && *expected != Ty::Static(Static::None);
        let declared = self.returns.as_ref().and_then(|returns| returns.expected.as_ref()).is_some_and(is_there);
        // A signature without an optional result: a thread that returns `None` ends.
        let (value, ty) = match ty.optional() {
            Some(inner) if declared => (self.not_none(value, span), inner.clone()),
            Some(_) | None => (value, ty),
        };
        if let Some(expected) = self.returns.as_ref().and_then(|returns| returns.expected.clone())
            && (ty.is_own() || expected.is_own())
        {
            let text = ty.chars().is_some();
            let (what, help) = if text {
                ("a string", "return the element of an array itself (`return names[i]`), or its index")
            } else {
                ("an array", "make the array in the function that calls this one, and pass it")
            };
            let name = &self.def.ast.name;
            let message = format!("`{name}` returns {what} in its own local memory, which is freed when it returns");
            let diagnostic = Diagnostic::error(Code::ReturnTypes, span, message);
            self.report(diagnostic.help(help));
            self.env = None;
            return;
        }
        let Some(returns) = &mut self.returns else { return };
        returns.found.push((ty.clone(), span));
        let mut parts = Vec::new();
        let may_end_thread = returns.may_end_thread;
        if let Some(expected) = returns.expected.clone() {
            match self.try_convert(value, &expected, span) {
                Some(value) => parts = self.flatten(value, span),
                None if ty.is_poison() || expected.is_poison() => {}
                None => {
                    let name = self.def.ast.name.clone();
                    let message = format!("`{name}` returns {ty} here, but {expected} in its signature");
                    self.error(Code::ReturnTypes, span, message);
                }
            }
        }
        if may_end_thread {
            let goes_on = self.no_end(span);
            parts.push(goes_on);
        }
        self.b.stmt(StmtKind::Return(parts), span);
        self.env = None;
    }
}
