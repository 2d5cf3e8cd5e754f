//! weft's syntax tree of Python.
//!
//! Every node has a span. Statements and expressions that no kernel can contain become `Unsupported`, so that the front
//! end can name them and continue. Constants are as written; constant expressions are folded as Python's compiler folds
//! them (`fold.rs`).

use num_bigint::BigInt;

use crate::source::Span;

/// A function definition, with or without decorators.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// The body; a docstring is an `Expr` statement of a string.
    pub body: Vec<Stmt>,
    /// Decorators, outermost first.
    pub decorators: Vec<Expr>,
    /// `-> T`.
    pub returns: Option<Expr>,
    /// The span of the name in `def name`.
    pub name_span: Span,
    /// From `def` (after the decorators) to the end of the body.
    pub span: Span,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// `x: T`.
    pub annotation: Option<Expr>,
    /// `x=1`.
    pub default: Option<Expr>,
    /// Plain, `*args` or `**kwargs`.
    pub kind: ParamKind,
    /// The name's span.
    pub span: Span,
}

impl Param {
    /// `*args` or `**kwargs`, if it is one.
    pub fn variadic(&self) -> Option<String> {
        match self.kind {
            ParamKind::VarArgs => Some(format!("*{}", self.name)),
            ParamKind::VarKeywords => Some(format!("**{}", self.name)),
            ParamKind::Plain | ParamKind::PositionalOnly | ParamKind::KeywordOnly => None,
        }
    }
}

/// The kind of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// By position or keyword.
    Plain,
    /// After `/`'s left: by position only.
    PositionalOnly,
    /// After `*`: by keyword only.
    KeywordOnly,
    /// `*args`.
    VarArgs,
    /// `**kwargs`.
    VarKeywords,
}

/// A statement and its span.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// The kind of statement.
    pub kind: StmtKind,
    /// Its location.
    pub span: Span,
}

/// The statements. Names follow Python's `ast` module.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// `a = b = value`: one target or more.
    Assign {
        /// Left-hand sides, left to right.
        targets: Vec<Expr>,
        /// Right-hand side.
        value: Expr,
    },
    /// `target: annotation = value`.
    AnnAssign {
        /// Left-hand side.
        target: Expr,
        /// The annotation; kernels ignore it.
        annotation: Expr,
        /// Right-hand side, if any.
        value: Option<Expr>,
    },
    /// `target op= value`.
    AugAssign {
        /// Left-hand side.
        target: Expr,
        /// The operator.
        op: BinOp,
        /// Right-hand side.
        value: Expr,
    },
    /// An expression as a statement.
    Expr(Expr),
    /// `if test: … else: …`; `elif` is an `If` in `orelse`.
    If {
        /// The condition.
        test: Expr,
        /// Run if true.
        body: Vec<Stmt>,
        /// Run if false.
        orelse: Vec<Stmt>,
    },
    /// `while test: … else: …`.
    While {
        /// The condition.
        test: Expr,
        /// The body.
        body: Vec<Stmt>,
        /// Run when the condition became false.
        orelse: Vec<Stmt>,
    },
    /// `for target in iter: … else: …`.
    For {
        /// The loop variable, or a tuple of them.
        target: Expr,
        /// The iterable.
        iter: Expr,
        /// The body.
        body: Vec<Stmt>,
        /// Run when the iterator was exhausted.
        orelse: Vec<Stmt>,
    },
    /// `break`.
    Break,
    /// `continue`.
    Continue,
    /// `return [value]`.
    Return(Option<Expr>),
    /// `pass`.
    Pass,
    /// `assert test[, message]`.
    Assert {
        /// The condition.
        test: Expr,
        /// The message, if any.
        message: Option<Expr>,
    },
    /// `raise [exception [from cause]]`.
    Raise(Option<Expr>),
    /// A nested `def`.
    FunctionDef(Box<Function>),
    /// `del a, b`.
    Delete(Vec<Expr>),
    /// `global a, b`.
    Global(Vec<String>),
    /// `nonlocal a, b`.
    Nonlocal(Vec<String>),
    /// Any other statement; the text names it, with its article: ``a `try` statement``.
    Unsupported(&'static str),
}

/// An expression and its span.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The kind of expression.
    pub kind: ExprKind,
    /// Its location.
    pub span: Span,
}

