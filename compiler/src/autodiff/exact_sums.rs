//! Sums of gradients whose bits do not depend on the order of the threads, for reproducible adjoint kernels.
//!
//! ```text
//! atomic.add p.adjoint[i], t      $first = sums[k] + i * WORDS
//!                                 atomic.add sums[$first + w], +-d0
//!                                 atomic.add sums[$first + w + 1], +-d1
//!                                 atomic.add sums[$first + w + 2], +-d2
//! ```
//!
//! A float is an integer, its mantissa, times a power of 2. Each element of a gradient has words: the digits of its sum to
//! the base 2^26, each with the sign of its own. The digits of a term are added to two or three of them. Integer addition is
//! associative, so the words are the same for any order, on any device. After the kernel, the launch computes the sum, and
//! rounds it once (`_exact_sums.py`). A word has room for the carries of 2^36 terms.
//!
//! The last parameter is the array of the words. Its first elements are, for each adjoint, the index of the word at which
//! those of its first element begin, and the distance of its copies: the words of small adjoints have [`COPIES`] copies,
//! because a GPU executes atomic operations on one word one after the other. Others have the distance 0. The adjoint itself
//! is not accessed: the launch passes one without gaps, so that the distance of an element from the first one is its number.

use weft_artifact::Scalar;

use super::{
    arrays::{Arrays, Memory},
    build::{converted, unrounded},
    merge_additions::{addition, only_added_to},
};
use crate::{
    diagnostic::{Code, Diagnostic},
    ir::{
        Align, AtomicOp, BinaryOp, Block, CompareOp, Const, Editor, ExprId, ExprKind, Function, Local, LocalId,
        LocalKind, MathFn, Op, Space, SpecialRegister, Stmt, StmtKind, Type, for_each_stmt,
    },
    source::Span,
};

/// The bits of a digit.
const DIGIT: i128 = 26;

/// The copies of the words of small adjoints.
const COPIES: i128 = 64;

/// The bits of a float64: those of its fraction, and the largest exponent, of infinities and NaNs.
const FRACTION: i128 = 52;
const NOT_FINITE: i128 = 2047;

/// The words of an element, by the type of its terms.
struct Format {
    /// How many; the last one has the kinds of terms that are not finite.
    words: i128,
    /// The exponent of the first bit of the first word, as a float64 has it.
    lowest: i128,
    /// The bits of a float64's mantissa that are always 0.
    unused: i128,
    /// The digits of a term.
    digits: usize,
}

impl Format {
    fn of(elem: Scalar) -> Self {
        if elem == Scalar::F64 {
            Self { words: 82, lowest: 1, unused: 0, digits: 3 }
        } else {
            // The smallest positive float32 is 2^-149.
            Self { words: 13, lowest: 1023 - 149, unused: 29, digits: 2 }
        }
    }
}

/// Replaces the atomic additions to gradients.
///
/// # Errors
///
/// An addition to an array that has no words, or whose sum is needed before the kernel ends.
pub(super) fn run(function: &mut Function, arrays: &Arrays, has_words: bool) -> Result<(), Diagnostic> {
    let mut body = std::mem::take(&mut function.body);
    let only_added_to = only_added_to(function, arrays, &body);
    let mut refused = None;
    for_each_stmt(&body, &mut |stmt| {
        let Some((pointer, _)) = float_addition(function, stmt) else { return };
        let memory = arrays.memory(function, pointer);
        let why = match memory {
            Memory::Param(param) if !arrays.adjoints().any(|(_, adjoint)| adjoint == param) => return,
            Memory::Shared(_) if arrays.of_adjoint(memory) == memory => return,
            Memory::Dynamic if arrays.own_adjoint(memory).is_none() => return,
            Memory::Param(param) if !only_added_to.contains(&param) => {
                Some("the kernel writes the array, so the adjoint kernel needs the sum before it ends")
            }
            Memory::Param(_) if !has_words => Some("the words of the exact sum need memory, which this launch has not"),
            Memory::Param(_) if distance(function, pointer).is_none() => Some("its index in the array is not known"),
            Memory::Param(_) => None,
            Memory::Shared(_) | Memory::Dynamic => Some("exact sums have no room in shared memory"),
            Memory::Local(_) | Memory::Captured | Memory::Other => return,
        };
        if let Some(why) = why {
            refused.get_or_insert_with(|| unordered(arrays.name(arrays.of_adjoint(memory)), why, stmt.span));
        }
    });
    if let Some(refused) = refused {
        function.body = body;
        return Err(refused);
    }
    let Some(words) = arrays.sums().filter(|_| has_words) else {
        function.body = body;
        return Ok(());
    };
    let adjoints: Vec<u32> = arrays.adjoints().map(|(_, adjoint)| adjoint).collect();
    replace(function, arrays, &mut body, &adjoints, words);
    function.body = body;
    Ok(())
}

