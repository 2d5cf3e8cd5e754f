//! Types and signatures as Numba writes them: `void(float32[:], int32)`, `(f4[::1], i8)`, `array(float32, 2d, C)`.
//!
//! Strings and expressions (decorators, annotations) are read by the same code: a string is parsed as a Python
//! expression first. [`parse_type`] reads every type that [`ArgType`] prints.

mod numpy;

use weft_artifact::{ArgType, ArrayType, BoxType, DType, Layout, MAX_LEAVES, MAX_NDIM, Number};

use crate::{
    diagnostic::{Code, Diagnostic, closest},
    request::{Signature, dtype_of_path},
    source::{SourceFile, Span},
    syntax::{
        ast::{Constant, Expr, ExprKind},
        parse_expression,
    },
};

type Result<T> = std::result::Result<T, Diagnostic>;

/// The meaning of a dotted name in an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Named {
    /// Its canonical path: `weft.float32`, `weft.types.Tuple`, `numpy.float32`, `builtins.int`.
    Path(String),
    /// A variable: the expression that it was assigned.
    Value(Expr),
}

/// Looks up dotted names such as `nb.types.float32`.
pub type Names<'a> = &'a dyn Fn(&str) -> Option<Named>;

/// The limit on variables that are defined by other variables. A deeper chain is a cycle.
const MAX_ALIASES: u32 = 20;

/// Modules whose members are types.
const TYPE_MODULES: [&str; 5] = ["weft", "weft.types", "weft.cuda", "weft.cuda.types", "numpy"];

/// Reads a signature: `void(float32[:], int32)`, `float32(float32)`, or the argument types alone, `(f4[::1], i8)`. The
/// location of an error is in file 0, which is `text`.
///
/// # Errors
///
/// `E0301` at the part that cannot be read.
pub fn parse_signature(text: &str) -> Result<Signature> {
    let expr = parse_text(text)?;
    let reader = Reader { names: &text_names, aliases: 0 };
    // In Python, `(f4)` is not a tuple. It can only mean a signature here.
    if text.trim_start().starts_with('(') && !matches!(expr.kind, ExprKind::Tuple(_) | ExprKind::Call { .. }) {
        return Ok(Signature { args: vec![reader.ty(&expr)?], returns: None });
    }
    reader.signature(&expr)
}

/// Reads one type: `float32`, `f4`, `float32[:, ::1]`, `array(float32, 1d, C)`, `UniTuple(int64, 2)`. The location of
/// an error is in file 0, which is `text`.
///
/// # Errors
///
/// `E0301` at the part that cannot be read.
pub fn parse_type(text: &str) -> Result<ArgType> {
    Reader { names: &text_names, aliases: 0 }.ty(&parse_text(text)?)
}

/// The signatures in a decorator's argument: a string, a type expression such as `void(float32[:], int32)`, a tuple of
/// types, or a list of these.
///
/// # Errors
///
/// `E0301` at the part that cannot be read.
pub fn signatures_of(expr: &Expr, names: Names<'_>) -> Result<Vec<Signature>> {
    Reader { names, aliases: 0 }.signatures(expr)
}

/// The type in an annotation. A string is read as a type. Python's `int`, `float`, `bool` and `complex` are int64,
/// float64, boolean and complex128.
///
/// # Errors
///
/// `E0301` at the part that cannot be read.
pub fn type_of(expr: &Expr, names: Names<'_>) -> Result<ArgType> {
    Reader { names, aliases: 0 }.ty(expr)
}

fn bad(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::BadSignature, span, message)
}

