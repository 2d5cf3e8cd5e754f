//! The text form of plans, for `weft emit --plan`, snapshots and the verifier's errors.
//!
//! The form has the kernel's header, the facts that hold for the whole plan, and the tree of nodes. Statements and
//! expressions have the text form of weft's IR. A field that has its default value is not printed. A comment names the
//! lines of the Python source that a node's statements come from.
//!
//! ```text
//! kernel @k(
//!     $x.data: ptr[global] float32 = x.data
//! ) {
//!     var $i: int64
//!     fixed $i = int64(blockIdx.x) * int64(blockDim.x) + int64(threadIdx.x)
//!     segment {                                   # line 4
//!         guard: $i < $n; recompute $i
//!         locals: $i
//!         recompute: $i
//!         parallel
//!         body {
//!             store $x.data[$i] = 0.0:float32
//!         }
//!     }
//! }
//! ```
//!
//! Printing never fails, not even for an invalid plan, because the verifier's errors include this text.

use std::fmt::Write as _;

use crate::{
    backend::host::plan::{
        mentions::Mentions,
        plan_ir::{
            AliasCheck, Dividend, Guard, IterationPrefetch, MaskId, MaskedLoop, MergedSize, Node, Piece, Plan,
            Privatized, Range, Runs, Segment, Split, SplitBy, StridePrefetch, Strips, TileShape, TransposedRows,
        },
    },
    ir::{Block, CompareOp, ExprId, Function, FunctionText, LocalId, Module, for_each_stmt},
};

/// Prints a plan. While passes run, the kernel is not in the plan's module: `function` is the kernel without its body,
/// and `body` holds the statements that are not cut into nodes yet.
pub(crate) fn print(plan: &Plan, function: &Function, body: &Block) -> String {
    let mut mentions = Mentions::of_plan(plan);
    mentions.blocks.push(body);
    let Mentions { blocks, exprs, locals, masks: _ } = &mentions;
    let text = FunctionText::new(&plan.module, function, (blocks, exprs, locals), &|local| plan.fixed.value(local));
    let mut printer = Printer { plan, module: &plan.module, text, out: String::new(), depth: 1 };
    printer.out.push_str(&printer.text.shared_arrays());
    printer.out.push_str(&printer.text.header());
    printer.facts();
    printer.nodes(&plan.cut.nodes);
    printer.statements(body);
    printer.out.push_str("}\n");
    for (number, region) in plan.warp_regions.iter().enumerate() {
        let _ = writeln!(printer.out, "# warp region {number}:"); // writing to a String cannot fail
        printer.out.push_str(&region.text());
    }
    printer.out
}

struct Printer<'a> {
    plan: &'a Plan,
    module: &'a Module,
    text: FunctionText<'a>,
    out: String,
    depth: usize,
}

/// Items with commas between them.
fn list<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn comparison(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Eq => "==",
        CompareOp::Ne => "!=",
        CompareOp::Lt => "<",
        CompareOp::Le => "<=",
        CompareOp::Gt => ">",
        CompareOp::Ge => ">=",
    }
}

