//! Warnings for operations in a reproducible kernel that do not give the same bits everywhere.
//!
//! There are two kinds: operations whose result depends on the order of threads, and those whose result depends on the
//! device. Races are not considered: a correct kernel has none.

use std::collections::BTreeSet;

use weft_artifact::{MatrixProduct, Scalar};

use super::Lowered;
use crate::{
    diagnostic::{Code, Diagnostic},
    ir::{AtomicOp, ExprId, Function, LocalId, Op, StmtKind, Type, for_each_expr_of_block, for_each_stmt},
    source::Span,
};

/// Adds the warnings of a lowered kernel and of the functions that it calls.
pub(super) fn warn(lowered: &mut Lowered) {
    let mut found = BTreeSet::new();
    for (_, function) in lowered.module.functions.iter() {
        of_function(function, &mut found);
    }
    for (span, Found { what, why, help }) in found {
        let message = format!("{what} is not reproducible: {why}");
        lowered.warnings.push(Diagnostic::warning(Code::NotReproducible, span, message).help_if(help));
    }
    lowered.warnings.sort_by_key(|warning| warning.span);
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    what: String,
    why: &'static str,
    help: Option<&'static str>,
}

fn of_function(function: &Function, found: &mut BTreeSet<(Span, Found)>) {
    let mut read = BTreeSet::new();
    for_each_expr_of_block(function, &function.body, &mut |id| read.extend(function.local(id)));
    for_each_stmt(&function.body, &mut |stmt| {
        let StmtKind::Op { op, results, args } = &stmt.kind else { return };
        let is_read = results.iter().any(|local: &LocalId| read.contains(local));
        if let Some(what) = of_op(function, *op, args, is_read) {
            found.insert((stmt.span, what));
        }
    });
}

fn of_op(function: &Function, op: Op, args: &[ExprId], is_read: bool) -> Option<Found> {
    let name = || op.row().name.to_owned();
    let of = |what: String, why, help| Some(Found { what, why, help });
    match op {
        Op::Atomic { op: step, .. } => {
            let element = match args.first().map(|&pointer| function.exprs[pointer].ty) {
                Some(Type::Ptr(element, _)) => element,
                Some(Type::Scalar(_)) | None => return None,
            };
            match step {
                AtomicOp::Add | AtomicOp::Sub if element.is_float() => of(
                    format!("{} of {element}", name()),
                    "each sum is rounded, and the threads have no fixed order",
                    Some(
                        "add integers, such as fixed-point numbers, or use cuda.coop or cuda.reduce, which add in a \
                         fixed order",
                    ),
                ),
                AtomicOp::Exchange | AtomicOp::Cas => of(
                    name(),
                    "the order of the threads is not fixed",
                    Some("keep it if the kernel's results do not depend on which thread is first"),
                ),
                AtomicOp::Add
                | AtomicOp::Sub
                | AtomicOp::And
                | AtomicOp::Or
                | AtomicOp::Xor
                | AtomicOp::Max
                | AtomicOp::Min
                | AtomicOp::NanMax
                | AtomicOp::NanMin
                | AtomicOp::Inc
                | AtomicOp::Dec => {
                    if !is_read {
                        return None;
                    }
                    of(
                        format!("the result of {}", name()),
                        "the order of the threads is not fixed",
                        Some("keep it if the kernel's results do not depend on which thread is first"),
                    )
                }
            }
        }
        Op::Multiply(MatrixProduct { tile, .. })
            if !tile.is_of_warpgroup() && tile.kind().accumulator() == Scalar::F32 =>
        {
            of(
                format!("a product of matrices of {}", tile.kind().names()[0]),
                "tensor cores add with a number of bits that depends on the compute capability",
                Some(
                    "keep it if all GPUs have one compute capability, which WEFT_CPU_COMPUTE_CAPABILITY sets for the \
                     CPU; products of float64 and of integers have the same bits everywhere",
                ),
            )
        }
        Op::Clock(_) => of("a clock".to_owned(), "it returns a different time on each run", None),
        Op::ActiveMask => of(
            "activemask".to_owned(),
            "the device decides which lanes execute together",
            Some("pass the mask of the lanes that take part, or vote over such a mask"),
        ),
        Op::Ptx { .. } => of("PTX".to_owned(), "a CPU runs the Python function instead", None),
        Op::External(_) => of("code of another language".to_owned(), "weft does not know what it computes", None),
        Op::Barrier
        | Op::GridBarrier
        | Op::BarrierReduce(_)
        | Op::WarpBarrier
        | Op::Shuffle(_)
        | Op::Vote(_)
        | Op::MatchAny
        | Op::MatchAll
        | Op::WarpReduce(_)
        | Op::Multiply(_)
        | Op::MatrixLoad(_)
        | Op::ProductWait(_)
        | Op::MultiplyCells(_)
        | Op::AsyncCopy(_)
        | Op::Cluster(_)
        | Op::LaneBits(_)
        | Op::LaneFold(_)
        | Op::OfWarps
        | Op::WarpRegion(_)
        | Op::Fence(_)
        | Op::Print(_)
        | Op::Nanosleep
        | Op::SetRegisters { .. }
        | Op::Breakpoint
        | Op::Load(_)
        | Op::Store(_)
        | Op::Fault(_)
        | Op::FaultCall(_)
        | Op::Check(_) => None,
    }
}