fn parse_text(text: &str) -> Result<Expr> {
    let readable = SourceFile::new("<signature>", without_dimension_letters(text));
    parse_expression(&readable, 0)
        .map_err(|error| {
            // The parser read a complete expression, but found other text instead of the end of the statement.
            let several = ["expected `\n`", "expected `\\n`"].iter().any(|start| error.message.starts_with(start));
            let early = error.message.contains("in the middle of a statement");
            match text.trim() {
                "" => bad(error.span, "the signature is empty").help("write `void()` for no arguments"),
                _ if text.contains('*') => {
                    error.help("write an array as `float32[:]`, a pointer as `CPointer(float32)`")
                }
                _ if several => Diagnostic { message: "unexpected text after the signature".to_owned(), ..error }
                    .help("pass several signatures as a list of strings: `[\"void(int32)\", \"void(float32)\"]`"),
                _ if early => Diagnostic { message: "the signature is incomplete".to_owned(), ..error },
                _ => error,
            }
        })
        .map_err(|error| Diagnostic { code: Code::BadSignature, ..error })
}

/// Makes a string readable as Python. `array(float32, 1d, C)` is not Python: the `d` of `1d` becomes a blank, so that
/// locations are preserved. In `UniTuple(int64 x 2)`, the `x` becomes a comma.
fn without_dimension_letters(text: &str) -> String {
    let is_word = |c: Option<&u8>| c.is_some_and(|c| c.is_ascii_alphanumeric() || *c == b'_');
    let bytes = text.as_bytes();
    let mut readable = text.replace(" x ", " , ");
    for at in 1..bytes.len() {
        let digit = bytes.get(at - 1).is_some_and(u8::is_ascii_digit);
        let alone = at < 2 || !is_word(bytes.get(at - 2));
        if bytes.get(at) == Some(&b'd') && digit && alone && !is_word(bytes.get(at + 1)) {
            readable.replace_range(at..=at, " ");
        }
    }
    readable
}

/// The names that a string may use: bare, or in one of the modules that have the types.
fn text_names(chain: &str) -> Option<Named> {
    let (module, name) = chain.rsplit_once('.').unwrap_or(("", chain));
    let known = match module {
        "" | "types" | "weft" | "weft.types" | "numba" | "nb" | "numba.types" | "nb.types" => "weft.types",
        "cuda" | "weft.cuda" | "numba.cuda" | "cuda.types" | "weft.cuda.types" | "numba.cuda.types" => "weft.types",
        "np" | "numpy" => "numpy",
        _ => return None,
    };
    Some(Named::Path(format!("{known}.{name}")))
}

#[derive(Clone, Copy)]
struct Reader<'a> {
    names: Names<'a>,
    aliases: u32,
}

