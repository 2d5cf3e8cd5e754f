//! Checks the IR's rules.
//!
//! It checks everything that [`super`], `expr.rs` and `stmt.rs` document about structure and types, but not a program's
//! semantics. Errors name handles as numbers (`%7` an expression, `$x` a local); the caller shows them with the text
//! form.

mod expr;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    iter::{repeat, repeat_n},
};

use weft_artifact::{ArgItem, MatrixProduct, MatrixTile, Scalar, SlotSource, SlotType, Which, format_parts};

use super::{
    Block, Circles, ExprId, ExternalId, FuncId, Function, FunctionKind, LocalId, Module, Op, Operand, ProductWait,
    PtxId, Space, Stmt, StmtKind, Type, falls_through, print::ShownSlot,
};
use crate::source::Span;

/// Checks the rules of [`super`]. Returns a sentence that names the handle for every violation.
///
/// # Errors
///
/// The violations, at least one.
pub fn verify(module: &Module) -> Result<(), Vec<String>> {
    let mut errors = Vec::new();
    check_module(module, &mut errors);
    let circles = Circles::of(module);
    for (id, function) in module.functions.iter() {
        let mut checker = Checker {
            module,
            circles: &circles,
            id,
            function,
            uses: vec![0; function.exprs.len()],
            errors: &mut errors,
        };
        checker.function();
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Checks everything outside of functions: the kernel, shared arrays, names.
fn check_module(module: &Module, errors: &mut Vec<String>) {
    match module.kernel.map(|id| (id, module.functions.get(id))) {
        None => errors.push("the module has no kernel".to_owned()),
        Some((id, None)) => errors.push(format!("the kernel {id:?} is no function")),
        Some((_, Some(function))) if function.kind == FunctionKind::Device => {
            errors.push(format!("the kernel @{} is a device function", function.name));
        }
        Some(_) => {}
    }
    let mut names = BTreeSet::new();
    for (id, function) in module.functions.iter() {
        if !names.insert(&function.name) {
            errors.push(format!("two functions have the name @{}", function.name));
        }
        if function.kind != FunctionKind::Device && module.kernel != Some(id) {
            errors.push(format!("@{} is a second kernel", function.name));
        }
    }
    for (_, array) in module.shared.iter() {
        check_array(&array.name, array.elem, array.align, errors);
    }
    if module.dynamic_shared && !module.dynamic_shared_align.is_power_of_two() {
        errors.push(format!("dynamic shared memory: alignment {} is no power of two", module.dynamic_shared_align));
    }
}

/// Checks a shared or thread-local array.
fn check_array(name: &str, elem: Scalar, align: u64, errors: &mut Vec<String>) {
    if !align.is_power_of_two() || align < elem.align_bytes() {
        errors.push(format!("array {name}: alignment {align} does not fit {elem}"));
    }
}

/// The loops that contain a statement.
#[derive(Clone, Copy)]
struct InLoops {
    /// The innermost loop contains the statement in its `body`, so `Break` and `Continue` are valid.
    in_body: bool,
    /// Some loop contains the statement in its `step`.
    in_step: bool,
}

/// Checks one function.
struct Checker<'a> {
    module: &'a Module,
    circles: &'a Circles,
    id: FuncId,
    function: &'a Function,
    /// The number of parents that were found for each expression.
    uses: Vec<u32>,
    errors: &'a mut Vec<String>,
}

impl Checker<'_> {
    fn error(&mut self, message: impl AsRef<str>) {
        self.errors.push(format!("@{}: {}", self.function.name, message.as_ref()));
    }

    /// Adds an error if `holds` is false.
    fn check(&mut self, holds: bool, message: impl FnOnce() -> String) {
        if !holds {
            self.error(message());
        }
    }

    fn span(&mut self, span: Span, what: impl FnOnce() -> String) {
        let files = self.module.sources.files();
        // A module that a test builds by hand has no files.
        let known = files.is_empty() || files.get(span.file as usize).is_some();
        self.check(span.start <= span.end && known, || format!("{}: span {span} is of no file", what()));
    }

    fn local_name(&self, id: LocalId) -> String {
        self.function
            .locals
            .get(id)
            .map_or_else(|| format!("${id:?}"), |local| format!("${}.{}", local.name, id.index()))
    }

    fn function(&mut self) {
        let function = self.function;
        self.span(function.span, || "the function".to_owned());
        for (id, local) in function.locals.iter() {
            let int = local.ty.scalar().is_some_and(Scalar::is_int);
            self.check(int || !local.nonneg, || format!("${}.{} is nonneg but no integer", local.name, id.index()));
        }
        for (_, array) in function.local_arrays.iter() {
            let mut errors = Vec::new();
            check_array(&array.name, array.elem, array.align, &mut errors);
            for error in errors {
                self.error(error);
            }
        }
        let mut params = BTreeSet::new();
        for id in &function.params {
            self.check(function.locals.get(*id).is_some(), || format!("parameter ${id:?} is no local"));
            self.check(params.insert(*id), || format!("parameter ${id:?} occurs twice"));
        }
        match function.kind {
            FunctionKind::Kernel => {
                self.check(function.results.is_empty(), || "a kernel has results".to_owned());
                self.slots();
            }
            FunctionKind::Export => {
                let parts = self.module.returns.as_ref().map_or(0, |returns| returns.fields().len());
                let (results, ends) = function.results.split_at(parts.min(function.results.len()));
                self.check(results.len() == parts && matches!(ends, [] | [Type::BOOL]), || {
                    "the results are not what it returns".to_owned()
                });
                self.slots();
            }
            FunctionKind::Device => {
                self.check(function.slots.is_empty(), || "a device function has slots".to_owned());
            }
        }
        self.block(&function.body, InLoops { in_body: false, in_step: false });
        if !function.results.is_empty() && falls_through(&function.body) {
            self.error("a path ends without `return`");
        }
    }

    /// Checks a kernel's slots against its Python parameters.
    fn slots(&mut self) {
        let function = self.function;
        if function.slots.len() != function.params.len() {
            self.error(format!("{} parameters but {} slots", function.params.len(), function.slots.len()));
            return;
        }
        for (index, (slot, param)) in function.slots.iter().zip(&function.params).enumerate() {
            self.check(!function.slots.iter().take(index).any(|other| other == slot), || {
                format!("slot {} occurs twice", ShownSlot(slot, None))
            });
            let Some(local) = function.locals.get(*param) else { continue };
            let shown = ShownSlot(slot, None);
            match self.slot_type(slot) {
                None => self.error(format!("slot {shown} is no field of the parameter")),
                Some(ty) => {
                    let name = self.local_name(*param);
                    self.check(local.ty == ty, || format!("slot {shown} is {ty}, but {name} is {}", local.ty));
                }
            }
        }
    }

    /// The type of a slot by its Python parameter; `None` if the parameter has no such field.
    fn slot_type(&self, slot: &SlotSource) -> Option<Type> {
        let (param, path, slot_field) = match slot {
            SlotSource::Argument { param, path, field } => (*param, path, *field),
            SlotSource::Runtime(slot) => match *slot {},
        };
        let leaf = self.module.params.get(param as usize)?.ty.leaf(path)?;
        if let (Some(scalar), ArgItem::Array(_)) = (slot_field.bound_type(), leaf) {
            return Some(Type::Scalar(scalar));
        }
        let which = match leaf {
            ArgItem::Value(_) | ArgItem::Record(_) | ArgItem::Pointer(_) => Which::Kernel,
            // A kernel may take a stride even if the layout determines it.
            ArgItem::Array(_) => Which::Launch,
        };
        let field = leaf.fields(which).into_iter().find(|field| field.field == slot_field)?;
        // The array of an exported function may be in any address space.
        let space = if self.function.kind == FunctionKind::Export { Space::Generic } else { Space::Global };
        match (field.ty, leaf) {
            (SlotType::Scalar(scalar), _) => Some(Type::Scalar(scalar)),
            (SlotType::Pointer, ArgItem::Array(array)) => Some(Type::Ptr(array.dtype.access().0, space)),
            (SlotType::Pointer, ArgItem::Record(dtype) | ArgItem::Pointer(dtype)) => {
                Some(Type::Ptr(dtype.access().0, space))
            }
            // The IR does not have types for values of more than eight bytes yet.
            (SlotType::Pointer, ArgItem::Value(_)) | (SlotType::Bytes { .. }, _) => None,
        }
    }

    fn block(&mut self, block: &Block, place: InLoops) {
        for stmt in block {
            self.span(stmt.span, || "a statement".to_owned());
            self.stmt(stmt, place);
        }
    }

    /// Checks a statement's operand, and returns its type.
    fn operand(&mut self, id: ExprId) -> Option<Type> {
        self.expr(id).then(|| self.function.exprs.get(id).map(|expr| expr.ty))?
    }

    /// Checks that a value of type `from` can be assigned to a local.
    fn assignable(&mut self, local: LocalId, from: Type, what: &str) {
        let name = self.local_name(local);
        match self.function.locals.get(local).map(|local| local.ty) {
            None => self.error(format!("{what}: {name} is no local")),
            Some(ty) => self.check(ty == from, || format!("{what}: {name} is {ty}, the value {from}")),
        }
    }

    fn stmt(&mut self, stmt: &Stmt, place: InLoops) {
        match &stmt.kind {
            StmtKind::Assign(local, value) => {
                if let Some(ty) = self.operand(*value) {
                    self.assignable(*local, ty, "assignment");
                }
            }
            StmtKind::Store { pointer, value, .. } => {
                let (Some(pointer), Some(value)) = (self.operand(*pointer), self.operand(*value)) else { return };
                match pointer {
                    Type::Ptr(elem, _) => self.check(value == Type::Scalar(elem), || {
                        format!("store: the value is {value}, the elements {elem}")
                    }),
                    Type::Scalar(_) => self.error(format!("store: {pointer} is no pointer")),
                }
            }
            StmtKind::Op { op, results, args } => self.op(*op, results, args),
            StmtKind::Call { results, func, args } => self.call(results, *func, args),
            StmtKind::If { cond, then, otherwise } => {
                if let Some(ty) = self.operand(*cond) {
                    self.check(ty == Type::BOOL, || format!("if: the condition is {ty}, not boolean"));
                }
                self.block(then, place);
                self.block(otherwise, place);
            }
            StmtKind::Loop { body, step } => {
                self.block(body, InLoops { in_body: true, ..place });
                self.block(step, InLoops { in_body: false, in_step: true });
            }
            StmtKind::Break => self.check(place.in_body, || "`break` outside a loop body".to_owned()),
            StmtKind::Continue => self.check(place.in_body, || "`continue` outside a loop body".to_owned()),
            StmtKind::Return(values) => {
                self.check(!place.in_step, || "`return` in the step of a loop".to_owned());
                let types: Vec<_> = values.iter().map(|value| self.operand(*value)).collect();
                let expected = &self.function.results;
                self.check(types.len() == expected.len(), || {
                    format!("return: {} values for {} results", types.len(), expected.len())
                });
                for (ty, result) in types.into_iter().flatten().zip(expected) {
                    self.check(ty == *result, || format!("return: the value is {ty}, the result {result}"));
                }
            }
        }
    }

    /// Checks an operation against its row.
    fn op(&mut self, op: Op, results: &[LocalId], args: &[ExprId]) {
        let types: Vec<_> = args.iter().map(|arg| self.operand(*arg)).collect();
        if let Op::Ptx { text, .. } = op {
            return self.inline_ptx(text, results, &types);
        }
        if let Op::External(function) = op {
            return self.external(function, results, &types);
        }
        if let Op::Multiply(product) = op {
            return self.multiply(product, results, &types);
        }
        if let Op::ProductWait(wait) = op {
            return self.product_wait(wait, results, &types);
        }
        let row = op.row();
        let (n_operands, n_results) = (self.n_operands(op, row.operands, args.len()), row.results.len());
        self.check(args.len() == n_operands, || format!("{op}: {} operands, it takes {n_operands}", args.len()));
        self.check(results.is_empty() || results.len() == n_results, || {
            format!("{op}: {} locals take its {n_results} results", results.len())
        });
        let mut elements = None;
        let operands = row.operands.iter().chain(repeat(&Operand::Rest));
        for (ty, operand) in types.into_iter().zip(operands) {
            let Some(ty) = ty else { continue };
            let element = match (operand, ty) {
                (Operand::Pointer, Type::Ptr(element, _)) | (Operand::Element, Type::Scalar(element)) => element,
                (Operand::Pointer, Type::Scalar(_)) => {
                    self.error(format!("{op}: {ty} is no pointer"));
                    continue;
                }
                (Operand::Element, Type::Ptr(..)) => {
                    self.error(format!("{op}: {ty} is no element"));
                    continue;
                }
                (Operand::Is(expected), _) => {
                    self.check(ty == *expected, || format!("{op}: an operand is {ty}, not {expected}"));
                    continue;
                }
                (Operand::Rest, _) => {
                    let word =
                        matches!(ty, Type::Scalar(Scalar::I64 | Scalar::U64 | Scalar::F64) | Type::Ptr(Scalar::U8, _));
                    self.check(word, || format!("{op}: an operand is {ty}"));
                    continue;
                }
            };
            self.check(row.elements.contains(element), || format!("{op} does not take {element}"));
            let first = *elements.get_or_insert(element);
            self.check(element == first, || format!("{op}: an operand is {element}, the elements {first}"));
        }
        for (index, (local, result)) in results.iter().zip(row.results).enumerate() {
            let ty = match result {
                Operand::Is(ty) => Some(*ty),
                Operand::Element => elements.map(Type::Scalar),
                Operand::Pointer => elements.map(|element| Type::Ptr(element, Space::Generic)),
                Operand::Rest => None,
            };
            match ty {
                Some(ty) => self.assignable(*local, ty, row.name),
                None => self.error(format!("{op}: a result has no type")),
            }
            self.check(!results.iter().take(index).any(|other| other == local), || {
                format!("{op}: a local takes two results")
            });
        }
    }

    /// Checks inline PTX against its declaration.
    fn inline_ptx(&mut self, text: PtxId, results: &[LocalId], types: &[Option<Type>]) {
        let Some(ptx) = self.module.inline_ptx.get(text) else {
            self.error(format!("ptx: {text:?} is not declared"));
            return;
        };
        let same = types.len() == ptx.operands.len()
            && types.iter().zip(&ptx.operands).all(|(ty, declared)| ty.is_none_or(|ty| ty == *declared));
        self.check(same, || format!("ptx: operands {types:?}, it takes {:?}", ptx.operands));
        self.check(results.is_empty() || results.len() == ptx.results.len(), || {
            format!("ptx: {} locals take its {} results", results.len(), ptx.results.len())
        });
        self.check(ptx.constraints.len() == ptx.results.len() + ptx.operands.len(), || {
            format!("ptx: {} constraints", ptx.constraints.len())
        });
        self.results("ptx", results, &ptx.results);
    }

    /// Checks a call of a function of another language against its declaration.
    fn external(&mut self, function: ExternalId, results: &[LocalId], types: &[Option<Type>]) {
        let Some(external) = self.module.externals.get(function) else {
            self.error(format!("external: {function:?} is not declared"));
            return;
        };
        let (takes, gives) = (external.operands(), external.results());
        let same = types.len() == takes.len()
            && types.iter().zip(&takes).all(|(ty, declared)| ty.is_none_or(|ty| ty == *declared));
        self.check(same, || format!("external: operands {types:?}, it takes {takes:?}"));
        self.check(results.is_empty() || results.len() == gives.len(), || {
            format!("external: {} locals take its {} results", results.len(), gives.len())
        });
        self.results("external", results, &gives);
    }

    /// Checks a product of matrices against its tile.
    fn multiply(&mut self, product: MatrixProduct, results: &[LocalId], types: &[Option<Type>]) {
        let tile = product.tile;
        let (word, value) = (Type::Scalar(tile.kind().register()), Type::Scalar(tile.kind().accumulator()));
        let mut takes: Vec<Type> = Vec::new();
        for (part, shared) in product.operands() {
            if shared.is_some() {
                takes.extend([Type::Ptr(tile.kind().element(part), Space::Shared), Type::I64]);
            } else {
                takes.extend(repeat_n(word, tile.registers(part)));
            }
        }
        takes.extend(tile.is_of_warpgroup().then_some(Type::I64));
        takes.extend(repeat_n(value, tile.values()));
        self.of_tile("multiply", tile, results, (types, takes));
    }

    /// Checks a wait for products against the tile of its product.
    fn product_wait(&mut self, wait: ProductWait, results: &[LocalId], types: &[Option<Type>]) {
        let Some(tile) = wait.tile else {
            let is_plain = types.is_empty() && results.is_empty();
            return self.check(is_plain, || "product_wait: operands without a product".to_owned());
        };
        let (word, value) = (Type::Scalar(tile.kind().register()), Type::Scalar(tile.kind().accumulator()));
        let takes = repeat_n(word, wait.n_left()).chain(repeat_n(value, wait.n_values())).collect();
        self.of_tile("product_wait", tile, results, (types, takes));
    }

    /// Checks the operands of an operation whose results are a tile's accumulators.
    fn of_tile(
        &mut self,
        what: &str,
        tile: MatrixTile,
        results: &[LocalId],
        (types, takes): (&[Option<Type>], Vec<Type>),
    ) {
        let same =
            types.len() == takes.len() && types.iter().zip(&takes).all(|(ty, taken)| ty.is_none_or(|ty| ty == *taken));
        self.check(same, || format!("{what}: operands {types:?}, it takes {takes:?} for {tile}"));
        self.check(results.is_empty() || results.len() == tile.values(), || {
            format!("{what}: {} locals take the {} results of {tile}", results.len(), tile.values())
        });
        self.results(what, results, &vec![Type::Scalar(tile.kind().accumulator()); tile.values()]);
    }

    /// Checks the locals that are assigned results of declared types.
    fn results(&mut self, what: &str, results: &[LocalId], types: &[Type]) {
        for (index, (local, ty)) in results.iter().zip(types).enumerate() {
            self.assignable(*local, *ty, what);
            let twice = results.iter().take(index).any(|other| other == local);
            self.check(!twice, || format!("{what}: a local takes two results"));
        }
    }

    /// The number of operands of an operation; `given` is the actual number.
    fn n_operands(&mut self, op: Op, operands: &[Operand], given: usize) -> usize {
        let known = if let Op::Fault(fault) = op {
            self.module.faults.get(fault).is_some()
        } else if let Op::FaultCall(call) = op {
            self.module.call_sites.get(call).is_some()
        } else {
            true
        };
        self.check(known, || format!("{op}: there is no such fault or call"));
        let Op::Print(format) = op else {
            return if operands.last() == Some(&Operand::Rest) { given } else { operands.len() };
        };
        let Some(format) = self.module.constants.get(format) else {
            self.error(format!("{op}: {format:?} is no constant"));
            return given;
        };
        self.check(format.elem == Scalar::U8 && format.bytes.last() == Some(&0), || {
            format!("{op}: {} is no text that ends with a zero", format.name)
        });
        format_parts(&format.bytes).map(|part| part.words()).sum()
    }

    fn call(&mut self, results: &[LocalId], func: FuncId, args: &[ExprId]) {
        let types: Vec<_> = args.iter().map(|arg| self.operand(*arg)).collect();
        let Some(callee) = self.module.functions.get(func) else {
            self.error(format!("call: {func:?} is no function"));
            return;
        };
        let name = &callee.name;
        let in_order = func < self.id || self.circles.have_both(func, self.id);
        self.check(in_order, || format!("call: @{name} is not defined before its caller"));
        self.check(callee.kind == FunctionKind::Device, || format!("call: @{name} is no device function"));
        let n_params = callee.params.len();
        self.check(args.len() == n_params, || format!("call: {} arguments, @{name} takes {n_params}", args.len()));
        for (ty, param) in types.into_iter().zip(&callee.params) {
            if let (Some(ty), Some(param)) = (ty, callee.locals.get(*param)) {
                self.check(ty == param.ty, || format!("call: an argument of @{name} is {ty}, not {}", param.ty));
            }
        }
        let n_results = callee.results.len();
        self.check(results.len() == n_results, || {
            format!("call: {} locals take the {n_results} results of @{name}", results.len())
        });
        for (index, (local, ty)) in results.iter().zip(&callee.results).enumerate() {
            self.assignable(*local, *ty, "call");
            self.check(!results.iter().take(index).any(|other| other == local), || {
                format!("call: a local takes two results of @{name}")
            });
        }
    }
}