/// Refuses the additions of a function of which the tangent kernel is taken: it repeats them.
///
/// # Errors
///
/// The first one.
pub(super) fn refuse(function: &Function, arrays: &Arrays) -> Result<(), Diagnostic> {
    let mut refused = Ok(());
    for_each_stmt(&function.body, &mut |stmt| {
        if refused.is_ok()
            && let Some((pointer, _)) = float_addition(function, stmt)
        {
            let why = "the tangent kernel of an adjoint kernel has no exact sums";
            refused = Err(unordered(arrays.name(arrays.memory(function, pointer)), why, stmt.span));
        }
    });
    refused
}

fn unordered(name: &str, why: &str, span: Span) -> Diagnostic {
    let of = name.strip_suffix(".adjoint").unwrap_or(name);
    let message = format!("threads add to one element of the gradient of `{of}` in an order that is not fixed");
    Diagnostic::error(Code::Unordered, span, message)
        .label(why)
        .help("make the kernel without `reproducible`, or let each thread load elements of its own")
}

fn float_addition(function: &Function, stmt: &Stmt) -> Option<(ExprId, ExprId)> {
    let (pointer, term) = addition(stmt)?;
    let Type::Ptr(elem, space) = function.exprs[pointer].ty else { return None };
    (elem.is_float() && space != Space::Local).then_some((pointer, term))
}

/// The indices and the bytes in an address, with factors that make them numbers of floats: a shift to the right for bytes.
fn distance(function: &Function, pointer: ExprId) -> Option<Vec<(ExprId, Factor)>> {
    let Type::Ptr(elem, _) = function.exprs[pointer].ty else { return None };
    let (base, part) = if let ExprKind::Offset { base, index, scale } = function.exprs[pointer].kind {
        (base, (index, Factor::Times(scale)))
    } else if let ExprKind::ByteOffset { base, bytes } = function.exprs[pointer].kind {
        (base, (bytes, Factor::Bytes(elem.size_bytes().trailing_zeros())))
    } else {
        return function.local(pointer).map(|_| Vec::new());
    };
    let is_same = matches!(function.exprs[base].ty, Type::Ptr(of, _) if of == elem);
    let mut parts = distance(function, base).filter(|_| is_same)?;
    parts.push(part);
    Some(parts)
}

#[derive(Clone, Copy)]
enum Factor {
    Times(u32),
    Bytes(u32),
}

fn replace(function: &mut Function, arrays: &Arrays, block: &mut Block, adjoints: &[u32], words: LocalId) {
    for stmt in std::mem::take(block) {
        let mut stmt = stmt;
        for inner in stmt.kind.blocks_mut().into_iter().flatten() {
            replace(function, arrays, inner, adjoints, words);
        }
        let own = float_addition(function, &stmt).and_then(|(pointer, term)| {
            let Memory::Param(param) = arrays.memory(function, pointer) else { return None };
            let number = adjoints.iter().position(|&adjoint| adjoint == param)?;
            Some((pointer, term, number, distance(function, pointer)?))
        });
        let Some((pointer, term, number, parts)) = own else {
            block.push(stmt);
            continue;
        };
        let Type::Ptr(elem, _) = function.exprs[pointer].ty else { continue };
        let mut adder = Adder { edit: function.edit(stmt.span), words, format: Format::of(elem), out: Block::new() };
        adder.add(term, number as i128, &parts);
        block.append(&mut adder.out);
    }
}

/// Emits the addition of a term to the words of an element.
struct Adder<'a> {
    edit: Editor<'a>,
    words: LocalId,
    format: Format,
    out: Block,
}