impl Reader<'_> {
    fn signatures(self, expr: &Expr) -> Result<Vec<Signature>> {
        match &expr.kind {
            ExprKind::List(items) => items.iter().map(|item| self.signature(item)).collect(),
            ExprKind::Name(_) | ExprKind::Attribute { .. } => match self.value(expr)? {
                Some(value) => self.deeper().signatures(&value),
                None => Err(self.not_a_signature(expr)),
            },
            ExprKind::Constant(_)
            | ExprKind::Binary { .. }
            | ExprKind::Unary { .. }
            | ExprKind::Bool { .. }
            | ExprKind::Compare { .. }
            | ExprKind::IfExp { .. }
            | ExprKind::Call { .. }
            | ExprKind::Subscript { .. }
            | ExprKind::Slice { .. }
            | ExprKind::Tuple(_)
            | ExprKind::Starred(_)
            | ExprKind::Named { .. }
            | ExprKind::Lambda(_)
            | ExprKind::Comprehension { .. }
            | ExprKind::Unsupported(_) => Ok(vec![self.signature(expr)?]),
        }
    }

    fn signature(self, expr: &Expr) -> Result<Signature> {
        match &expr.kind {
            ExprKind::Constant(Constant::Str(text)) => parse_signature(text).map_err(|error| inside(error, expr, text)),
            ExprKind::Tuple(items) => Ok(Signature { args: self.types(items)?, returns: None }),
            ExprKind::Call { func, args, keywords } if !self.is_constructor(func) => {
                if let Some((_, value)) = keywords.first() {
                    return Err(bad(value.span, "a signature cannot have keyword arguments"));
                }
                Ok(Signature { args: self.types(args)?, returns: self.return_type(func)? })
            }
            ExprKind::Name(_) | ExprKind::Attribute { .. } => match self.value(expr)? {
                Some(value) => self.deeper().signature(&value),
                None => Err(self.not_a_signature(expr)),
            },
            ExprKind::Constant(_)
            | ExprKind::Binary { .. }
            | ExprKind::Unary { .. }
            | ExprKind::Bool { .. }
            | ExprKind::Compare { .. }
            | ExprKind::IfExp { .. }
            | ExprKind::Call { .. }
            | ExprKind::Subscript { .. }
            | ExprKind::Slice { .. }
            | ExprKind::List(_)
            | ExprKind::Starred(_)
            | ExprKind::Named { .. }
            | ExprKind::Lambda(_)
            | ExprKind::Comprehension { .. }
            | ExprKind::Unsupported(_) => Err(self.not_a_signature(expr)),
        }
    }

    fn not_a_signature(self, expr: &Expr) -> Diagnostic {
        let help = "write `void(float32[:], int32)`, or only the argument types: `(float32[:], int32)`";
        match self.ty(expr) {
            Ok(ty) => bad(expr.span, format!("{ty} is a type, not a signature")).help(help),
            Err(error) if matches!(expr.kind, ExprKind::Name(_) | ExprKind::Attribute { .. }) => error,
            Err(_) => bad(expr.span, "this is not a signature").help(help),
        }
    }

    fn types(self, exprs: &[Expr]) -> Result<Vec<ArgType>> {
        exprs.iter().map(|expr| self.ty(expr)).collect()
    }

    fn return_type(self, expr: &Expr) -> Result<Option<ArgType>> {
        let is_void = match self.path(expr) {
            Some(path) => matches!(last(&path), "void" | "none") && is_type_member(&path),
            None => expr.kind == ExprKind::Constant(Constant::None),
        };
        if is_void { Ok(None) } else { self.ty(expr).map(Some) }
    }

    fn ty(self, expr: &Expr) -> Result<ArgType> {
        match &expr.kind {
            ExprKind::Name(_) | ExprKind::Attribute { .. } => match self.value(expr)? {
                Some(value) => self.deeper().ty(&value),
                None if self.is_type(expr, "none") => Ok(ArgType::None),
                None if self.is_type(expr, "voidptr") => Ok(ArgType::Pointer(None)),
                None => self.dtype(expr).map(ArgType::from),
            },
            ExprKind::Constant(Constant::None) => Ok(ArgType::None),
            ExprKind::Constant(Constant::Str(text)) => parse_type(text).map_err(|error| inside(error, expr, text)),
            ExprKind::Subscript { value, index } => match self.ty(value)? {
                ArgType::Value(dtype) | ArgType::Record(dtype) => array(dtype, index),
                other @ (ArgType::Array(_)
                | ArgType::Tuple(_)
                | ArgType::None
                | ArgType::Struct(..)
                | ArgType::Enum(..)
                | ArgType::Class(_)
                | ArgType::Pointer(_)
                | ArgType::Optional(_)) => {
                    Err(bad(value.span, format!("{other} cannot be the element type of an array")))
                }
            },
            ExprKind::Call { func, args, keywords } => self.constructed(expr, func, args, keywords),
            ExprKind::Constant(_)
            | ExprKind::Binary { .. }
            | ExprKind::Unary { .. }
            | ExprKind::Bool { .. }
            | ExprKind::Compare { .. }
            | ExprKind::IfExp { .. }
            | ExprKind::Slice { .. }
            | ExprKind::Tuple(_)
            | ExprKind::List(_)
            | ExprKind::Starred(_)
            | ExprKind::Named { .. }
            | ExprKind::Lambda(_)
            | ExprKind::Comprehension { .. }
            | ExprKind::Unsupported(_) => Err(bad(expr.span, "this is not a type")),
        }
    }

    /// Whether a dotted name is the given type. (For an argument of type `None`, `none`: `void` is probably a mistake.)
    fn is_type(self, expr: &Expr, name: &str) -> bool {
        self.path(expr).is_some_and(|path| last(&path) == name && is_type_member(&path))
    }

    /// The type of a number or a vector with a dotted name.
    fn dtype(self, expr: &Expr) -> Result<DType> {
        let chain = chain(expr).unwrap_or_default();
        let path = self.path(expr);
        let dtype = match path.as_deref() {
            Some("builtins.int") => Some(DType::I64),
            Some("builtins.float") => Some(DType::F64),
            Some("builtins.bool") => Some(DType::BOOL),
            Some("builtins.complex") => Some(DType::C128),
            Some(path) => dtype_of_path(path),
            None => None,
        };
        dtype.ok_or_else(|| {
            let error = bad(expr.span, format!("`{chain}` is not a type that weft knows"));
            match last(&chain) {
                "float" => error.help("write `float32` or `float64`"),
                "int" => error.help("write `int32` or `int64`"),
                "void" | "none" => error.help("use `void` only as the return type of a kernel: `void(float32[:])`"),
                name => match closest(name, Number::all().map(Number::name)) {
                    Some(near) => error.help(format!("did you mean `{near}`?")),
                    None => error,
                },
            }
        })
    }

    fn is_constructor(self, func: &Expr) -> bool {
        self.path(func).is_some_and(|path| {
            matches!(
                last(&path),
                "array"
                    | "Array"
                    | "Tuple"
                    | "UniTuple"
                    | "from_dtype"
                    | "CPointer"
                    | "TensorMap"
                    | "Optional"
                    | "OptionalType"
                    | "optional"
            )
        })
    }

    /// `array(float32, 1d, C)`, `Array(float32, 1, 'C', readonly=True)`, `Tuple((a, b))`, `UniTuple(a, n)`,
    /// `from_dtype(np.dtype(…))`, `CPointer(float32)`, `TensorMap(float16, (128, 64), 128)`.
    fn constructed(
        self,
        expr: &Expr,
        func: &Expr,
        args: &[Expr],
        keywords: &[(Option<String>, Expr)],
    ) -> Result<ArgType> {
        let path = self.path(func).unwrap_or_default();
        match (last(&path), args) {
            ("array" | "Array", [dtype, ndim, layout, rest @ ..]) => {
                let named = keywords.iter().find(|(name, _)| name.as_deref() == Some("readonly"));
                let flag = rest.first().or(named.map(|(_, value)| value));
                let written = matches!(layout.kind, ExprKind::Constant(_));
                let readonly = match flag.map(|flag| &flag.kind) {
                    Some(ExprKind::Constant(Constant::Bool(flag))) => *flag,
                    Some(_) => return Err(bad(expr.span, "`readonly` must be True or False")),
                    // `Array(float32, 1d, C)` is the text form of a read-only array; the call `Array(float32, 1, 'C')`
                    // makes a writable one.
                    None => !written && last(&path) == "Array",
                };
                let ndim = count(ndim).filter(|ndim| *ndim <= MAX_NDIM as u64);
                let ndim =
                    ndim.ok_or_else(|| bad(args[1].span, format!("an array has 0 to {MAX_NDIM} dimensions")))? as u8;
                let layout = layout_of(layout)?;
                match self.ty(dtype)? {
                    ArgType::Value(dtype) | ArgType::Record(dtype) => {
                        Ok(ArgType::Array(ArrayType { dtype, ndim, layout, readonly }))
                    }
                    other @ (ArgType::Array(_)
                    | ArgType::Tuple(_)
                    | ArgType::None
                    | ArgType::Struct(..)
                    | ArgType::Enum(..)
                    | ArgType::Class(_)
                    | ArgType::Pointer(_)
                    | ArgType::Optional(_)) => {
                        Err(bad(dtype.span, format!("{other} cannot be the element type of an array")))
                    }
                }
            }
            ("Tuple", [Expr { kind: ExprKind::Tuple(items) | ExprKind::List(items), .. }]) => {
                Ok(ArgType::Tuple(self.types(items)?))
            }
            ("Tuple", items) => Ok(ArgType::Tuple(self.types(items)?)),
            ("from_dtype", [of]) => {
                let dtype = self.numpy_dtype(of, false)?;
                Ok(ArgType::of_value(dtype))
            }
            ("UniTuple", [item, n]) => {
                let item = self.ty(item)?;
                let each = item.leaves().max(1) as u64;
                let n =
                    count(n).filter(|n| n.checked_mul(each).is_some_and(|all| all <= MAX_LEAVES as u64)).ok_or_else(
                        || bad(n.span, format!("the number of items, at most {MAX_LEAVES} including nested ones")),
                    )?;
                Ok(ArgType::Tuple(vec![item; n as usize]))
            }
            ("CPointer", [of]) => match self.ty(of)? {
                ArgType::Value(dtype) | ArgType::Record(dtype) => Ok(ArgType::Pointer(Some(dtype))),
                other @ (ArgType::Array(_)
                | ArgType::Tuple(_)
                | ArgType::None
                | ArgType::Struct(..)
                | ArgType::Enum(..)
                | ArgType::Class(_)
                | ArgType::Pointer(_)
                | ArgType::Optional(_)) => Err(bad(of.span, format!("a pointer cannot point to {other}"))),
            },
            ("TensorMap", [scalar, sizes, swizzle]) => {
                let scalar = self.dtype(scalar)?.number().and_then(Number::real);
                let sizes = if let ExprKind::Tuple(items) = &sizes.kind { items.as_slice() } else { &[] };
                let sizes = sizes.iter().map(|size| count(size).and_then(|size| u32::try_from(size).ok()));
                let swizzle = count(swizzle).and_then(|swizzle| u32::try_from(swizzle).ok());
                let (Some(scalar), Some(sizes), Some(swizzle)) = (scalar, sizes.collect::<Option<Vec<_>>>(), swizzle)
                else {
                    return Err(bad(expr.span, format!("`TensorMap` is written `{}`", form_of("TensorMap"))));
                };
                let of = BoxType::new(scalar, sizes, swizzle).map_err(|message| bad(expr.span, message))?;
                of.arg().ok_or_else(|| bad(expr.span, "too many classes"))
            }
            ("Optional" | "OptionalType" | "optional", [of]) => {
                let ty = self.ty(of)?;
                ty.or_none().ok_or_else(|| bad(of.span, "use `none` for the type of None"))
            }
            (
                name @ ("array" | "Array" | "UniTuple" | "CPointer" | "TensorMap" | "Optional" | "OptionalType"
                | "optional"),
                _,
            ) => Err(bad(expr.span, format!("`{name}` is written `{}`", form_of(name)))),
            _ => Err(bad(expr.span, "this is not a type")),
        }
    }

    fn deeper(self) -> Self {
        Self { aliases: self.aliases + 1, ..self }
    }

    /// The canonical path of a dotted name; `None` for other expressions and for variables that are not defined by a
    /// path.
    fn path(self, expr: &Expr) -> Option<String> {
        match (self.names)(&chain(expr)?)? {
            Named::Path(path) => Some(path),
            Named::Value(value) if self.aliases < MAX_ALIASES => self.deeper().path(&value),
            Named::Value(_) => None,
        }
    }

    /// The expression that was assigned to a variable; `None` if the name is not a variable.
    fn value(self, expr: &Expr) -> Result<Option<Expr>> {
        if self.aliases >= MAX_ALIASES {
            return Err(bad(expr.span, "the definition of this name refers to itself"));
        }
        let named = chain(expr).and_then(|chain| (self.names)(&chain));
        Ok(match named {
            Some(Named::Value(value)) => Some(value),
            _ => None,
        })
    }
}

