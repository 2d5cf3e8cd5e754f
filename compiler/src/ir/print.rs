//! The text form of modules and functions, for `--emit ir` and snapshots.
//!
//! One statement per line, expressions as trees with Python's precedence, no spans. Addresses are `$x.data[$i]`
//! (elements), `$z.data[$i by 2]` (pairs) and `$x.data[$b bytes]`; `load` reads one and `store` writes one. A constant
//! has a type suffix unless it is `int64`, `float64` or `boolean`. Printing never fails, not even for an invalid
//! module, because the verifier's errors include this text.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Write},
};

use weft_artifact::{Scalar, SlotField, SlotSource};

use super::{
    Align, BinaryOp, Block, CompareOp, Const, ExprId, ExprKind, FuncId, Function, FunctionKind, LocalArrayId, LocalId,
    Module, Op, SharedId, Stmt, StmtKind, Type, UnaryOp,
};

/// The limit on the depth of trees. Deeper parts are replaced by `…`, and so are cycles, which only an invalid module
/// has.
const MAX_DEPTH: usize = 400;

/// The precedence of an operator, in Python's order.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Level {
    Not,
    Compare,
    Or,
    Xor,
    And,
    Shift,
    Sum,
    Product,
    Unary,
    Power,
    Atom,
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for param in &self.params {
            write!(f, "param {}: {}", param.name, param.ty)?;
            if param.access.reads {
                f.write_str(" reads")?;
            }
            if param.access.writes {
                f.write_str(" writes")?;
            }
            f.write_char('\n')?;
        }
        f.write_str(&shared_arrays(self))?;
        for (index, (_, function)) in self.functions.iter().enumerate() {
            if index > 0 || !self.params.is_empty() || !self.shared.is_empty() || self.dynamic_shared {
                f.write_char('\n')?;
            }
            Printer::new(Some(self), function).function(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printer::new(None, self).function(f)
    }
}

/// The declarations of a module's shared arrays.
fn shared_arrays(module: &Module) -> String {
    let mut out = String::new();
    for (id, array) in module.shared.iter() {
        let name = repeated(&array.name, id.index(), module.shared.iter().map(|(_, other)| other.name.as_str()));
        // Writing to a `String` cannot fail.
        let _ = writeln!(out, "shared {name}: {}[{}] align {}", array.elem, array.len, array.align);
    }
    if module.dynamic_shared {
        let _ = writeln!(out, "shared dynamic align {}", module.dynamic_shared_align);
    }
    out
}

/// The text form of a slot: `x[1].shape[0]`, with the parameter's number if it has no name.
pub(super) struct ShownSlot<'a>(pub(super) &'a SlotSource, pub(super) Option<&'a str>);

impl fmt::Display for ShownSlot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (param, path, field) = match self.0 {
            SlotSource::Argument { param, path, field } => (param, path, field),
            SlotSource::Runtime(slot) => match *slot {},
        };
        match self.1 {
            Some(name) => f.write_str(name)?,
            None => write!(f, "#{param}")?,
        }
        for step in path {
            write!(f, "[{step}]")?;
        }
        match field {
            SlotField::Value => Ok(()),
            SlotField::Real => f.write_str(".real"),
            SlotField::Imag => f.write_str(".imag"),
            SlotField::Data => f.write_str(".data"),
            SlotField::Shape(axis) => write!(f, ".shape[{axis}]"),
            SlotField::Stride(axis) => write!(f, ".strides[{axis}]"),
            SlotField::Start => f.write_str(".start"),
            SlotField::Room => f.write_str(".room"),
            SlotField::Least => f.write_str(".least"),
            SlotField::Limit => f.write_str(".limit"),
        }
    }
}

/// `name`, with its number if the name is not unique.
fn repeated<'a>(name: &str, index: usize, names: impl Iterator<Item = &'a str>) -> String {
    if names.filter(|other| *other == name).count() > 1 { format!("{name}.{index}") } else { name.to_owned() }
}

