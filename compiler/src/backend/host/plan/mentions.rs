//! What a plan refers to: blocks of statements, expressions, locals and masks, for its text form and its verifier.

use crate::{
    backend::host::plan::plan_ir::{
        AliasCheck, Guard, IterationPrefetch, MaskId, MaskedLoop, Node, Piece, Plan, Privatized, Range, Segment, Split,
        StridePrefetch, Strips, TileShape, TransposedRows,
    },
    ir::{Block, ExprId, LocalId},
};

/// The references of a plan or of some of its nodes, with duplicates. Statements inside of blocks are not included.
#[derive(Debug, Default)]
pub(crate) struct Mentions<'a> {
    /// Blocks of statements.
    pub blocks: Vec<&'a Block>,
    /// Expressions outside of statements.
    pub exprs: Vec<ExprId>,
    /// Locals outside of statements and expressions.
    pub locals: Vec<LocalId>,
    /// Masks.
    pub masks: Vec<MaskId>,
}

impl<'a> Mentions<'a> {
    /// The references of a plan.
    pub(crate) fn of_plan(plan: &'a Plan) -> Self {
        let mut this = Self::default();
        this.nodes(&plan.cut.nodes);
        this.masks.extend(plan.cut.alive);
        this.locals.extend(&plan.live_across.locals);
        for masked_loop in &plan.masked_loops {
            let MaskedLoop { alive, iterations, few_active, none_active, after_loop, .. } = *masked_loop;
            this.locals.extend([alive, iterations]);
            this.exprs.extend([few_active, none_active]);
            this.exprs.extend(after_loop);
        }
        if let Some(quotients) = &plan.quotients {
            this.exprs.extend([quotients.first, quotients.is_worth]);
            this.exprs.extend(quotients.divisions.iter().map(|division| division.by));
        }
        this.locals.extend(plan.privatized.iter().map(|&Privatized { param, .. }| param));
        this
    }

    fn nodes(&mut self, nodes: &'a [Node]) {
        for node in nodes {
            self.node(node);
            for part in node.parts() {
                self.nodes(part);
            }
            if let Node::TransposedRows(transposed) = node {
                self.nodes(&transposed.unconditional);
            }
        }
    }

    fn node(&mut self, node: &'a Node) {
        match node {
            Node::Once { active, guard, block } => {
                self.masks.extend(active);
                self.maybe_guard(guard.as_ref());
                self.blocks.push(block);
            }
            Node::Segment(segment) => self.segment(segment),
            Node::If { cond, then: _, otherwise: _ } => self.exprs.push(*cond),
            Node::Guarded { guard, inside: _ } => self.guard(guard),
            Node::Split { active, guard, cond, then_mask, else_mask, then: _, otherwise: _ } => {
                self.masks.extend(active);
                self.masks.extend([then_mask, else_mask]);
                self.maybe_guard(guard.as_ref());
                self.locals.push(*cond);
            }
            Node::Strips(strips) => self.strips(strips),
            Node::Loop { counter, active, guard, mask, continue_mask, body: _, step: _, span: _ } => {
                self.locals.extend(counter);
                self.masks.extend([active, mask, continue_mask].into_iter().flatten());
                self.maybe_guard(guard.as_ref());
            }
            Node::TransposedRows(transposed) => self.transposed_rows(transposed),
            Node::Barrier | Node::WarpRegion(_) | Node::Break | Node::Continue | Node::Return => {}
        }
    }

    fn strips(&mut self, strips: &'a Strips) {
        let Strips {
            nodes: _,
            guard,
            width: _,
            rows: _,
            exact: _,
            scalar: _,
            transposed: _,
            shared,
            lane_locals,
            live_in,
            live_out,
            before,
            inlines_math: _,
            lane_arrays: _,
        } = strips;
        self.maybe_guard(guard.as_ref());
        for locals in [shared, lane_locals, live_in, live_out] {
            self.locals.extend(locals);
        }
        for segment in before {
            self.segment(segment);
        }
    }

    fn transposed_rows(&mut self, transposed: &'a TransposedRows) {
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
            unmasked: _,
            nodes: _,
            unconditional: _,
            step: _,
        } = transposed;
        self.locals.push(*counter);
        self.locals.extend(last_values);
        self.exprs.push(*limit);
        self.exprs.extend(lane_limit);
        self.segment(rows);
        for load in loads {
            self.exprs.extend(&load.loads);
            self.exprs.push(load.pointer);
        }
        for store in stores {
            self.exprs.extend(store.pointers.iter().chain(&store.reads));
            self.exprs.push(store.pointer);
        }
        self.exprs
            .extend(alias_checks.iter().flat_map(|&AliasCheck { first, second, from: _, to: _ }| [first, second]));
        self.exprs.extend(uniform_loads.iter().flat_map(|&(load, once)| [load, once]));
        self.exprs.extend(partial);
    }

    fn segment(&mut self, segment: &'a Segment) {
        let Segment {
            body,
            active,
            on_return,
            on_break,
            on_continue,
            runs: _,
            repeats: _,
            locals,
            recompute,
            load,
            store,
            lane_guard,
            lane_max,
            scalar_lanes: _,
            guard,
            parallel: _,
            stride_prefetches,
            iteration_prefetches,
            split,
            race_free: _,
            scatters: _,
            shape,
        } = segment;
        self.blocks.push(body);
        self.masks.extend(active);
        self.masks.extend(on_return.iter().chain(on_break).chain(on_continue));
        for locals in [locals, recompute, load, store] {
            self.locals.extend(locals);
        }
        for guard in [lane_guard, guard] {
            self.maybe_guard(guard.as_ref());
        }
        if let Some((local, value)) = lane_max {
            self.locals.push(*local);
            self.exprs.push(*value);
        }
        if let Some(TileShape { width, rows }) = shape {
            self.exprs.extend([width, rows]);
        }
        for StridePrefetch { pointer, step, before } in stride_prefetches {
            self.exprs.extend([pointer, step]);
            self.values(before);
        }
        for IterationPrefetch { pointer, size: _, values, by_strips: _ } in iteration_prefetches {
            self.exprs.push(*pointer);
            self.values(values);
        }
        if let Some(Split { by: _, of, pieces }) = split {
            self.guard(of);
            for Piece { guard, body } in pieces {
                self.guard(guard);
                self.blocks.push(body);
            }
        }
    }

    fn values(&mut self, values: &[(LocalId, ExprId)]) {
        for &(local, value) in values {
            self.locals.push(local);
            self.exprs.push(value);
        }
    }

    fn maybe_guard(&mut self, guard: Option<&Guard>) {
        if let Some(guard) = guard {
            self.guard(guard);
        }
    }

    fn guard(&mut self, guard: &Guard) {
        let Guard { recompute, rows, ranges } = guard;
        self.locals.extend(recompute);
        self.exprs.extend(rows.iter().map(|&(cond, _)| cond));
        self.exprs.extend(ranges.iter().flat_map(|&Range { value, bound, .. }| [value, bound]));
    }
}