/// An example of a constructor of a type.
fn form_of(name: &str) -> &'static str {
    match name {
        "Optional" | "OptionalType" | "optional" => "Optional(float32)",
        "UniTuple" => "UniTuple(int64, 2)",
        "CPointer" => "CPointer(float32)",
        "TensorMap" => "TensorMap(float16, (128, 64), 128)",
        _ => "array(float32, 1d, C)",
    }
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

fn is_type_member(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(module, _)| TYPE_MODULES.contains(&module))
}

/// The dotted name `a.b.c`, if the expression is one.
fn chain(expr: &Expr) -> Option<String> {
    if let ExprKind::Attribute { value, attr } = &expr.kind {
        return Some(format!("{}.{attr}", chain(value)?));
    }
    if let ExprKind::Name(name) = &expr.kind { Some(name.clone()) } else { None }
}

fn count(expr: &Expr) -> Option<u64> {
    if let ExprKind::Constant(Constant::Int(value)) = &expr.kind { u64::try_from(value).ok() } else { None }
}

fn layout_of(expr: &Expr) -> Result<Layout> {
    let name = if let ExprKind::Name(name) | ExprKind::Constant(Constant::Str(name)) = &expr.kind {
        name.as_str()
    } else {
        ""
    };
    match name {
        "C" => Ok(Layout::C),
        "F" => Ok(Layout::F),
        "A" => Ok(Layout::Any),
        _ => Err(bad(expr.span, "the layout of an array must be C, F or A")),
    }
}