/// Prints one function. The module has the names of shared arrays and callees.
struct Printer<'a> {
    module: Option<&'a Module>,
    function: &'a Function,
    /// The number of locals with each name in the function.
    names: BTreeMap<&'a str, usize>,
    /// Locals, except parameters, that statements or expressions use.
    used: BTreeSet<LocalId>,
    /// The limit on the depth of trees: at most the number of expressions, because only a cycle can be deeper.
    max_depth: usize,
}

impl<'a> Printer<'a> {
    fn new(module: Option<&'a Module>, function: &'a Function) -> Self {
        let mut printer = Self::without_names(module, function);
        printer.collect_block(&function.body);
        printer.name();
        printer
    }

    fn without_names(module: Option<&'a Module>, function: &'a Function) -> Self {
        Self {
            module,
            function,
            names: BTreeMap::new(),
            used: BTreeSet::new(),
            max_depth: MAX_DEPTH.min(function.exprs.len()),
        }
    }

    /// Counts the names of the used locals, and removes parameters from the used locals.
    fn name(&mut self) {
        for param in &self.function.params {
            self.used.remove(param);
        }
        for id in self.used.iter().chain(&self.function.params) {
            if let Some(local) = self.function.locals.get(*id) {
                *self.names.entry(&local.name).or_default() += 1;
            }
        }
    }

    fn collect_block(&mut self, block: &Block) {
        for stmt in block {
            self.used.extend(stmt.kind.assigned());
            for expr in stmt.kind.exprs() {
                self.collect_expr(expr, 0);
            }
            for inner in stmt.kind.blocks().into_iter().flatten() {
                self.collect_block(inner);
            }
        }
    }

    fn collect_expr(&mut self, id: ExprId, depth: usize) {
        let Some(expr) = self.function.exprs.get(id) else { return };
        if depth > self.max_depth {
            return;
        }
        if let ExprKind::Local(local) = expr.kind {
            self.used.insert(local);
        }
        for child in expr.kind.operands() {
            self.collect_expr(child, depth + 1);
        }
    }

    fn function(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.header(f)?;
        self.block(f, &self.function.body, 1)?;
        f.write_str("}\n")
    }

    /// The text before the body.
    fn header(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = self.function;
        match function.kind {
            FunctionKind::Kernel => write!(f, "kernel @{}(", function.name)?,
            FunctionKind::Device => write!(f, "fn @{}(", function.name)?,
            FunctionKind::Export => write!(f, "export fn @{}(", function.name)?,
        }
        for (index, id) in function.params.iter().enumerate() {
            f.write_str(if index > 0 { ",\n    " } else { "\n    " })?;
            write!(f, "{}: {}", self.local(*id), self.local_type(*id))?;
            if let Some(slot) = function.slots.get(index) {
                let param = match slot {
                    SlotSource::Argument { param, .. } => self.module.and_then(|it| it.params.get(*param as usize)),
                    SlotSource::Runtime(slot) => match *slot {},
                };
                write!(f, " = {}", ShownSlot(slot, param.map(|param| param.name.as_str())))?;
            }
        }
        f.write_str(if function.params.is_empty() { ")" } else { "\n)" })?;
        for (index, ty) in function.results.iter().enumerate() {
            write!(f, "{}{ty}", if index > 0 { ", " } else { " -> " })?;
        }
        if function.inline {
            f.write_str(" inline")?;
        }
        f.write_str(" {\n")?;
        for (id, array) in function.local_arrays.iter() {
            let names = function.local_arrays.iter().map(|(_, other)| other.name.as_str());
            let name = repeated(&array.name, id.index(), names);
            writeln!(f, "    local {name}: {}[{}] align {}", array.elem, array.len, array.align)?;
        }
        for id in &self.used {
            let has = |mark: fn(&super::Local) -> bool, text| {
                if function.locals.get(*id).is_some_and(mark) { text } else { "" }
            };
            let (nonneg, counts) = (has(|local| local.nonneg, " nonneg"), has(|local| local.counts, " counts"));
            writeln!(f, "    var {}: {}{nonneg}{counts}", self.local(*id), self.local_type(*id))?;
        }
        Ok(())
    }