impl Printer<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{:1$}{text}", "", 4 * self.depth); // writing to a String cannot fail
    }

    /// A line, unless the flag is false.
    fn flag(&mut self, holds: bool, text: &str) {
        if holds {
            self.line(text);
        }
    }

    /// Lines in braces after a head.
    fn braced(&mut self, head: &str, comment: &str, inside: impl FnOnce(&mut Self)) {
        self.line(&format!("{head} {{{comment}"));
        self.depth += 1;
        inside(self);
        self.depth -= 1;
        self.line("}");
    }

    fn statements(&mut self, block: &Block) {
        self.out.push_str(&self.text.block(block, self.depth));
    }

    fn expr(&self, id: ExprId) -> String {
        self.text.expr(id)
    }

    fn local(&self, id: LocalId) -> String {
        self.text.local(id)
    }

    fn locals(&mut self, name: &str, locals: &[LocalId]) {
        if !locals.is_empty() {
            let locals = list(locals, |&local| self.local(local));
            self.line(&format!("{name}: {locals}"));
        }
    }

    fn values(&self, values: &[(LocalId, ExprId)]) -> String {
        list(values, |&(local, value)| format!("{} = {}", self.local(local), self.expr(value)))
    }

    /// A comment with the lines of the kernel's file that statements come from.
    fn lines(&self, block: &Block) -> String {
        let file = self.module.kernel().map_or(0, |kernel| kernel.span.file);
        let mut lines = Vec::new();
        for_each_stmt(block, &mut |stmt| {
            if stmt.span.file == file
                && let Some(source) = self.module.sources.files().get(file as usize)
            {
                lines.push(source.line_column(stmt.span.start).0);
            }
        });
        match (lines.iter().min(), lines.iter().max()) {
            (Some(first), Some(last)) if first == last => format!("  # line {first}"),
            (Some(first), Some(last)) => format!("  # lines {first}-{last}"),
            (None, _) | (_, None) => String::new(),
        }
    }

    /// What holds for the whole plan.
    fn facts(&mut self) {
        let plan = self.plan;
        for (local, value) in self.text.fixed().to_vec() {
            let (local, value) = (self.local(local), self.expr(value));
            self.line(&format!("fixed {local} = {value}"));
        }
        let varies = |local: &LocalId| plan.varying.get(local.index()) == Some(&true);
        let varying: Vec<LocalId> = self.text.used().filter(varies).collect();
        self.locals("varying", &varying);
        self.locals("context", &plan.live_across.locals);
        let arrays = list(&plan.live_across.arrays, |&array| self.text.local_array(array));
        self.flag(!arrays.is_empty(), &format!("context arrays: {arrays}"));
        if plan.cut.masks > 0 {
            let alive = plan.cut.alive.map_or_else(String::new, |mask| format!(", alive: mask {mask}"));
            self.line(&format!("masks: {}{alive}", plan.cut.masks));
        }
        let axis = ["x", "y", "z"].get(usize::from(plan.x_axis)).unwrap_or(&"?");
        self.flag(plan.x_axis != 0, &format!("threads along {axis} of the launch are innermost"));
        if let Some(extents) = &plan.merge_extents {
            let if_extents = list(extents, |extent| format!("blockDim.x == {extent}"));
            self.line(if extents.is_empty() { "blocks may be merged" } else { "blocks may be merged if:" });
            self.flag(!extents.is_empty(), &if_extents);
        }
        self.flag(plan.may_split_blocks, "blocks may be split");
        self.flag(plan.merged_size == MergedSize::LongRow, "rows of merged blocks may be long");
        self.flag(plan.merged_size == MergedSize::Tile, "merged blocks are tiles");
        self.flag(plan.has_barriers, "the program has barriers");
        if let Some(width) = plan.row_width {
            self.line(&format!("row width: {width}"));
        }
        self.flag(plan.warp_blocks, "each warp is a block");
        self.flag(plan.row_blocks, "each row is a block");
        self.flag(plan.warp_rows, "each row is a warp");
        self.flag(plan.replaces_arrays, "local arrays became locals");
        for privatized in &plan.privatized {
            let Privatized { param, element, array, len, accumulation } = privatized;
            let (param, array) = (self.local(*param), self.text.shared(*array));
            self.line(&format!("privatized {param}: {array} = {element}[{len}] {accumulation:?}"));
        }
        for masked_loop in &plan.masked_loops {
            self.masked_loop(masked_loop);
        }
        if let Some(quotients) = &plan.quotients {
            let (first, is_worth) = (self.expr(quotients.first), self.expr(quotients.is_worth));
            self.braced(&format!("quotients from {first} if {is_worth}"), "", |this| {
                for (number, division) in quotients.divisions.iter().enumerate() {
                    let dividend = match division.dividend {
                        Dividend::Index => "index".to_owned(),
                        Dividend::Remainder(of) => format!("remainder {of}"),
                        Dividend::Quotient(of) => format!("quotient {of}"),
                    };
                    let by = this.expr(division.by);
                    this.line(&format!("division {number}: {dividend} by {by}"));
                }
            });
        }
    }

    fn masked_loop(&mut self, masked_loop: &MaskedLoop) {
        let MaskedLoop {
            alive,
            iterations,
            few_active,
            none_active,
            after_loop,
            has_trip_count,
            is_reorderable,
            runs_alone,
        } = *masked_loop;
        let (alive, iterations) = (self.local(alive), self.local(iterations));
        let (few, none) = (self.expr(few_active), self.expr(none_active));
        let flags = [
            (has_trip_count, ", has a trip count"),
            (is_reorderable, ", is reorderable"),
            (!runs_alone, ", run by the strip to its end"),
        ];
        let flags: String = flags.into_iter().filter_map(|(holds, text)| holds.then_some(text)).collect();
        let after = after_loop.map_or_else(String::new, |cond| format!(", after {}", self.expr(cond)));
        self.line(&format!(
            "masked loop: alive {alive}, iterations {iterations}, few {few}, none {none}{after}{flags}"
        ));
    }

    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            self.node(node);
        }
    }

    /// Child nodes in braces.
    fn inside(&mut self, head: &str, nodes: &[Node]) {
        self.braced(head, "", |this| this.nodes(nodes));
    }

    /// Child nodes in braces, unless there are none.
    fn inside_if_any(&mut self, head: &str, nodes: &[Node]) {
        if !nodes.is_empty() {
            self.inside(head, nodes);
        }
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Once { active, guard, block } => {
                let comment = self.lines(block);
                self.braced(&format!("once{}", masked(*active)), &comment, |this| {
                    this.guard("guard", guard.as_ref());
                    this.statements(block);
                });
            }
            Node::Segment(segment) => self.segment("segment", segment),
            Node::If { cond, then, otherwise } => {
                let cond = self.expr(*cond);
                self.inside(&format!("if {cond}"), then);
                self.inside_if_any("else", otherwise);
            }
            Node::Guarded { guard, inside } => self.braced("guarded", "", |this| {
                this.guard("guard", Some(guard));
                this.nodes(inside);
            }),
            Node::Split { active, guard, cond, then_mask, else_mask, then, otherwise } => {
                let cond = self.local(*cond);
                self.braced(&format!("split {cond}{}", masked(*active)), "", |this| {
                    this.guard("guard", guard.as_ref());
                    this.inside(&format!("then mask {then_mask}"), then);
                    this.inside(&format!("else mask {else_mask}"), otherwise);
                });
            }
            Node::Barrier => self.line("barrier"),
            Node::WarpRegion(number) => self.line(&format!("warp region {number}")),
            Node::Strips(strips) => self.strips(strips),
            Node::Loop { counter, active, guard, mask, continue_mask, body, step, span: _ } => {
                let counter = counter.map_or_else(String::new, |counter| format!(" by {}", self.local(counter)));
                self.braced(&format!("loop{counter}{}", masked(*active)), "", |this| {
                    this.guard("guard", guard.as_ref());
                    if let Some(mask) = mask {
                        this.line(&format!("in the loop: mask {mask}"));
                    }
                    if let Some(mask) = continue_mask {
                        this.line(&format!("in the iteration: mask {mask}"));
                    }
                    this.nodes(body);
                    this.inside_if_any("step", step);
                });
            }
            Node::TransposedRows(transposed) => self.transposed_rows(transposed),
            Node::Break => self.line("break"),
            Node::Continue => self.line("continue"),
            Node::Return => self.line("return"),
        }
    }

    fn guard(&mut self, name: &str, guard: Option<&Guard>) {
        if let Some(guard) = guard {
            let text = self.guard_text(guard);
            self.line(&format!("{name}: {text}"));
        }
    }

    /// The conditions and bounds of a guard, and the locals that it computes first.
    fn guard_text(&self, guard: &Guard) -> String {
        let Guard { recompute, rows, ranges } = guard;
        let rows = rows.iter().map(|&(cond, negated)| {
            let cond = self.expr(cond);
            if negated { format!("row not ({cond})") } else { format!("row {cond}") }
        });
        let conditions: Vec<String> = rows.chain(ranges.iter().map(|range| self.range(range))).collect();
        let conditions = if conditions.is_empty() { "all".to_owned() } else { conditions.join(" and ") };
        let computed = list(recompute, |&local| self.local(local));
        if computed.is_empty() { conditions } else { format!("{conditions}; recompute {computed}") }
    }

    fn range(&self, range: &Range) -> String {
        let Range { value, op, bound, times, plus, wraps } = *range;
        let [value, bound] = [value, bound].map(|id| self.expr(id));
        let times = if times == 1 { String::new() } else { format!(" times {times}") };
        let plus = if plus == 0 { String::new() } else { format!(" plus {plus}") };
        let wraps = if wraps { " (wraps)" } else { "" };
        format!("{value} {} {bound}{times}{plus}{wraps}", comparison(op))
    }

    fn masks(&mut self, name: &str, masks: &[MaskId]) {
        let text = list(masks, ToString::to_string);
        self.flag(!masks.is_empty(), &format!("{name}: masks {text}"));
    }

    fn segment(&mut self, name: &str, segment: &Segment) {
        let Segment {
            body,
            active,
            on_return,
            on_break,
            on_continue,
            runs,
            repeats,
            locals,
            recompute,
            load,
            store,
            lane_guard,
            lane_max,
            scalar_lanes,
            guard,
            parallel,
            stride_prefetches,
            iteration_prefetches,
            split,
            race_free,
            scatters,
            shape,
        } = segment;
        let runs = match runs {
            Runs::EachThread => "",
            Runs::Warps => " for each warp",
            Runs::Groups => " for each group",
            Runs::FirstOfGroups => " for the first of each group",
            Runs::FirstLanes => " for the first lane of each warp",
            Runs::OneThread => " for one thread",
        };
        let comment = self.lines(body);
        self.braced(&format!("{name}{runs}{}", masked(*active)), &comment, |this| {
            this.guard("guard", guard.as_ref());
            this.guard("lane guard", lane_guard.as_ref());
            if let Some(Split { by: SplitBy::ExcludedRange, pieces, .. }) = split {
                for piece in pieces {
                    this.guard("excluded range", Some(&piece.guard));
                }
            }
            this.locals("locals", locals);
            this.locals("recompute", recompute);
            this.locals("load", load);
            this.locals("store", store);
            this.masks("on return", on_return);
            this.masks("on break", on_break);
            this.masks("on continue", on_continue);
            if let Some((local, value)) = *lane_max {
                let (local, value) = (this.local(local), this.expr(value));
                this.line(&format!("lane max: {local} = {value}"));
            }
            if let Some(TileShape { width, rows }) = shape {
                let [width, rows] = [width, rows].map(|id| this.expr(*id));
                this.line(&format!("tile: rows of {width}, {rows} of them"));
            }
            this.flag(*repeats, "repeats");
            this.flag(*parallel, "parallel");
            this.flag(*scatters, "scatters");
            this.flag(*scalar_lanes, "scalar lanes");
            let race_free = list(race_free, |&array| this.text.shared(array));
            this.flag(!race_free.is_empty(), &format!("race-free: {race_free}"));
            for prefetch in stride_prefetches {
                this.stride_prefetch(prefetch);
            }
            for prefetch in iteration_prefetches {
                this.iteration_prefetch(prefetch);
            }
            if !body.is_empty() {
                this.braced("body", "", |this| this.statements(body));
            }
            if let Some(split) = split {
                this.split(split);
            }
        });
    }

    fn split(&mut self, Split { by, of, pieces }: &Split) {
        let names: &[&str] = match by {
            // Printed beside the guard.
            SplitBy::ExcludedRange => return,
            SplitBy::SteadyState => &["steady state"],
            SplitBy::Bit => {
                self.guard("xor partners", Some(of));
                &["bit clear", "bit set"]
            }
            SplitBy::ResidueClass { modulus, other } => {
                let modulus = modulus.map_or_else(String::new, |modulus| format!(" modulo {modulus}"));
                let other = if *other { ", the other class" } else { "" };
                let of = self.guard_text(of);
                self.line(&format!("residue class: {of}{modulus}{other}"));
                &["class"]
            }
            SplitBy::Scaled { bounds } => {
                let of = self.guard_text(of);
                self.line(&format!("scaled guard: {of}, the first {bounds} are bounds"));
                &["scaled"]
            }
        };
        for (name, Piece { guard, body }) in names.iter().zip(pieces) {
            let guard = self.guard_text(guard);
            self.braced(&format!("{name} if {guard}"), "", |this| this.statements(body));
        }
    }

    fn stride_prefetch(&mut self, prefetch: &StridePrefetch) {
        let StridePrefetch { pointer, step, before } = prefetch;
        let (pointer, step, before) = (self.expr(*pointer), self.expr(*step), self.values(before));
        let before = if before.is_empty() { before } else { format!(" after {before}") };
        self.line(&format!("prefetch {pointer} by {step}{before}"));
    }

    fn iteration_prefetch(&mut self, prefetch: &IterationPrefetch) {
        let IterationPrefetch { pointer, size, values, by_strips } = prefetch;
        let (pointer, values) = (self.expr(*pointer), self.values(values));
        let by_strips = if *by_strips { ", by strips" } else { "" };
        self.line(&format!("prefetch {size} bytes of {pointer} for {values}{by_strips}"));
    }

    fn strips(&mut self, strips: &Strips) {
        let Strips {
            nodes,
            guard,
            width,
            rows,
            exact,
            scalar,
            transposed,
            shared,
            lane_locals,
            live_in,
            live_out,
            before,
            inlines_math,
            lane_arrays,
        } = strips;
        let rows = if *rows == 1 { String::new() } else { format!(" in {rows} rows") };
        self.braced(&format!("strips of {width} threads{rows}"), "", |this| {
            this.guard("guard", guard.as_ref());
            this.flag(*exact, "exact");
            this.flag(*scalar, "scalar");
            this.flag(*transposed, "transposed");
            this.flag(*inlines_math, "inlines math");
            this.locals("uniform", shared);
            this.locals("lanes", lane_locals);
            let arrays = list(lane_arrays, |&array| this.text.local_array(array));
            this.flag(!arrays.is_empty(), &format!("arrays of lanes: {arrays}"));
            this.locals("live in", live_in);
            this.locals("live out", live_out);
            for segment in before {
                this.segment("prefetches of segment", segment);
            }
            this.nodes(nodes);
        });
    }

    fn transposed_rows(&mut self, transposed: &TransposedRows) {
        let TransposedRows {
            counter,
            limit,
            lane_limit,
            last_values,
            rows,
            loads,
            stores,
            alias_checks,
            uniform_loads,
            partial,
            unmasked,
            nodes,
            unconditional,
            step,
        } = transposed;
        let (counter, limit) = (self.local(*counter), self.expr(*limit));
        self.braced(&format!("transposed rows by {counter} to {limit}"), "", |this| {
            if let Some(limit) = lane_limit {
                let limit = this.expr(*limit);
                this.line(&format!("lane limit: {limit}"));
            }
            this.locals("last values", last_values);
            this.flag(*unmasked, "unmasked");
            for load in loads {
                let (loads, pointer) = (list(&load.loads, |&id| this.expr(id)), this.expr(load.pointer));
                let stride = if load.uniform_stride { "" } else { ", rows at any distance" };
                this.line(&format!("transpose {loads} from {pointer}{stride}"));
            }
            for store in stores {
                let (pointers, pointer) = (list(&store.pointers, |&id| this.expr(id)), this.expr(store.pointer));
                let stride = if store.uniform_stride { "" } else { ", rows at any distance" };
                let reads = list(&store.reads, |&id| this.expr(id));
                let reads = if reads.is_empty() { reads } else { format!(", read as {reads}") };
                this.line(&format!("transpose {pointers} to {pointer}{stride}{reads}"));
            }
            for &AliasCheck { first, second, from, to } in alias_checks {
                let [first, second] = [first, second].map(|id| this.expr(id));
                this.line(&format!("one iteration if {from} < {second} - {first} < {to} bytes"));
            }
            for &(load, once) in uniform_loads {
                let [load, once] = [load, once].map(|id| this.expr(id));
                this.line(&format!("uniform {load} as {once}"));
            }
            let partial = list(partial, |&value| this.expr(value));
            this.flag(!partial.is_empty(), &format!("partial iterations: {partial}"));
            this.segment("addresses", rows);
            this.nodes(nodes);
            this.inside_if_any("unconditional", unconditional);
            this.inside_if_any("step", step);
        });
    }
}

/// The mask of a node.
fn masked(active: Option<MaskId>) -> String {
    active.map_or_else(String::new, |mask| format!(" under mask {mask}"))
}

impl Plan {
    /// The text form of the plan ([`print`]).
    pub(crate) fn text(&self) -> String {
        print(self, &self.module.functions[self.kernel], &Block::new())
    }
}
