//! NumPy's dtypes in strings: `from_dtype(np.dtype([("x", "f4"), ("v", np.int16, 3)], align=True))`.
//!
//! Only the forms that name each field with its type are read. A caller with a computed dtype passes a signature from
//! Python instead of a string.

use weft_artifact::{Chars, Compound, DType, Float8, Nested, Number, Record, Time};

use super::{Reader, Result, bad, count, last};
use crate::{
    diagnostic::Diagnostic,
    source::Span,
    syntax::ast::{Constant, Expr, ExprKind},
};

impl Reader<'_> {
    /// The dtype that `from_dtype` or `np.dtype` returns for an expression; `align` is the argument of the call.
    pub(super) fn numpy_dtype(self, expr: &Expr, align: bool) -> Result<DType> {
        match &expr.kind {
            ExprKind::Name(_) | ExprKind::Attribute { .. } => match self.value(expr)? {
                Some(value) => self.deeper().numpy_dtype(&value, align),
                None => self.dtype(expr),
            },
            ExprKind::Constant(Constant::Str(text)) => {
                of_text(text).ok_or_else(|| bad(expr.span, format!("`{text}` is no dtype that weft knows")))
            }
            ExprKind::List(fields) => {
                let fields = fields.iter().map(|field| self.field(field, align)).collect::<Result<Vec<_>>>()?;
                let fields: Vec<(&str, DType)> = fields.iter().map(|(name, dtype)| (name.as_str(), *dtype)).collect();
                let record = Record::in_order(&fields, align).map_err(|error| bad(expr.span, error.to_string()))?;
                intern(Compound::Record(record), expr.span)
            }
            ExprKind::Tuple(parts) => match parts.as_slice() {
                [item, shape] => self.repeated(item, shape, align),
                _ => Err(not_a_dtype(expr.span)),
            },
            ExprKind::Call { func, args, keywords } => {
                let path = self.path(func).unwrap_or_default();
                let flag = |value: &Expr| {
                    if let ExprKind::Constant(Constant::Bool(flag)) = value.kind { Some(flag) } else { None }
                };
                let named = keywords.iter().find(|(name, _)| name.as_deref() == Some("align")).map(|(_, value)| value);
                let align = args.get(1).or(named).map_or(Some(false), flag);
                match (last(&path), args.first(), align) {
                    ("dtype" | "from_dtype", Some(of), Some(align)) => self.numpy_dtype(of, align),
                    _ => Err(not_a_dtype(expr.span)),
                }
            }
            ExprKind::Constant(_)
            | ExprKind::Binary { .. }
            | ExprKind::Unary { .. }
            | ExprKind::Bool { .. }
            | ExprKind::Compare { .. }
            | ExprKind::IfExp { .. }
            | ExprKind::Subscript { .. }
            | ExprKind::Slice { .. }
            | ExprKind::Starred(_)
            | ExprKind::Named { .. }
            | ExprKind::Lambda(_)
            | ExprKind::Comprehension { .. }
            | ExprKind::Unsupported(_) => Err(not_a_dtype(expr.span)),
        }
    }

    /// `("name", type)` or `("name", type, shape)`.
    fn field(self, expr: &Expr, align: bool) -> Result<(String, DType)> {
        let ExprKind::Tuple(parts) = &expr.kind else { return Err(not_a_dtype(expr.span)) };
        let (name, dtype) = match parts.as_slice() {
            [name, dtype] => (name, self.numpy_dtype(dtype, align)?),
            [name, dtype, shape] => (name, self.repeated(dtype, shape, align)?),
            _ => return Err(not_a_dtype(expr.span)),
        };
        let ExprKind::Constant(Constant::Str(name)) = &name.kind else { return Err(not_a_dtype(name.span)) };
        Ok((name.clone(), dtype))
    }

    /// An array of a fixed shape, as a field of a record.
    fn repeated(self, item: &Expr, shape: &Expr, align: bool) -> Result<DType> {
        let item = self.numpy_dtype(item, align)?;
        let extents = if let ExprKind::Tuple(extents) = &shape.kind { extents } else { std::slice::from_ref(shape) };
        let extents: Option<Vec<u64>> = extents.iter().map(count).collect();
        let extents = extents.ok_or_else(|| bad(shape.span, "the shape of a field is ints"))?;
        let nested = Nested::new(item, extents).map_err(|error| bad(shape.span, error.to_string()))?;
        intern(Compound::Nested(nested), shape.span)
    }
}

fn intern(compound: Compound, span: Span) -> Result<DType> {
    DType::intern(compound).ok_or_else(|| bad(span, "there are too many dtypes"))
}

fn not_a_dtype(span: Span) -> Diagnostic {
    bad(span, "this is not a dtype").help("write `np.dtype([(\"x\", np.float32), (\"y\", \"i8\")])`")
}

/// The dtype with a NumPy name: `float32`, `f4`, `<i8`, `S4`, `U4`, `M8[ns]`, `datetime64[D]`.
fn of_text(text: &str) -> Option<DType> {
    if let Some(number) =
        Number::from_numpy_name(text).or_else(|| Number::from_name(text).filter(|of| of.name() == text))
    {
        return Some(number.into());
    }
    if let Some(format) = Float8::from_name(text) {
        return DType::intern(Compound::Float8(format));
    }
    let text = text.strip_prefix(['<', '=', '|']).unwrap_or(text);
    let (kind, rest) = text.split_at_checked(1)?;
    let time = match (kind, rest.strip_prefix('8')) {
        ("M", Some(unit)) => Time::from_name(&format!("datetime64{unit}")),
        ("m", Some(unit)) => Time::from_name(&format!("timedelta64{unit}")),
        _ => Time::from_name(text),
    };
    if let Some(time) = time {
        return DType::intern(Compound::Time(time));
    }
    let size: u32 = rest.parse().ok().filter(|size| *size > 0)?;
    match kind {
        "S" | "U" => DType::intern(Compound::Chars(Chars::new(kind == "U", size))),
        _ => Number::from_kind(kind.chars().next()?, size.into()).map(DType::from),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse_type;

    #[test]
    fn dtypes_are_read_as_numpy_lays_them_out() {
        let cases = [
            ("from_dtype(np.float32)[:]", "array(float32, 1d, A)"),
            ("from_dtype('<i8')", "int64"),
            (
                "from_dtype(np.dtype([('x', 'f4'), ('y', np.int64)]))[::1]",
                "array(Record(x[type=float32;offset=0],y[type=int64;offset=4];12;False), 1d, C)",
            ),
            (
                "from_dtype(np.dtype([('x', 'i1'), ('v', 'f8', (2, 3)), ('s', 'U5')], align=True))",
                "Record(x[type=int8;offset=0],v[type=nestedarray(float64, (2, 3));offset=8],s[type=[unichr x 5];offset=56];80;True)",
            ),
            (
                "from_dtype([('t', 'M8[ns]'), ('r', [('a', 'b1'), ('b', ('i2', 2))])])",
                "Record(t[type=datetime64[ns];offset=0],r[type=Record(a[type=boolean;offset=0],\
                 b[type=nestedarray(int16, (2,));offset=1];5;False);offset=8];13;False)",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_type(text).map(|ty| ty.to_string()).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_dtype_says_so() {
        for (text, at) in [
            ("from_dtype('f3')", 11),
            ("from_dtype([('x', 'f4', n)])", 24),
            ("from_dtype([x])", 12),
            ("from_dtype([('x', 'f4'), ('x', 'f4')])", 11),
            ("from_dtype({'names': x})", 11),
        ] {
            assert_eq!(parse_type(text).expect_err(text).span.start, at, "{text}");
        }
    }
}