    fn local(&self, id: LocalId) -> String {
        let Some(local) = self.function.locals.get(id) else { return format!("$?{}", id.index()) };
        if self.names.get(local.name.as_str()).is_some_and(|count| *count > 1) {
            format!("${}.{}", local.name, id.index())
        } else {
            format!("${}", local.name)
        }
    }

    fn local_type(&self, id: LocalId) -> String {
        self.function.locals.get(id).map_or_else(|| "?".to_owned(), |local| local.ty.to_string())
    }

    fn shared(&self, id: SharedId) -> String {
        let array = self.module.and_then(|module| Some((module, module.shared.get(id)?)));
        array.map_or_else(
            || format!("shared.?{}", id.index()),
            |(module, array)| {
                let names = module.shared.iter().map(|(_, other)| other.name.as_str());
                format!("shared.{}", repeated(&array.name, id.index(), names))
            },
        )
    }

    fn local_array(&self, id: LocalArrayId) -> String {
        self.function.local_arrays.get(id).map_or_else(
            || format!("local.?{}", id.index()),
            |local| {
                let names = self.function.local_arrays.iter().map(|(_, other)| other.name.as_str());
                format!("local.{}", repeated(&local.name, id.index(), names))
            },
        )
    }

    fn callee(&self, id: FuncId) -> String {
        match self.module.and_then(|module| module.functions.get(id)) {
            Some(function) => format!("@{}", function.name),
            None => format!("@?{}", id.index()),
        }
    }

    fn block(&self, f: &mut fmt::Formatter<'_>, block: &Block, depth: usize) -> fmt::Result {
        block.iter().try_for_each(|stmt| {
            indent(f, depth)?;
            self.stmt(f, stmt, depth)?;
            f.write_char('\n')
        })
    }

    fn stmt(&self, f: &mut fmt::Formatter<'_>, stmt: &Stmt, depth: usize) -> fmt::Result {
        match &stmt.kind {
            StmtKind::Assign(local, value) => write!(f, "{} = {}", self.local(*local), self.expr(*value)),
            StmtKind::Store { pointer, value, align } => {
                write!(f, "store{} {} = {}", aligned(*align), self.expr(*pointer), self.expr(*value))
            }
            StmtKind::Op { op, results, args } => {
                self.results(f, results)?;
                write!(f, "{op}")?;
                if let Op::Print(format) = op
                    && let Some(format) = self.module.and_then(|module| module.constants.get(*format))
                {
                    write!(
                        f,
                        " {:?}",
                        String::from_utf8_lossy(format.bytes.strip_suffix(b"\0").unwrap_or(&format.bytes))
                    )?;
                }
                if let Op::Ptx { text, .. } = op
                    && let Some(ptx) = self.module.and_then(|module| module.inline_ptx.get(*text))
                {
                    write!(f, " {:?} ({})", ptx.text, ptx.constraints.join(","))?;
                }
                if let Op::External(function) = op
                    && let Some(function) = self.module.and_then(|module| module.externals.get(*function))
                {
                    write!(f, " @{}", function.symbol)?;
                }
                if let Op::Fault(fault) = op
                    && let Some(fault) = self.module.and_then(|module| module.faults.get(*fault))
                {
                    write!(f, " {}", fault.class)?;
                }
                if args.is_empty() { Ok(()) } else { write!(f, " {}", self.exprs(args)) }
            }
            StmtKind::Call { results, func, args } => {
                self.results(f, results)?;
                write!(f, "call {}({})", self.callee(*func), self.exprs(args))
            }
            StmtKind::If { cond, then, otherwise } => {
                writeln!(f, "if {} {{", self.expr(*cond))?;
                self.block(f, then, depth + 1)?;
                indent(f, depth)?;
                f.write_char('}')?;
                match otherwise.as_slice() {
                    [] => Ok(()),
                    [only @ Stmt { kind: StmtKind::If { .. }, .. }] => {
                        f.write_str(" else ")?;
                        self.stmt(f, only, depth)
                    }
                    _ => {
                        f.write_str(" else {\n")?;
                        self.block(f, otherwise, depth + 1)?;
                        indent(f, depth)?;
                        f.write_char('}')
                    }
                }
            }
            StmtKind::Loop { body, step } => {
                f.write_str("loop {\n")?;
                self.block(f, body, depth + 1)?;
                indent(f, depth)?;
                if !step.is_empty() {
                    f.write_str("} step {\n")?;
                    self.block(f, step, depth + 1)?;
                    indent(f, depth)?;
                }
                f.write_char('}')
            }
            StmtKind::Break => f.write_str("break"),
            StmtKind::Continue => f.write_str("continue"),
            StmtKind::Return(values) if values.is_empty() => f.write_str("return"),
            StmtKind::Return(values) => write!(f, "return {}", self.exprs(values)),
        }
    }

