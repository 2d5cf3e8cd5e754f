//! Attributes: of modules, arrays and numbers.

use weft_artifact::{Complex, DType, Layout, MatrixTile, Number, Scalar};

use crate::{
    diagnostic::{self, Code, Diagnostic, NameContext},
    frontend::{
        builtins::reduce::ARRAY_METHODS,
        cuda_cpp_names,
        lowerer::FnLowerer,
        object::{MatrixObject, ObjectKind, Static},
        refusals,
        ty::{ArrayTy, Ty, shown_path},
        value::{ArrayValue, Atom, LibraryName, Value},
    },
    intrinsics::{self, Lowering},
    ir::BinaryOp,
    request::Captured,
    source::Span,
    syntax::ast::{Expr, ExprKind},
};

/// Attributes of arrays, for "did you mean".
const ARRAY_ATTRIBUTES: [&str; 10] =
    ["shape", "size", "ndim", "dtype", "strides", "itemsize", "nbytes", "T", "real", "imag"];

impl FnLowerer<'_> {
    pub(super) fn attribute(&mut self, value: &Expr, attr: &str, span: Span) -> Value {
        let object = self.expr(value);
        if matches!(object, Value::Scalar(..) | Value::Complex(..))
            && !["real", "imag"].contains(&attr)
            && (ARRAY_ATTRIBUTES.contains(&attr) || ARRAY_METHODS.contains(&attr))
            && let Some(diagnostic) = self.not_an_array(value, &object.ty(), Code::NoSuchAttribute, span)
        {
            return self.report(diagnostic);
        }
        self.attribute_of(object, attr, span)
    }

    pub(in crate::frontend) fn attribute_of(&mut self, value: Value, attr: &str, span: Span) -> Value {
        let value = match self.overloaded_attribute(value, attr, span) {
            Ok(found) => return found,
            Err(value) => value,
        };
        match value {
            Value::Poison => Value::Poison,
            Value::Static(Static::Known(known)) => self.known_attribute(known.path(), attr, span),
            Value::Static(Static::Module(name, captured)) => {
                if let Captured::Module(_, members) = captured.as_ref()
                    && let Some(member) = members.get(attr)
                {
                    return self.captured(member, &format!("{name}.{attr}"), span);
                }
                self.error(Code::NoSuchAttribute, span, format!("`{name}` has no attribute `{attr}`"))
            }
            Value::Array(array) => self.array_attribute(&array, attr, span),
            Value::Complex(real, imag, ty) => match attr {
                "real" => Value::Scalar(real, ty.part()),
                "imag" => Value::Scalar(imag, ty.part()),
                _ => self.no_attribute(&Ty::Complex(ty), attr, &["real", "imag"], span),
            },
            Value::Static(Static::DType(number)) => match attr {
                "type" => value,
                "itemsize" => Value::Int(i128::from(number.size_bytes())),
                _ => self.no_attribute(&value.ty(), attr, &["type", "itemsize"], span),
            },
            number @ (Value::Scalar(..) | Value::Int(_) | Value::Bool(_)) => {
                let ty = number.ty().scalar().unwrap_or(Scalar::I64);
                match attr {
                    "real" => number,
                    "imag" => {
                        let zero = Value::Int(0);
                        self.number(&zero, ty, span).map_or(Value::Poison, |zero| Value::Scalar(zero, ty))
                    }
                    _ => self.no_attribute(&Ty::Scalar(ty), attr, &["real", "imag"], span),
                }
            }
            Value::Object(kind, items) => {
                if let Some(value) = self.object_attribute(&kind, &items, attr, span) {
                    return value;
                }
                let known = Self::object_attributes(&kind, &items);
                let ty = Value::Object(kind, items).ty();
                self.no_attribute(&ty, attr, &known, span)
            }
            Value::Static(Static::Class(class, ref values))
                if let Some(value) = self.class_attribute(class, values, attr, span) =>
            {
                value
            }
            other @ Value::Static(_) => self.no_attribute(&other.ty(), attr, &[], span),
        }
    }

    fn known_attribute(&mut self, path: &str, attr: &str, span: Span) -> Value {
        let full = format!("{path}.{attr}");
        if let Some(value) = self.resolve_known(&full, span) {
            return value;
        }
        if let Some(function) = self.overloaded_at(&full) {
            return Value::Static(Static::Overloaded(function));
        }
        if self.leads_to_overloaded(&full) {
            return Value::Static(Static::Known(LibraryName::Path(full)));
        }
        let shown = shown_path(path).to_owned();
        if let Some(diagnostic) = super::name::only_in_numba(&full, Code::NoSuchAttribute, span) {
            return self.report(diagnostic);
        }
        let mut diagnostic =
            Diagnostic::error(Code::NoSuchAttribute, span, format!("`{shown}` has no `{attr}` that a kernel can use"));
        let is_real = diagnostic::is_real(path, attr);
        let misspelt = |names: Vec<&'static str>| diagnostic::closest(attr, names).filter(|_| !is_real);
        if let Some(instead) = diagnostic::instead(NameContext::Kernel, &full) {
            diagnostic = diagnostic.help(instead);
        } else if let Some(own) = cuda_cpp_names::of_cuda(attr).filter(|_| path == "weft.cuda") {
            diagnostic = diagnostic.help(format!("write `{own}`"));
        } else if let Some(near) = misspelt(intrinsics::members(path).collect()) {
            diagnostic = diagnostic.help(format!("did you mean `{shown}.{near}`?"));
        } else if let Some(near) = misspelt(refusals::types_of(path)) {
            diagnostic = diagnostic.help(format!("did you mean `{shown}.{near}`?"));
        } else if let Some(listed) = refusals::listed(intrinsics::members(path)) {
            diagnostic = diagnostic.help(format!("it has {listed}"));
        } else {
            diagnostic = diagnostic.help_if(refusals::rest_of(path));
        }
        self.report(diagnostic)
    }

    /// The value of a known path: the content of a register, a constant, a type, or the name itself.
    pub(in crate::frontend) fn resolve_known(&mut self, path: &str, span: Span) -> Option<Value> {
        if path == "numpy.newaxis" {
            return Some(Value::NONE);
        }
        if let Some(tile) = MatrixTile::from_path(path) {
            return Some(Value::Object(ObjectKind::Matrix(MatrixObject::Tile(tile)), Vec::new()));
        }
        if let Some((real, imag)) = intrinsics::constant(path) {
            let real = self.b.float(Scalar::F64, real, span);
            let constant = match imag {
                None => Value::Scalar(real, Scalar::F64),
                Some(imag) => Value::Complex(real, self.b.float(Scalar::F64, imag, span), Complex::C128),
            };
            return Some(self.python(constant, span));
        }
        if let Some(limit) = self.limit(path, span) {
            return Some(limit);
        }
        if let Some(row) = intrinsics::lookup(path) {
            if let Lowering::Register(register) = row.lowering {
                return Some(Value::Scalar(self.b.special(register, span), Scalar::I32));
            }
            return Some(Value::Static(Static::Known(LibraryName::Row(row))));
        }
        let found = super::name::known(path);
        if let Value::Static(Static::Known(known)) = found {
            intrinsics::is_known(known.path()).then_some(Value::Static(Static::Known(known)))
        } else {
            Some(found)
        }
    }

    pub(super) fn array_attribute(&mut self, array: &ArrayValue, attr: &str, span: Span) -> Value {
        match attr {
            "shape" => {
                let items = array.shape.iter().map(|extent| self.extent(*extent, span)).collect();
                Value::tuple(items)
            }
            "strides" => {
                let items = (0..array.ty.ndim)
                    .map(|dim| {
                        let stride = self.stride(array, dim, span);
                        self.extent(stride, span)
                    })
                    .collect();
                Value::tuple(items)
            }
            "ndim" => Value::Int(array.ty.ndim as i128),
            "itemsize" => Value::Int(i128::from(array.ty.dtype.size_bytes())),
            "dtype" => Value::Static(Static::DType(array.ty.dtype)),
            "size" => self.product(array, 1, span),
            "nbytes" => self.product(array, array.ty.dtype.size_bytes() as i64, span),
            "T" => Self::transposed(array),
            "ctypes" => Value::Object(ObjectKind::CTypes, vec![Value::Array(array.clone())]),
            "flat" => Value::Object(ObjectKind::Flat, vec![Value::Array(array.clone())]),
            "real" | "imag" => self.part_view(array, attr == "imag", span),
            _ => match self.field_view(array, attr, span) {
                Some(view) => view,
                None => self.no_attribute(&Ty::Array(array.ty), attr, &ARRAY_ATTRIBUTES, span),
            },
        }
    }

    /// A run-time number, as in Numba: whether it is constant does not change its type.
    fn extent(&mut self, atom: Atom, span: Span) -> Value {
        let extent = self.use_atom(atom, span);
        self.python(Value::Scalar(extent, Scalar::I64), span)
    }

    /// The product of the extents, times a factor.
    fn product(&mut self, array: &ArrayValue, factor: i64, span: Span) -> Value {
        let mut product = (factor != 1).then(|| self.b.i64(factor, span));
        for extent in array.shape.clone() {
            let extent = self.use_atom(extent, span);
            product = Some(match product {
                None => extent,
                Some(before) => self.b.binary(BinaryOp::Mul, before, extent, span),
            });
        }
        match product {
            None => Value::Int(1),
            Some(product) => self.python(Value::Scalar(product, Scalar::I64), span),
        }
    }

    /// `a.T`: a view with reversed dimensions.
    pub(in crate::frontend) fn transposed(array: &ArrayValue) -> Value {
        let layout = match array.ty.layout {
            Layout::C if array.ty.ndim > 1 => Layout::F,
            Layout::F => Layout::C,
            other @ (Layout::C | Layout::Any) => other,
        };
        let mut strides = if layout == Layout::Any { array.strides.clone() } else { Vec::new() };
        strides.reverse();
        Value::Array(ArrayValue {
            ty: ArrayTy { layout, ..array.ty },
            data: array.data,
            shape: array.shape.iter().rev().copied().collect(),
            strides,
        })
    }

    /// `z.real` and `z.imag` of a complex array: views; `x.real` of a real array is the array itself.
    fn part_view(&mut self, array: &ArrayValue, imag: bool, span: Span) -> Value {
        let DType::Number(Number::Complex(complex)) = array.ty.dtype else {
            if !imag && array.ty.dtype.number().is_some() {
                return Value::Array(array.clone());
            }
            let attr = if imag { "imag" } else { "real" };
            return self.no_attribute(&Ty::Array(array.ty), attr, &ARRAY_ATTRIBUTES, span);
        };
        let strides = (0..array.ty.ndim).map(|dim| self.stride(array, dim, span)).collect();
        let layout = if array.ty.ndim == 0 { Layout::C } else { Layout::Any };
        let mut data = array.data;
        if imag {
            let base = self.use_atom(array.data, span);
            let base = self.part_pointer(base, 1, span);
            data = Atom::Local(self.b.temp(base, span));
        }
        let ty = ArrayTy { dtype: complex.part().into(), layout, ..array.ty };
        let strides = if layout == Layout::Any { strides } else { Vec::new() };
        Value::Array(ArrayValue { ty, data, shape: array.shape.clone(), strides })
    }

    /// The error of a number argument that is used like an array; `None` for any other value.
    pub(in crate::frontend) fn not_an_array(
        &self,
        value: &Expr,
        ty: &Ty,
        code: Code,
        span: Span,
    ) -> Option<Diagnostic> {
        let ExprKind::Name(name) = &value.kind else { return None };
        let index = self.def.ast.params.iter().position(|param| param.name == *name)?;
        if self.names.assigned.contains(name) || !matches!(ty, Ty::Scalar(_) | Ty::Complex(_)) {
            return None;
        }
        let kind = if self.cx.root.is_this_kernel(&self.def) { "kernel " } else { "" };
        let message = format!(
            "argument {} (`{name}`) of {kind}`{}` is {} {ty}, not an array",
            index + 1,
            self.def.ast.name,
            weft_artifact::article(&ty.to_string())
        );
        let diagnostic = Diagnostic::error(code, span, message);
        Some(
            diagnostic
                .help("pass an array, such as a NumPy array or one from `cuda.to_device`, or use the number itself"),
        )
    }

    fn no_attribute(&mut self, ty: &Ty, attr: &str, candidates: &[&str], span: Span) -> Value {
        let mut diagnostic = Diagnostic::error(Code::NoSuchAttribute, span, format!("{ty} has no attribute `{attr}`"));
        let methods = if matches!(ty, Ty::Array(_)) { ARRAY_METHODS } else { &[] };
        let known = || candidates.iter().chain(methods).copied();
        let instead =
            methods.first().and_then(|_| diagnostic::instead(NameContext::Kernel, &format!("numpy.ndarray.{attr}")));
        if let Some(instead) = instead {
            diagnostic = diagnostic.help(instead);
        } else if let Some(near) = diagnostic::closest(attr, known()).filter(|_| !is_real_of(ty, attr)) {
            diagnostic = diagnostic.help(format!("did you mean `.{near}`?"));
        } else if ty.chars().is_some() {
            diagnostic = diagnostic
                .help("in kernels strings can only be printed, concatenated and compared; format them on the host");
        } else if attr == "astype" && ty.number().is_some() {
            diagnostic = diagnostic.help("convert it by calling the type: `np.int32(x)`");
        } else if let Some(listed) = refusals::listed(known()) {
            diagnostic = diagnostic.help(format!("it has {listed}"));
        } else if !methods.is_empty() {
            diagnostic =
                diagnostic.help(format!("in kernels arrays have `{}`", known().collect::<Vec<_>>().join("`, `")));
        }
        self.report(diagnostic)
    }
}

/// Whether NumPy's and Python's values of a type have an attribute of this name.
fn is_real_of(ty: &Ty, attr: &str) -> bool {
    let owner = if matches!(ty, Ty::Array(_)) {
        "numpy.ndarray"
    } else if ty.chars().is_some() {
        "str"
    } else {
        "numpy.generic"
    };
    diagnostic::is_real(owner, attr)
}
