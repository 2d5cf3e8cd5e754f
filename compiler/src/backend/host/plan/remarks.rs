//! Remarks: what the planner did with each parallel region, loop and access of a kernel, and why it left loops as they
//! are, in the order of the program.
//!
//! They are made of the final plan. Reasons come from the code that decides: a pass that leaves a loop as it is returns a
//! [`Refusal`], which the plan keeps in its [`Record`](crate::backend::host::plan::plan_ir::Record).

use std::collections::BTreeMap;

use crate::{
    analysis::affine::{AccessClass, AccessKind, accesses},
    backend::host::plan::{
        analysis::source_lines::{code, loops, place, places},
        plan_ir::{
            MAX_SEGMENTS, MaskedLoop, Node, Plan, Refusal, Refused, Runs, Segment, Strips, Transformation,
            TransposedRows,
        },
    },
    ir::{Block, ExprId, LocalId, Module, Type, for_each_stmt},
    source::Span,
};

/// The remarks about a plan, one a line. `module` is the program before it was planned.
pub(crate) fn lines(plan: &Plan, module: &Module) -> Vec<String> {
    let mut report = Report { module, remarks: BTreeMap::new(), seen: Vec::new(), transposed: Vec::new() };
    report.plan(plan);
    report.missing_loops(plan);
    report.accesses(plan.x_axis);
    let mut lines = general(plan);
    let arrays = plan.record.arrays.map(|why| format!("local arrays are not stored by lane: {}", why.clause(module)));
    lines.extend(arrays);
    for (Remark { text, .. }, (span, last)) in report.remarks {
        let line = format!("{}: {text}", places(module, span, last));
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// The loops in no strip that were interchanged only for strips: those with the counters, or those with divergent exits
/// if there are no counters. Their reason is `otherwise`, if no pass has one.
pub(crate) fn without_strips(plan: &Plan, counters: &[LocalId], otherwise: Option<Refusal>) -> Vec<Refused> {
    let many = (plan.segments > MAX_SEGMENTS).then_some(Refusal::ManyRegions);
    let mut found = Vec::new();
    find_without_strips(plan, &plan.cut.nodes, counters, many.or(otherwise), &mut found);
    found
}

fn find_without_strips(
    plan: &Plan,
    nodes: &[Node],
    counters: &[LocalId],
    otherwise: Option<Refusal>,
    found: &mut Vec<Refused>,
) {
    for node in nodes {
        if let Node::Loop { counter, span, body, .. } = node {
            let is_masked = || plan.masked_loops.iter().any(|of| of.is_body_of(body));
            let is_counted = counter.is_some_and(|counter| counters.contains(&counter));
            if is_counted || (counters.is_empty() && is_masked()) {
                let (span, what) = (*span, Transformation::Strips);
                let why = plan.record.reason(span, what).or(otherwise);
                found.extend(why.map(|why| Refused { span, what, why }));
            }
        }
        if !matches!(node, Node::Strips(_)) {
            node.parts().into_iter().for_each(|part| find_without_strips(plan, part, counters, otherwise, found));
        }
    }
}

/// What holds for the whole kernel.
fn general(plan: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |holds: bool, text: &str| {
        if holds {
            lines.push(text.to_owned());
        }
    };
    line(plan.warp_blocks, "each warp runs as a block of its own");
    line(plan.row_blocks, "each row of a block runs as a block of its own");
    line(plan.merge_extents.is_some(), "neighboring blocks may run as one");
    line(plan.may_split_blocks, "a block may run as several if a launch has few blocks");
    let axis = axis(plan.x_axis);
    line(plan.x_axis != 0, &format!("the threads along {axis} are innermost"));
    line(plan.outlines(), "each parallel region is a function of its own");
    lines
}

fn axis(axis: u8) -> &'static str {
    ["x", "y", "z"].get(usize::from(axis)).unwrap_or(&"?")
}

/// A remark. The fields are in the order by which remarks are sorted.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Remark {
    /// It is about another file than the kernel's.
    is_elsewhere: bool,
    line: u32,
    about: About,
    start: u32,
    text: String,
}

