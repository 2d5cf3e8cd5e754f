//! Exported device functions: a wrapper around the function that takes the arguments of an ABI.

use std::sync::Arc;

use weft_artifact::{Access, ArgType, Field, Param, SlotField, SlotSource};

use super::{
    expr::Args,
    function::{by_value, count},
    lowerer::{FnLowerer, Lowerer},
    object::Static,
    state::{LoopTable, Returns},
    ty::Ty,
    typing::result_type,
    value::Value,
};
use crate::{
    diagnostic::{Code, Diagnostic},
    ir::{Builder, Circles, Function, FunctionKind, Space, Type},
    request::{Abi, Entry, Foreign, GpuBody, Request, Role},
    source::Span,
    syntax::ast,
};

/// Lowers the function of a request into the lowerer's module, and a wrapper for other code.
pub(super) fn lower_export(cx: &mut Lowerer, request: &Request) {
    let def = Arc::clone(&request.function);
    cx.root.def = Some(Arc::clone(&def));
    let file = cx.sources.add(&def.source);
    let (span, name) = (def.ast.name_span, def.ast.name.clone());
    let at = Span { file, ..span };
    if let Some(variadic) = def.ast.params.iter().find_map(ast::Param::variadic) {
        let message = format!("a function that other code calls cannot have `{variadic}`");
        cx.diagnostics.push(Diagnostic::error(Code::UnsupportedStatement, at, message));
        return;
    }
    if let Some(GpuBody::External(external)) = &def.gpu {
        let message = format!("`{}` is linked code: there is nothing to compile", external.symbol);
        cx.diagnostics.push(Diagnostic::error(Code::NotCallable, at, message));
        return;
    }
    let (takes, given) = (def.ast.params.len(), request.args.len());
    if takes != given {
        let message = format!("`{name}` takes {}, not {given}", count(takes, "argument"));
        cx.diagnostics.push(Diagnostic::error(Code::ArgumentCount, at, message).label("defined here"));
        return;
    }
    if let Some(dtype) = request.args.iter().find_map(by_value) {
        let message = format!(
            "`{name}` takes {} {dtype} by value: pass an array of it",
            weft_artifact::article(&dtype.to_string())
        );
        cx.diagnostics.push(Diagnostic::error(Code::UnsupportedValue, at, message));
        return;
    }
    let types: Vec<Ty> = request.args.iter().map(|arg| Ty::of_arg(arg).anywhere()).collect();
    let builder = Builder::new(Function::new(name.clone(), FunctionKind::Export, def.ast.span));
    let mut lowerer = FnLowerer::new(cx, Arc::clone(&def), builder, LoopTable::new());
    let mut values = Vec::new();
    for (index, (ty, param)) in types.iter().zip(&def.ast.params).enumerate() {
        values.push((lowerer.foreign_param(index as u32, &param.name, ty, &request.args[index]), param.span));
    }
    let known = def.gpu.is_none().then(|| result_type(lowerer.cx, &def, &types));
    let may_end_thread = known.as_ref().is_some_and(|(_, may_end_thread)| *may_end_thread);
    let expected = known.as_ref().and_then(|(returns, _)| returned(returns)).map(|arg| Ty::of_arg(&arg));
    lowerer.returns = Some(Returns { expected, may_end_thread, found: Vec::new() });
    let value = lowerer.call_function(&def, Args { positional: values, keywords: Vec::new() }, span);
    let returns = known.map_or_else(|| value.ty(), |(returns, _)| returns);
    if returns.is_poison() || matches!(value, Value::Poison) {
        return;
    }
    let passed = returned(&returns);
    let c = matches!(request.options.entry, Entry::Foreign(Foreign { role: Role::Function(Abi::C), .. }));
    let expected = match &passed {
        Some(ArgType::Optional(of)) if c => {
            let message = format!("`{name}` returns {of} or None, which a C function cannot express");
            let error = Diagnostic::error(Code::ReturnTypes, span, message);
            let help = "return a tuple of the value and a flag, or declare the result without None: a thread that \
                        would return None then ends";
            lowerer.report(error.help(help));
            return;
        }
        Some(arg) => Ty::of_arg(arg),
        None if returns == Ty::Static(Static::None) => returns,
        None => {
            let message = format!("`{name}` returns {returns}, which other code cannot receive");
            let error = Diagnostic::error(Code::ReturnTypes, span, message);
            lowerer.report(error.help("return numbers or tuples of them, and write other values into an array"));
            return;
        }
    };
    lowerer.b.function.results = expected.parts().into_iter().map(|(_, ty)| ty).collect();
    lowerer.b.function.results.extend(may_end_thread.then_some(Type::BOOL));
    lowerer.returns = Some(Returns { expected: Some(expected), may_end_thread, found: Vec::new() });
    lowerer.lower_return(value, span);
    let function = lowerer.finish(file);
    let params = def.ast.params.iter().zip(&request.args).map(|(param, ty)| Param {
        name: param.name.clone(),
        ty: ty.clone(),
        access: Access { reads: true, writes: true, accumulates: false },
    });
    cx.module.params = params.collect();
    cx.module.returns = passed;
    let id = cx.module.functions.push(function);
    cx.module.kernel = Some(id);
    if cx.functions.has_circles {
        cx.module.order_functions();
        let circles = Circles::of(&cx.module);
        for (id, function) in cx.module.functions.iter_mut() {
            function.inline &= !circles.contains(id);
        }
    }
}

/// The type of a result that can be returned to other code.
fn returned(ty: &Ty) -> Option<ArgType> {
    ty.arg().filter(can_return)
}

/// Whether a value of a type may outlive its function, as numbers do and local arrays do not.
pub(super) fn can_return(ty: &ArgType) -> bool {
    match ty {
        ArgType::Value(_) | ArgType::Pointer(_) => true,
        ArgType::Tuple(items) | ArgType::Struct(_, items) => items.iter().all(can_return),
        ArgType::Enum(_, value) => can_return(value),
        ArgType::Optional(of) => can_return(of),
        ArgType::Array(_) | ArgType::None | ArgType::Record(_) | ArgType::Class(_) => false,
    }
}

impl FnLowerer<'_> {
    /// An argument that other code passes.
    fn foreign_param(&mut self, index: u32, name: &str, ty: &Ty, arg: &ArgType) -> Value {
        let locals = self.storage(name, ty);
        for (local, (path, Field { field, .. })) in locals.iter().zip(arg.fields()) {
            self.b.function.params.push(*local);
            self.b.function.slots.push(SlotSource::Argument { param: index, path, field });
            self.b.function.locals[*local].nonneg = matches!(field, SlotField::Shape(_));
        }
        self.rebuild(ty, &mut locals.into_iter(), self.def.ast.name_span)
    }
}

impl Ty {
    /// The type with its arrays in the generic address space.
    pub(super) fn anywhere(self) -> Self {
        match self {
            Self::Array(array) => Self::Array(super::ty::ArrayTy { space: Space::Generic, ..array }),
            Self::Object(kind, items) => Self::Object(kind, items.into_iter().map(Self::anywhere).collect()),
            other @ (Self::Scalar(_)
            | Self::Complex(_)
            | Self::Int(_)
            | Self::Bool(_)
            | Self::Static(_)
            | Self::Bottom
            | Self::Poison
            | Self::Conflict(_)) => other,
        }
    }
}