impl Adder<'_> {
    fn local(&mut self, name: &str, value: ExprId) -> LocalId {
        let ty = self.edit.function.exprs[value].ty;
        let local = self.edit.function.locals.push(Local::new(name, LocalKind::Temp, ty));
        self.push(StmtKind::Assign(local, value));
        local
    }

    fn push(&mut self, kind: StmtKind) {
        self.out.push(Stmt { kind, span: self.edit.span });
    }

    fn int(&mut self, value: i128) -> ExprId {
        self.edit.int(value, Type::I64)
    }

    /// `a op constant`.
    fn by(&mut self, op: BinaryOp, a: ExprId, constant: i128) -> ExprId {
        let constant = self.int(constant);
        self.edit.binary(op, a, constant)
    }

    fn of(&mut self, op: BinaryOp, local: LocalId, constant: i128) -> ExprId {
        let value = self.edit.read(local);
        self.by(op, value, constant)
    }

    /// The statements of one branch.
    fn branch(&mut self, cond: ExprId, make: &mut dyn FnMut(&mut Self), otherwise: Block) {
        let outer = std::mem::take(&mut self.out);
        make(self);
        let then = std::mem::replace(&mut self.out, outer);
        self.push(StmtKind::If { cond, then, otherwise });
    }

    fn add(&mut self, term: ExprId, number: i128, parts: &[(ExprId, Factor)]) {
        let double = Type::Scalar(Scalar::F64);
        let term = unrounded(self.edit.function, term);
        let term = converted(self.edit.function, term, double);
        let term = self.local("term", term);
        let (value, zero) = (self.edit.read(term), self.edit.expr(ExprKind::Const(Const::Float(0.0)), double));
        let any = self.edit.compare(CompareOp::Ne, value, zero);
        self.branch(any, &mut |adder| adder.add_any(term, number, parts), Block::new());
    }

    /// Adds a term that is not 0.
    fn add_any(&mut self, term: LocalId, number: i128, parts: &[(ExprId, Factor)]) {
        let first = self.first(number, parts);
        let value = self.edit.read(term);
        let bits = self.edit.expr(ExprKind::Math(MathFn::Bits, vec![value]), Type::Scalar(Scalar::U64));
        let bits = self.edit.expr(ExprKind::Convert(bits), Type::I64);
        let bits = self.local("bits", bits);
        let exponent = self.of(BinaryOp::Shr, bits, FRACTION);
        let exponent = self.by(BinaryOp::And, exponent, NOT_FINITE);
        let exponent = self.local("exponent", exponent);
        let fraction = self.of(BinaryOp::And, bits, (1 << FRACTION) - 1);
        let fraction = self.local("fraction", fraction);
        let (value, most) = (self.edit.read(exponent), self.int(NOT_FINITE));
        let is_finite = self.edit.compare(CompareOp::Ne, value, most);
        let outer = std::mem::take(&mut self.out);
        self.note(first, bits, fraction);
        let otherwise = std::mem::replace(&mut self.out, outer);
        self.branch(is_finite, &mut |adder| adder.add_finite(first, bits, exponent, fraction), otherwise);
    }

    /// The index of an element's first word.
    fn first(&mut self, number: i128, parts: &[(ExprId, Factor)]) -> LocalId {
        let [start, distance] = [2 * number, 2 * number + 1].map(|index| {
            let index = self.int(index);
            let pointer = self.word(index);
            self.edit.expr(ExprKind::Load(pointer, Align::Natural), Type::I64)
        });
        let [thread, block] = [SpecialRegister::ThreadIdx(0), SpecialRegister::BlockIdx(0)].map(|register| {
            let value = self.edit.expr(ExprKind::Special(register), Type::I32);
            self.edit.expr(ExprKind::Convert(value), Type::I64)
        });
        let copy = self.edit.binary(BinaryOp::Add, thread, block);
        let copy = self.by(BinaryOp::And, copy, COPIES - 1);
        let before = self.edit.binary(BinaryOp::Mul, copy, distance);
        let mut first = self.edit.binary(BinaryOp::Add, start, before);
        for &(part, factor) in parts {
            let part = self.edit.function.copy_expr(part);
            let count = match factor {
                Factor::Times(scale) => self.by(BinaryOp::Mul, part, self.format.words * i128::from(scale)),
                Factor::Bytes(shift) => {
                    let count = self.by(BinaryOp::Shr, part, i128::from(shift));
                    self.by(BinaryOp::Mul, count, self.format.words)
                }
            };
            first = self.edit.binary(BinaryOp::Add, first, count);
        }
        self.local("first", first)
    }

    /// The address of a word.
    fn word(&mut self, index: ExprId) -> ExprId {
        let base = self.edit.read(self.words);
        let ty = self.edit.function.exprs[base].ty;
        self.edit.expr(ExprKind::Offset { base, index, scale: 1 }, ty)
    }

    /// Records that a term is not finite: 1 for a NaN, 2 for infinity, 4 for its negative.
    fn note(&mut self, first: LocalId, bits: LocalId, fraction: LocalId) {
        let (value, zero) = (self.edit.read(bits), self.int(0));
        let is_negative = self.edit.compare(CompareOp::Lt, value, zero);
        let (yes, no) = (self.int(4), self.int(2));
        let infinity = self.edit.expr(ExprKind::Select(is_negative, yes, no), Type::I64);
        let (value, zero) = (self.edit.read(fraction), self.int(0));
        let is_nan = self.edit.compare(CompareOp::Ne, value, zero);
        let one = self.int(1);
        let kind = self.edit.expr(ExprKind::Select(is_nan, one, infinity), Type::I64);
        let index = self.of(BinaryOp::Add, first, self.format.words - 1);
        let pointer = self.word(index);
        self.push(StmtKind::Op { op: Op::atomic(AtomicOp::Or), results: Vec::new(), args: vec![pointer, kind] });
    }

    fn add_finite(&mut self, first: LocalId, bits: LocalId, exponent: LocalId, fraction: LocalId) {
        // A number without the first bit has the exponent of the smallest one with it.
        let (value, zero) = (self.edit.read(exponent), self.int(0));
        let is_normal = self.edit.compare(CompareOp::Ne, value, zero);
        let (whole, part) = (self.of(BinaryOp::Or, fraction, 1 << FRACTION), self.edit.read(fraction));
        let mantissa = self.edit.expr(ExprKind::Select(is_normal, whole, part), Type::I64);
        let mantissa = self.by(BinaryOp::Shr, mantissa, self.format.unused);
        let mantissa = self.local("mantissa", mantissa);
        let position = self.of(BinaryOp::Max, exponent, 1);
        let position = self.by(BinaryOp::Sub, position, self.format.lowest);
        let position = self.local("position", position);
        let digit = self.of(BinaryOp::DivNonneg, position, DIGIT);
        let digit = self.local("digit", digit);
        let (value, before) = (self.edit.read(position), self.of(BinaryOp::Mul, digit, DIGIT));
        let shift = self.edit.binary(BinaryOp::Sub, value, before);
        let shift = self.local("shift", shift);
        let sign = self.of(BinaryOp::Shr, bits, 63);
        let sign = self.local("sign", sign);
        let mask = (1 << DIGIT) - 1;
        let (low, by) = (self.of(BinaryOp::And, mantissa, mask), self.edit.read(shift));
        let low = self.edit.binary(BinaryOp::Shl, low, by);
        let low = self.local("low", low);
        let mut digits = vec![self.of(BinaryOp::And, low, mask)];
        let carry = self.of(BinaryOp::Shr, low, DIGIT);
        if self.format.digits == 2 {
            digits.push(carry);
        } else {
            let (high, by) = (self.of(BinaryOp::Shr, mantissa, DIGIT), self.edit.read(shift));
            let high = self.edit.binary(BinaryOp::Shl, high, by);
            let high = self.local("high", high);
            let part = self.of(BinaryOp::And, high, mask);
            digits.push(self.edit.binary(BinaryOp::Add, carry, part));
            digits.push(self.of(BinaryOp::Shr, high, DIGIT));
        }
        for (number, value) in digits.into_iter().enumerate() {
            // `(value ^ sign) - sign` is `-value` where the sign is -1.
            let flip = self.edit.read(sign);
            let flipped = self.edit.binary(BinaryOp::Xor, value, flip);
            let flip = self.edit.read(sign);
            let value = self.edit.binary(BinaryOp::Sub, flipped, flip);
            let (index, start) = (self.of(BinaryOp::Add, digit, number as i128), self.edit.read(first));
            let index = self.edit.binary(BinaryOp::Add, start, index);
            let pointer = self.word(index);
            self.push(StmtKind::Op { op: Op::atomic(AtomicOp::Add), results: Vec::new(), args: vec![pointer, value] });
        }
    }
}