/// The subject of a remark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    Region,
    Loop,
    Access,
}

/// The position of a node in a plan.
#[derive(Clone, Copy)]
struct Position<'a> {
    plan: &'a Plan,
    strips: Option<&'a Strips>,
    /// In the plan of a warp region.
    in_warp: bool,
    /// The loop with divergent exits around the node, whose last lanes run its code one by one.
    lockstep: Option<Span>,
}

struct Report<'a> {
    module: &'a Module,
    /// The remarks, with the code that they are about and its last line.
    remarks: BTreeMap<Remark, (Span, u32)>,
    /// The loops in the plan.
    seen: Vec<Span>,
    /// The accesses that strips transpose.
    transposed: Vec<Span>,
}

impl Report<'_> {
    /// Adds a remark about code that begins at a span, and ends in a line if that is not 0.
    fn add(&mut self, about: About, span: Span, last: u32, text: String) {
        let own = self.module.kernel().map_or(0, |kernel| kernel.span.file);
        let line = self.module.sources.file(span).map_or(0, |source| source.line_column(span.start).0);
        // Equal regions that begin in one line are one.
        let start = if about == About::Region { 0 } else { span.start };
        let remark = Remark { is_elsewhere: span.file != own, line, about, start, text };
        let known = self.remarks.entry(remark).or_insert((span, last));
        known.1 = known.1.max(last);
    }

    fn plan(&mut self, plan: &Plan) {
        self.nodes(&plan.cut.nodes, Position { plan, strips: None, in_warp: false, lockstep: None });
    }

    fn nodes(&mut self, nodes: &[Node], position: Position<'_>) {
        for node in nodes {
            match node {
                Node::Once { block, .. } => {
                    for span in loops(block) {
                        self.a_loop(span, &["runs once for the block".to_owned()]);
                    }
                }
                Node::Segment(segment) => self.segment(segment, position),
                Node::Loop { span, body, mask, continue_mask, .. } => {
                    self.node_loop(*span, body, mask.is_some() || continue_mask.is_some(), position);
                    if position.plan.masked_loops.iter().any(|of| of.is_body_of(body)) {
                        let inner = Position { lockstep: Some(*span), ..position };
                        node.parts().into_iter().for_each(|part| self.nodes(part, inner));
                        continue;
                    }
                }
                Node::Strips(strips) => {
                    self.nodes(&strips.nodes, Position { strips: Some(strips), ..position });
                    continue;
                }
                Node::TransposedRows(rows) => self.transposed_rows(rows, position),
                Node::WarpRegion(number) => {
                    if let Some(plan) = position.plan.warp_regions.get(*number as usize) {
                        self.nodes(&plan.cut.nodes, Position { plan, strips: None, in_warp: true, lockstep: None });
                    }
                }
                Node::If { .. }
                | Node::Guarded { .. }
                | Node::Split { .. }
                | Node::Barrier
                | Node::Break
                | Node::Continue
                | Node::Return => {}
            }
            node.parts().into_iter().for_each(|part| self.nodes(part, position));
        }
    }

    /// Adds a remark about a loop: clauses.
    fn a_loop(&mut self, span: Span, clauses: &[String]) {
        self.seen.push(span);
        self.add(About::Loop, span, 0, format!("loop: {}", clauses.join("; ")));
    }

    /// A loop around thread loops.
    fn node_loop(&mut self, span: Span, body: &[Node], has_mask: bool, position: Position<'_>) {
        let Position { plan, strips, in_warp, .. } = position;
        let masked_loop = plan.masked_loops.iter().find(|of| of.is_body_of(body));
        let (who, has_barrier) = (if in_warp { "the warp" } else { "the block" }, has_barrier(body));
        let masked = if has_mask { ", with a mask of the threads that are in it" } else { "" };
        let mut clauses = vec![if let Some(masked_loop) = masked_loop {
            lockstep(masked_loop).to_owned()
        } else if has_barrier {
            format!("{who} runs it, because threads synchronize in it{masked}")
        } else if has_mask {
            format!("{who} runs it{masked}")
        } else {
            "interchanged with the loop over threads, which is innermost".to_owned()
        }];
        let why = plan.record.reason(span, Transformation::Strips).filter(|_| strips.is_none() && !has_barrier);
        clauses.extend(strips.map(of_strips));
        clauses.extend(why.map(|why| format!("in no strips of threads: {}", why.clause(self.module))));
        self.a_loop(span, &clauses);
    }

    /// A loop in a parallel region.
    fn inner_loop(&mut self, span: Span, segment: &Segment, plan: &Plan) {
        let mut clauses = vec![match segment.runs {
            Runs::EachThread => "each thread runs it on its own".to_owned(),
            Runs::Warps | Runs::Groups | Runs::FirstOfGroups | Runs::FirstLanes | Runs::OneThread => {
                runs(segment.runs).to_owned()
            }
        }];
        if let Some(why) = plan.record.abandoned(span) {
            clauses.push(format!("in no strips of threads: {}", why.clause(self.module)));
        } else {
            let reason = |what: Transformation| plan.record.reason(span, what);
            let [interchange, mask] = [Transformation::Interchange, Transformation::Mask].map(reason);
            // A loop that would run in lockstep has other reasons to remain in the loop over threads than its size.
            if let Some(why) = interchange.filter(|&why| mask.is_none() || why != Refusal::FewIterations) {
                clauses.push(format!("not interchanged with the loop over threads: {}", why.clause(self.module)));
            }
            if let Some(why) = mask.filter(|_| mask != interchange) {
                clauses.push(format!("not run in lockstep: {}", why.clause(self.module)));
            }
        }
        self.a_loop(span, &clauses);
    }

    /// A parallel region, and the loops in it.
    fn segment(&mut self, segment: &Segment, position: Position<'_>) {
        let Position { plan, strips, lockstep, .. } = position;
        let mut inner = loops(&segment.body);
        inner.retain(|&span| Some(span) != lockstep);
        for &span in &inner {
            self.inner_loop(span, segment, plan);
        }
        let Some(span) = segment.body.first().map(|stmt| stmt.span) else { return };
        let masked = if segment.active.is_some() { ", under a mask" } else { "" };
        let mut clauses = vec![format!("{}{masked}", runs(segment.runs))];
        clauses.extend(strips.map(of_strips));
        if segment.shape.is_some() {
            clauses.push("over the cells of a tile".to_owned());
        }
        if segment.scatters {
            clauses.push("not vectorized: the distance between the stores of neighbors is not a constant".to_owned());
        }
        let ordered = plan.record.ordered(span).map(|why| why.clause(self.module));
        clauses.extend(ordered.map(|why| format!("its accesses are not annotated as independent: {why}")));
        // LLVM unrolls such a loop before it vectorizes.
        let may_unroll = |span: &Span| {
            plan.record.reason(*span, Transformation::Interchange) == Some(Refusal::FewIterations)
                && plan.record.reason(*span, Transformation::Mask).is_none()
        };
        if let Some(&inner) = inner.iter().find(|span| !may_unroll(span)) {
            let inner = place(self.module, inner);
            clauses.push(format!("around the loop of {inner}, and LLVM vectorizes innermost loops only"));
        }
        self.add(About::Region, span, self.last_line(&segment.body, span), format!("region: {}", clauses.join("; ")));
    }

    /// The last line of a region that begins at a span.
    fn last_line(&self, body: &Block, span: Span) -> u32 {
        let Some(source) = self.module.sources.file(span) else { return 0 };
        let mut last = 0;
        for_each_stmt(body, &mut |stmt| {
            if stmt.span.file == span.file {
                last = last.max(source.line_column(stmt.span.start).0);
            }
        });
        last
    }

    fn transposed_rows(&mut self, rows: &TransposedRows, position: Position<'_>) {
        let function = &position.plan.module.functions[position.plan.kernel];
        let span = |id: &ExprId| function.exprs[*id].span;
        self.transposed.extend(rows.loads.iter().flat_map(|load| load.loads.iter().map(span)));
        self.transposed.extend(rows.stores.iter().flat_map(|store| store.pointers.iter().map(span)));
    }

    /// The loops of the program that are not in the plan.
    fn missing_loops(&mut self, plan: &Plan) {
        for &span in &plan.record.coalesced {
            let how = "coalesced with the loop over threads, for blocks whose threads are the cells' columns and rows";
            self.a_loop(span, &[how.to_owned()]);
        }
        for &span in &plan.record.unrolled {
            if !self.seen.contains(&span) {
                self.a_loop(span, &["unrolled".to_owned()]);
            }
        }
    }

    /// The accesses to memory that is not the thread's own.
    fn accesses(&mut self, axis: u8) {
        let Some(kernel) = self.module.kernel() else { return };
        for access in accesses(kernel, axis) {
            let pointer = &kernel.exprs[access.pointer];
            let kind = match access.kind {
                AccessKind::Load => "load",
                AccessKind::Store => "store",
                AccessKind::Op(op) => op.row().name,
            };
            let code = code(self.module, pointer.span);
            if code.is_empty() {
                continue;
            }
            let mut text = format!("{kind} {code}: {}", class(access.class, pointer.ty));
            if self.transposed.contains(&access.span) || self.transposed.contains(&pointer.span) {
                text.push_str("; rows are vectors, transposed in registers");
            }
            self.add(About::Access, access.span, 0, text);
        }
    }
}

