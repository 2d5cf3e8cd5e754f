//! What passes record for remarks: facts about loops that the plan does not show.

use crate::{
    backend::host::plan::{
        analysis::source_lines::loops,
        plan_ir::{Ordered, Refusal, Refused, Transformation},
    },
    ir::Stmt,
    source::Span,
};

/// What passes report about loops that the final plan does not show.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    /// The loops that passes left as they are, and why.
    refused: Vec<Refused>,
    /// The loops that are fully unrolled.
    pub unrolled: Vec<Span>,
    /// The loops that are coalesced with the thread loop.
    pub coalesced: Vec<Span>,
    /// The loops that an earlier plan of the kernel interchanged for strips that it did not make.
    abandoned: Vec<Refused>,
    /// Why no strip stores the arrays of the threads by lane.
    pub arrays: Option<Refusal>,
    /// The regions whose accesses are not annotated as independent, by their first statements, and why.
    ordered: Vec<(Span, Ordered)>,
}

impl Record {
    /// Adds loops that a pass left as they are. The last reason for a loop and a transformation counts.
    pub(crate) fn refuse(&mut self, refused: impl IntoIterator<Item = Refused>) {
        for one in refused {
            self.refused.retain(|known| (known.span, known.what) != (one.span, one.what));
            self.refused.push(one);
        }
    }

    /// Adds the loops that a pass has unrolled: those of `before` that are not in `after`.
    pub(crate) fn add_unrolled(&mut self, before: &[Span], after: &[Stmt]) {
        let after = loops(after);
        self.unrolled.extend(before.iter().filter(|span| !after.contains(span)));
    }

    /// Adds loops that a pass has coalesced with the thread loop.
    pub(crate) fn add_coalesced(&mut self, spans: impl IntoIterator<Item = Span>) {
        self.coalesced.extend(spans);
    }

    /// Adds loops that an earlier plan interchanged for strips that it did not make.
    pub(crate) fn abandon(&mut self, refused: Vec<Refused>) {
        self.abandoned.extend(refused);
    }

    /// Why strips that a loop was interchanged for were not made.
    pub(crate) fn abandoned(&self, span: Span) -> Option<Refusal> {
        self.abandoned.iter().find(|refused| refused.span == span).map(|refused| refused.why)
    }

    /// Sets the regions whose accesses are not annotated as independent.
    pub(crate) fn order(&mut self, ordered: Vec<(Span, Ordered)>) {
        self.ordered = ordered;
    }

    /// Why the accesses of a region with this first statement are not annotated as independent.
    pub(crate) fn ordered(&self, first: Span) -> Option<Ordered> {
        self.ordered.iter().find(|&&(span, _)| span == first).map(|&(_, why)| why)
    }

    /// The first reason why a loop is in no strip.
    pub(crate) fn no_strip(&self) -> Option<Refusal> {
        self.refused.iter().find(|refused| refused.what == Transformation::Strips).map(|refused| refused.why)
    }

    /// Why a transformation of a loop was not made.
    pub(crate) fn reason(&self, span: Span, what: Transformation) -> Option<Refusal> {
        self.refused.iter().find(|refused| (refused.span, refused.what) == (span, what)).map(|refused| refused.why)
    }
}