impl Expr {
    /// Its operands, in the order in which Python evaluates them. The operands of a conditional expression are the
    /// condition and then both branches, of which only one is evaluated. The target of a `:=` comes after its value.
    pub fn children(&self) -> Vec<&Self> {
        match &self.kind {
            ExprKind::Name(_) | ExprKind::Constant(_) | ExprKind::Unsupported(_) => Vec::new(),
            ExprKind::Binary { op: _, left, right } => vec![left, right],
            ExprKind::Unary { op: _, operand: value }
            | ExprKind::Attribute { value, attr: _ }
            | ExprKind::Starred(value) => vec![value],
            ExprKind::Bool { and: _, values: items } | ExprKind::Tuple(items) | ExprKind::List(items) => {
                items.iter().collect()
            }
            ExprKind::Compare { left, rest } => {
                std::iter::once(&**left).chain(rest.iter().map(|(_, right)| right)).collect()
            }
            ExprKind::IfExp { test, body, orelse } => vec![test, body, orelse],
            ExprKind::Call { func, args, keywords } => {
                std::iter::once(&**func).chain(args).chain(keywords.iter().map(|(_, value)| value)).collect()
            }
            ExprKind::Subscript { value, index } => vec![value, index],
            ExprKind::Slice { lower, upper, step } => {
                [lower, upper, step].into_iter().flatten().map(|part| &**part).collect()
            }
            ExprKind::Named { target, value } => vec![value, target],
            ExprKind::Lambda(function) => function.params.iter().filter_map(|param| param.default.as_ref()).collect(),
            ExprKind::Comprehension { element, loops } => {
                let parts = loops.iter().flat_map(|each| std::iter::once(&each.iter).chain(&each.tests));
                parts.chain([&**element]).collect()
            }
        }
    }
}

/// The expressions. Names follow Python's `ast` module.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A name.
    Name(String),
    /// A literal.
    Constant(Constant),
    /// `left op right`.
    Binary {
        /// The operator.
        op: BinOp,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// `op operand`.
    Unary {
        /// The operator.
        op: UnaryOp,
        /// The operand.
        operand: Box<Expr>,
    },
    /// `a and b and c`, `a or b or c`: two values or more.
    Bool {
        /// `true` for `and`, `false` for `or`.
        and: bool,
        /// The operands.
        values: Vec<Expr>,
    },
    /// `left op0 c0 op1 c1 …`.
    Compare {
        /// The first operand.
        left: Box<Expr>,
        /// Operators and the operands to their right: one or more.
        rest: Vec<(CmpOp, Expr)>,
    },
    /// `body if test else orelse`.
    IfExp {
        /// The condition.
        test: Box<Expr>,
        /// The value if true.
        body: Box<Expr>,
        /// The value if false.
        orelse: Box<Expr>,
    },
    /// `func(args, name=value)`.
    Call {
        /// The callee.
        func: Box<Expr>,
        /// Positional arguments; a `*args` is a `Starred`.
        args: Vec<Expr>,
        /// Keyword arguments; `None` for `**kwargs`.
        keywords: Vec<(Option<String>, Expr)>,
    },
    /// `value.attr`.
    Attribute {
        /// The object.
        value: Box<Expr>,
        /// The attribute's name.
        attr: String,
    },
    /// `value[index]`; several indices are one `Tuple`.
    Subscript {
        /// The object.
        value: Box<Expr>,
        /// The index.
        index: Box<Expr>,
    },
    /// `lower:upper:step` inside a subscript.
    Slice {
        /// First index.
        lower: Option<Box<Expr>>,
        /// One past the last.
        upper: Option<Box<Expr>>,
        /// Step.
        step: Option<Box<Expr>>,
    },
    /// `(a, b)`.
    Tuple(Vec<Expr>),
    /// `[a, b]`.
    List(Vec<Expr>),
    /// `*value`.
    Starred(Box<Expr>),
    /// `name := value`.
    Named {
        /// The name and its span.
        target: Box<Expr>,
        /// The value.
        value: Box<Expr>,
    },
    /// `lambda params: value`: a function without a name whose body is a `return`.
    Lambda(Box<Function>),
    /// `element for target in iter if test …`, as an argument or in brackets.
    Comprehension {
        /// The value of each iteration.
        element: Box<Expr>,
        /// The loops, outermost first.
        loops: Vec<ComprehensionLoop>,
    },
    /// Any other expression; the string names it and can follow an "a": `list comprehension`.
    Unsupported(&'static str),
}

/// A loop of a comprehension.
#[derive(Clone, Debug, PartialEq)]
pub struct ComprehensionLoop {
    /// The loop variable, or a tuple of them.
    pub target: Expr,
    /// The iterable.
    pub iter: Expr,
    /// Conditions: an iteration in which one is false yields nothing.
    pub tests: Vec<Expr>,
}

/// A literal.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// `None`.
    None,
    /// `True`, `False`.
    Bool(bool),
    /// An integer of any size.
    Int(BigInt),
    /// A float.
    Float(f64),
    /// A complex number: its real and its imaginary part.
    Complex(f64, f64),
    /// A string.
    Str(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// `...`.
    Ellipsis,
}

/// Binary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the operator that `symbol` gives")]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
    MatMul,
    LShift,
    RShift,
    BitAnd,
    BitOr,
    BitXor,
}