    /// The locals that are assigned the results of an operation or call, with `=`.
    fn results(&self, f: &mut fmt::Formatter<'_>, results: &[LocalId]) -> fmt::Result {
        let locals: Vec<_> = results.iter().map(|id| self.local(*id)).collect();
        if locals.is_empty() { Ok(()) } else { write!(f, "{} = ", locals.join(", ")) }
    }

    fn exprs(&self, ids: &[ExprId]) -> String {
        ids.iter().map(|id| self.expr(*id)).collect::<Vec<_>>().join(", ")
    }

    fn expr(&self, id: ExprId) -> String {
        self.tree(id, 0).0
    }

    /// The text of an operand, in parentheses if its precedence is lower than `level`.
    fn operand(&self, id: ExprId, level: Level, depth: usize) -> String {
        let (text, own) = self.tree(id, depth + 1);
        if own < level { format!("({text})") } else { text }
    }

    fn list(&self, ids: &[ExprId], depth: usize) -> String {
        ids.iter().map(|id| self.tree(*id, depth + 1).0).collect::<Vec<_>>().join(", ")
    }

    /// The text of an expression and the precedence of its outermost operator.
    fn tree(&self, id: ExprId, depth: usize) -> (String, Level) {
        let Some(expr) = self.function.exprs.get(id) else { return (format!("%?{}", id.index()), Level::Atom) };
        if depth > self.max_depth {
            return ("…".to_owned(), Level::Atom);
        }
        let atom = |text: String| (text, Level::Atom);
        match &expr.kind {
            ExprKind::Const(value) => constant(*value, expr.ty),
            ExprKind::Local(local) => atom(self.local(*local)),
            ExprKind::Special(register) => atom(register.name()),
            ExprKind::Unary(op, a) => match op {
                UnaryOp::Neg => (format!("-{}", self.operand(*a, Level::Unary, depth)), Level::Unary),
                UnaryOp::Not if expr.ty == Type::BOOL => {
                    (format!("not {}", self.operand(*a, Level::Not, depth)), Level::Not)
                }
                UnaryOp::Not => (format!("~{}", self.operand(*a, Level::Unary, depth)), Level::Unary),
                UnaryOp::Abs => atom(format!("abs({})", self.list(&[*a], depth))),
            },
            ExprKind::Binary(op, a, b) => match infix(*op) {
                Ok((symbol, level)) => {
                    let above = if level == Level::Power { Level::Atom } else { next(level) };
                    let left = self.operand(*a, if level == Level::Power { Level::Atom } else { level }, depth);
                    (format!("{left} {symbol} {}", self.operand(*b, above, depth)), level)
                }
                Err(name) => atom(format!("{name}({})", self.list(&[*a, *b], depth))),
            },
            ExprKind::Compare(op, a, b) => {
                let symbol = match op {
                    CompareOp::Eq => "==",
                    CompareOp::Ne => "!=",
                    CompareOp::Lt => "<",
                    CompareOp::Le => "<=",
                    CompareOp::Gt => ">",
                    CompareOp::Ge => ">=",
                };
                let [left, right] = [*a, *b].map(|id| self.operand(id, Level::Or, depth));
                (format!("{left} {symbol} {right}"), Level::Compare)
            }
            ExprKind::Select(c, a, b) => atom(format!("select({})", self.list(&[*c, *a, *b], depth))),
            ExprKind::Convert(a) => atom(format!("{}({})", expr.ty, self.list(&[*a], depth))),
            ExprKind::Math(function, args) => atom(format!("math.{}({})", function.name(), self.list(args, depth))),
            ExprKind::Load(a, align) => {
                atom(format!("load{} {}", aligned(*align), self.operand(*a, Level::Atom, depth)))
            }
            ExprKind::Offset { base, index, scale } => {
                let by = if *scale == 1 { String::new() } else { format!(" by {scale}") };
                let base = self.operand(*base, Level::Atom, depth);
                atom(format!("{base}[{}{by}]", self.list(&[*index], depth)))
            }
            ExprKind::ByteOffset { base, bytes } => {
                let base = self.operand(*base, Level::Atom, depth);
                atom(format!("{base}[{} bytes]", self.list(&[*bytes], depth)))
            }
            ExprKind::ConstBase(constant) => {
                let array = self.module.and_then(|module| module.constants.get(*constant));
                let name = array.map_or("?", |array| array.name.as_str());
                atom(format!("constant.{name}.{}", constant.index()))
            }
            ExprKind::SharedBase(shared) => atom(self.shared(*shared)),
            ExprKind::DynamicShared => atom(format!("{}(shared dynamic)", expr.ty)),
            ExprKind::LocalBase(array) => atom(self.local_array(*array)),
            ExprKind::Wrap { index, extent } => atom(format!("wrap({})", self.list(&[*index, *extent], depth))),
        }
    }
}