/// How a loop with divergent exits runs.
fn lockstep(masked_loop: &MaskedLoop) -> &'static str {
    if masked_loop.has_trip_count {
        "runs in lockstep while a thread of the strip is in it"
    } else {
        "runs in lockstep while a thread of the strip is in it; without a trip count"
    }
}

/// The class of an access. Distances are in elements where that is a whole number.
fn class(class: AccessClass, pointer: Type) -> String {
    match class {
        AccessClass::Uniform => "uniform: the threads access one element".to_owned(),
        AccessClass::Contiguous => "contiguous".to_owned(),
        AccessClass::Strided(None) => "strided by a distance that is not a constant".to_owned(),
        AccessClass::Strided(Some(bytes)) => {
            let size = if let Type::Ptr(element, _) = pointer { element.size_bytes() as i64 } else { 1 };
            match (bytes % size, bytes / size) {
                (0, elements) => format!("strided by {elements} elements"),
                _ => format!("strided by {bytes} bytes"),
            }
        }
        AccessClass::Gather => "gather: the distance between neighboring threads is not known".to_owned(),
    }
}

/// The threads that a region runs for.
fn runs(runs: Runs) -> &'static str {
    match runs {
        Runs::EachThread => "a loop over threads",
        Runs::Warps => "runs once for each warp",
        Runs::Groups => "runs once for each group of threads of a row that share a warp",
        Runs::FirstOfGroups => "runs for the first thread of each group of threads of a row that share a warp",
        Runs::FirstLanes => "runs for the first lane of each warp",
        Runs::OneThread => "runs for one thread of a row",
    }
}

/// How the threads of strips run.
fn of_strips(strips: &Strips) -> String {
    let Strips { width, rows, scalar, .. } = strips;
    let rows = if *rows == 1 { String::new() } else { format!(" in {rows} rows") };
    let how = if *scalar { "interleaved, without vectors" } else { "as vectors" };
    format!("strips of {width} threads{rows}, {how}")
}

/// Whether nodes contain a barrier of the program.
fn has_barrier(nodes: &[Node]) -> bool {
    nodes
        .iter()
        .any(|node| matches!(node, Node::Barrier | Node::WarpRegion(_)) || node.parts().into_iter().any(has_barrier))
}