impl BinOp {
    /// `+`, `//`, ….
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::FloorDiv => "//",
            Self::Mod => "%",
            Self::Pow => "**",
            Self::MatMul => "@",
            Self::LShift => "<<",
            Self::RShift => ">>",
            Self::BitAnd => "&",
            Self::BitOr => "|",
            Self::BitXor => "^",
        }
    }
}

/// Unary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `+x`.
    Plus,
    /// `-x`.
    Minus,
    /// `~x`.
    Invert,
    /// `not x`.
    Not,
}

/// Comparison operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the operator that `symbol` gives")]
pub enum CmpOp {
    Eq,
    NotEq,
    Lt,
    LtE,
    Gt,
    GtE,
    Is,
    IsNot,
    In,
    NotIn,
}

impl CmpOp {
    /// `==`, `is not`, ….
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Eq => "==",
            Self::NotEq => "!=",
            Self::Lt => "<",
            Self::LtE => "<=",
            Self::Gt => ">",
            Self::GtE => ">=",
            Self::Is => "is",
            Self::IsNot => "is not",
            Self::In => "in",
            Self::NotIn => "not in",
        }
    }
}

/// A module-level statement, as the command reads files.
#[derive(Clone, Debug, PartialEq)]
pub enum ModuleItem {
    /// A function definition.
    Function(Function),
    /// A class.
    Class {
        /// Its name.
        name: String,
        /// The base classes; `None` for a class that is decorated or has a metaclass.
        bases: Option<Vec<Expr>>,
        /// Its location.
        span: Span,
    },
    /// `import a.b as c`: (dotted module, bound name).
    Import {
        /// `a.b`.
        module: String,
        /// `c`; without `as`, the first part of `module`.
        bound: String,
        /// `import a.b` without `as` binds `a`, not `a.b`.
        binds_root: bool,
        /// Its location.
        span: Span,
    },
    /// `from module import name as bound`.
    ImportFrom {
        /// The module (with its leading dots for relative imports).
        module: String,
        /// The name in it; `*` for all.
        name: String,
        /// The bound name.
        bound: String,
        /// Its location.
        span: Span,
    },
    /// `if test: … elif test: … else: …`.
    If {
        /// The conditions, each with the statements that run if it is the first true one.
        branches: Vec<(Expr, Vec<ModuleItem>)>,
        /// The statements that run if all are false.
        orelse: Vec<ModuleItem>,
    },
    /// `try`; the statements of its `finally` follow it.
    Try {
        /// The block, and the one of `else`.
        body: Vec<ModuleItem>,
        /// The handlers' blocks, without those that raise.
        handlers: Vec<Vec<ModuleItem>>,
    },
    /// Statements that may run any number of times: the blocks of loops and of `match`.
    Maybe(Vec<ModuleItem>),
    /// A name gets a value that cannot be determined from the source, or is unbound.
    Binds {
        /// The name.
        name: String,
        /// A sentence: `the loop binds it`.
        why: String,
        /// Whether a function does it, so that it may happen at any time.
        always: bool,
        /// Its location.
        span: Span,
    },
    /// A decorated function that is not at the top level, or an `async def`.
    Inner {
        /// Its name.
        name: String,
        /// Its decorators.
        decorators: Vec<Expr>,
        /// The enclosing definition: ``the function `make` ``.
        inside: String,
        /// The span of its name.
        span: Span,
    },
    /// Any other statement.
    Stmt(Stmt),
    /// A top-level statement that is Python, but newer than the parser or nested too deeply.
    Unparsed {
        /// The parser's message.
        message: String,
        /// The span of the error.
        at: Span,
        /// The statement's lines.
        span: Span,
    },
}
