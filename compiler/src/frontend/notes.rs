//! Notes on where Numba's typing rules widen numbers: the output of `weft check --notes`.
//!
//! A request's function is lowered a second time with NumPy's typing rules (`weak.rs`), and the result types of its
//! operators are compared. If Numba's type is wider, the cause is a literal, an accumulator that was initialized with
//! one, or that Numba adds integers only as `int64`. A float combined with an integer that NumPy widens, too, has a
//! note of its own.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use weft_artifact::{Number, Scalar};

use super::{
    lowerer::{FnLowerer, Lowerer},
    prelude,
    promote::is_integral,
    value::Value,
};
use crate::{
    diagnostic::{Code, Diagnostic},
    request::{FunctionDef, Request, Typing},
    source::{SourceMap, Span},
};

/// An operator with its operand and result types.
#[derive(Clone, Copy, Debug)]
pub(super) struct Computed {
    span: Span,
    symbol: &'static str,
    operands: [Number; 2],
    result: Number,
}

/// A position that identifies an operator in both lowerings: the file's name, line and column.
type NotePosition = (String, u32, u32);

impl Computed {
    fn place(&self, sources: &SourceMap) -> Option<NotePosition> {
        let file = sources.files().get(self.span.file as usize)?;
        Some((file.name.clone(), self.span.start, self.span.end))
    }
}

impl FnLowerer<'_> {
    /// Records the result type of an operator in the user's code, if the request requires it.
    pub(super) fn note_types(
        &mut self,
        symbol: &'static str,
        operands: Option<(Number, Number)>,
        result: &Value,
        span: Span,
    ) {
        // A constant integer is not computed at run time.
        let computes = !matches!(result, Value::Int(_)) && self.b.fixed_span().is_none() && !prelude::is_own(&self.def);
        if self.is_dry() || !computes {
            return;
        }
        if let (Some((left, right)), Some(result)) = (operands, result.ty().number()) {
            let found = Computed { span: self.at(span), symbol, operands: [left, right], result };
            self.cx.computed.extend([found]);
        }
    }
}

/// The notes for a request's lowered function.
pub(super) fn notes(
    request: &Request,
    lowered: &Lowerer,
    lower: impl FnOnce(&Request) -> (Vec<Computed>, SourceMap),
) -> Vec<Diagnostic> {
    let function = FunctionDef { typing: Some(Typing::Numpy), ..FunctionDef::clone(&request.function) };
    let (numpy, sources) = lower(&Request { function: Arc::new(function), ..request.clone() });
    let mut narrow: BTreeMap<NotePosition, Number> = BTreeMap::new();
    for computed in &numpy {
        let Some(place) = computed.place(&sources) else { continue };
        let known = narrow.entry(place).or_insert(computed.result);
        if computed.result.size_bytes() > known.size_bytes() {
            *known = computed.result;
        }
    }
    let mut noted = BTreeSet::new();
    let mut found = Vec::new();
    for computed in &lowered.computed {
        let Some(place) = computed.place(&lowered.sources) else { continue };
        let Some(diagnostic) = note(computed, narrow.get(&place).copied()) else { continue };
        let line = lowered
            .sources
            .files()
            .get(computed.span.file as usize)
            .map(|file| file.line_column(computed.span.start).0);
        // One note per line for integers and one for floats: the first operator.
        if noted.insert((place.0, line, kind(computed.result))) {
            found.push(diagnostic);
        }
    }
    found
}

/// The note for an operator whose type differs from NumPy's, given NumPy's type if NumPy has the operator.
fn note(computed: &Computed, numpy: Option<Number>) -> Option<Diagnostic> {
    let Computed { span, symbol, operands: [left, right], result } = *computed;
    let message = format!("`{symbol}` of {left} and {right} computes as {result}");
    let diagnostic = Diagnostic::note_at(Code::Widened, span, message);
    let numpy = numpy.filter(|numpy| kind(*numpy) == kind(result) && numpy.size_bytes() < result.size_bytes());
    if let Some(numpy) = numpy {
        let diagnostic = diagnostic.note(format!("with NumPy's types it is {numpy}"));
        // Integers of any size are computed as 64 bits.
        let wide = |operand: Number| kind(result) > 0 && operand.size_bytes() > numpy.size_bytes();
        let what = if wide(left) || wide(right) { "the wider operand" } else { "the result" };
        let help = format!("write `@cuda.jit(typing=\"numpy\")`, or cast {what}: `np.{}(…)`", shown(numpy));
        return Some(diagnostic.help(help));
    }
    let small = |number: Number| matches!(number.part(), Scalar::F16 | Scalar::BF16 | Scalar::F32);
    let whole = |number: Number| number.real().is_some_and(is_integral);
    let mixed = (small(left) && whole(right)) || (small(right) && whole(left));
    let float = if small(left) { left } else { right };
    (mixed && result.part() == Scalar::F64).then(|| {
        let diagnostic = diagnostic.note("NumPy's types give the same");
        diagnostic.help(format!("cast the integer: `np.{}(…)`", shown(float)))
    })
}

/// The NumPy name of a type.
fn shown(number: Number) -> String {
    if number == Number::BOOL { "bool_".to_owned() } else { number.to_string() }
}

/// The kind of a number: integer, float or complex.
fn kind(number: Number) -> u8 {
    match number {
        Number::Real(scalar) if is_integral(scalar) => 0,
        Number::Real(_) => 1,
        Number::Complex(_) => 2,
    }
}