/// The text form of a function's statements and expressions, for the text forms of structures that contain them.
pub(crate) struct FunctionText<'a> {
    printer: Printer<'a>,
    fixed: Vec<(LocalId, ExprId)>,
}

impl<'a> FunctionText<'a> {
    /// The text form of a function of a module. The structure mentions `blocks`, `exprs` and `locals`; `value` returns
    /// the value of a local that the structure defines outside of statements.
    pub(crate) fn new(
        module: &'a Module,
        function: &'a Function,
        (blocks, exprs, locals): (&[&Block], &[ExprId], &[LocalId]),
        value: &dyn Fn(LocalId) -> Option<ExprId>,
    ) -> Self {
        let mut printer = Printer::without_names(Some(module), function);
        for block in blocks {
            printer.collect_block(block);
        }
        for &expr in exprs {
            printer.collect_expr(expr, 0);
        }
        printer.used.extend(locals);
        let mut fixed = BTreeMap::new();
        loop {
            let new = printer.used.iter().filter(|local| !fixed.contains_key(*local));
            let new: Vec<_> = new.filter_map(|&local| Some((local, value(local)?))).collect();
            if new.is_empty() {
                break;
            }
            for &(_, value) in &new {
                printer.collect_expr(value, 0);
            }
            fixed.extend(new);
        }
        printer.name();
        Self { printer, fixed: fixed.into_iter().collect() }
    }

