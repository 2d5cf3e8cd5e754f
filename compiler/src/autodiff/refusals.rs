//! The errors of programs that have no derivative, or none that the compiler can derive.

use crate::{
    diagnostic::{Code, Diagnostic},
    source::Span,
};

/// An operation whose derivative is not supported.
pub(super) fn unsupported(span: Span, what: &str, help: &str) -> Diagnostic {
    Diagnostic::error(Code::NoDerivative, span, format!("the derivative of {what} is not supported")).help(help)
}

/// A value that the reverse sweep needs and cannot compute again.
pub(super) fn not_recomputable(span: Span, why: &str, help: &str) -> Diagnostic {
    let message = format!("the reverse sweep needs this value again, but {why}");
    Diagnostic::error(Code::NotRecomputable, span, message).label("computed here").help(help)
}

/// A pointer that may point into one of several arrays.
pub(super) fn which_array(span: Span) -> Diagnostic {
    unsupported(
        span,
        "an access to one of several arrays",
        "access each array in its own branch, so that the compiler knows the array of the adjoint",
    )
}