/// The array type `float32[:, ::1]`: the index has the number of dimensions, and marks the contiguous one.
fn array(dtype: DType, index: &Expr) -> Result<ArgType> {
    let dims = if let ExprKind::Tuple(dims) = &index.kind { dims.as_slice() } else { std::slice::from_ref(index) };
    let mut contiguous = Vec::new();
    for (axis, dim) in dims.iter().enumerate() {
        let ExprKind::Slice { lower: None, upper: None, step } = &dim.kind else {
            return Err(bad(dim.span, "write a dimension as `:` or `::1`"));
        };
        match step.as_deref() {
            None => {}
            Some(step) if count(step) == Some(1) => contiguous.push(axis),
            Some(step) => {
                let negative = matches!(&step.kind, ExprKind::Constant(Constant::Int(step)) if i64::try_from(step).is_ok_and(|step| step < 0));
                let known = if negative { "a layout cannot have a negative step" } else { "the step can only be 1" };
                return Err(bad(step.span, format!("{known}: `::1` marks the contiguous dimension")));
            }
        }
    }
    if dims.is_empty() {
        let error = bad(index.span, "write a dimension as `:` or `::1`");
        return Err(error.help(format!("write an array without dimensions as `array({dtype}, 0d, C)`")));
    }
    if dims.len() > MAX_NDIM {
        return Err(bad(index.span, format!("an array has 0 to {MAX_NDIM} dimensions, not {}", dims.len())));
    }
    let layout = match contiguous.as_slice() {
        [] => Layout::Any,
        [axis] if *axis + 1 == dims.len() => Layout::C,
        [0] => Layout::F,
        _ => return Err(bad(index.span, "only the last (C) or the first (Fortran) dimension can be `::1`")),
    };
    Ok(ArgType::Array(ArrayType { dtype, ndim: dims.len() as u8, layout, readonly: false }))
}

/// Moves the location of an error in a string's text to the location in the literal, if the literal contains the text
/// without escapes.
fn inside(error: Diagnostic, literal: &Expr, text: &str) -> Diagnostic {
    let length = literal.span.end - literal.span.start;
    let quotes = length.saturating_sub(text.len() as u32);
    if !matches!(quotes, 2 | 6) {
        return Diagnostic { span: literal.span, ..error };
    }
    let start = literal.span.start + quotes / 2;
    Diagnostic { span: Span { start: start + error.span.start, end: start + error.span.end, ..literal.span }, ..error }
}

#[cfg(test)]
mod tests;