    /// The text before the body, without the closing brace.
    pub(crate) fn header(&self) -> String {
        struct Header<'a>(&'a Printer<'a>);
        impl fmt::Display for Header<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.header(f)
            }
        }
        Header(&self.printer).to_string()
    }

    /// The declarations of the module's shared arrays.
    pub(crate) fn shared_arrays(&self) -> String {
        self.printer.module.map_or_else(String::new, shared_arrays)
    }

    /// The locals with values outside of statements.
    pub(crate) fn fixed(&self) -> &[(LocalId, ExprId)] {
        &self.fixed
    }

    /// The mentioned locals that are no parameters.
    pub(crate) fn used(&self) -> impl Iterator<Item = LocalId> {
        self.printer.used.iter().copied()
    }

    /// Statements, one per line.
    pub(crate) fn block(&self, block: &Block, depth: usize) -> String {
        struct Lines<'a>(&'a Printer<'a>, &'a Block, usize);
        impl fmt::Display for Lines<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.block(f, self.1, self.2)
            }
        }
        Lines(&self.printer, block, depth).to_string()
    }

    /// An expression.
    pub(crate) fn expr(&self, id: ExprId) -> String {
        self.printer.expr(id)
    }

    /// A local.
    pub(crate) fn local(&self, id: LocalId) -> String {
        self.printer.local(id)
    }

    /// A local array.
    pub(crate) fn local_array(&self, id: LocalArrayId) -> String {
        self.printer.local_array(id)
    }

    /// A shared array.
    pub(crate) fn shared(&self, id: SharedId) -> String {
        self.printer.shared(id)
    }
}

fn indent(f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
    (0..depth).try_for_each(|_| f.write_str("    "))
}

/// A constant; a negative number has the precedence of a unary minus.
fn constant(value: Const, ty: Type) -> (String, Level) {
    let (text, negative) = match value {
        Const::Bool(value) => ((if value { "True" } else { "False" }).to_owned(), false),
        Const::Int(value) => (value.to_string(), value < 0),
        Const::Float(value) => (format!("{value:?}"), value.is_sign_negative()),
        Const::Null => ("null".to_owned(), false),
        Const::Address(address) => (format!("{address:#x}"), false),
    };
    let plain = match value {
        Const::Bool(_) => Some(Scalar::Bool),
        Const::Int(_) => Some(Scalar::I64),
        Const::Float(_) => Some(Scalar::F64),
        Const::Null | Const::Address(_) => None,
    };
    let text = if plain.is_some_and(|plain| ty == Type::Scalar(plain)) { text } else { format!("{text}:{ty}") };
    (text, if negative { Level::Unary } else { Level::Atom })
}

/// An operator's symbol and precedence, or the name of its function form.
fn infix(op: BinaryOp) -> Result<(&'static str, Level), &'static str> {
    Ok(match op {
        BinaryOp::Add => ("+", Level::Sum),
        BinaryOp::Sub => ("-", Level::Sum),
        BinaryOp::Mul => ("*", Level::Product),
        BinaryOp::Div => ("/", Level::Product),
        BinaryOp::FloorDiv => ("//", Level::Product),
        BinaryOp::FloorMod => ("%", Level::Product),
        BinaryOp::Pow => ("**", Level::Power),
        BinaryOp::Shl => ("<<", Level::Shift),
        BinaryOp::Shr => (">>", Level::Shift),
        BinaryOp::And => ("&", Level::And),
        BinaryOp::Or => ("|", Level::Or),
        BinaryOp::Xor => ("^", Level::Xor),
        BinaryOp::AddExact => return Err("add_exact"),
        BinaryOp::SubExact => return Err("sub_exact"),
        BinaryOp::MulExact => return Err("mul_exact"),
        BinaryOp::DivNonneg => return Err("div_nonneg"),
        BinaryOp::ModNonneg => return Err("mod_nonneg"),
        BinaryOp::Min => return Err("min"),
        BinaryOp::Max => return Err("max"),
    })
}

/// The next higher precedence, which the right operand of a left-associative operator must have.
fn next(level: Level) -> Level {
    match level {
        Level::Not => Level::Compare,
        Level::Compare => Level::Or,
        Level::Or => Level::Xor,
        Level::Xor => Level::And,
        Level::And => Level::Shift,
        Level::Shift => Level::Sum,
        Level::Sum => Level::Product,
        Level::Product => Level::Unary,
        Level::Unary => Level::Power,
        Level::Power | Level::Atom => Level::Atom,
    }
}

/// The suffix of an access with an explicit alignment, such as `.align4`.
fn aligned(align: Align) -> String {
    match align {
        Align::Natural => String::new(),
        Align::Bytes(bytes) => format!(".align{bytes}"),
    }
}
