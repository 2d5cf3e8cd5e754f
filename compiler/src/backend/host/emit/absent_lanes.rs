//! Tail folding of strip-mined thread loops: the last strip of a row is as wide as the others, so its last lanes may be
//! absent.
//!
//! ```text
//! for from in low..high by width:
//!     for lane in 0..width:
//!         if from + lane < high: node
//! ```
//!
//! Addresses and trip counts are computed for an absent lane with the thread index of the last present one
//! (`lanes_or_last`), which needs no branch. Iterations whose only effects are transposed stores run for all lanes
//! without a test (`unmasked`).
//!
//! Only strips with transposed accesses ([`Strips::transposed`](crate::backend::host::plan::Strips::transposed)) are
//! padded: for them, vectors also pay in a strip that is not full.

use inkwell::{IntPredicate, values::IntValue};

use crate::{
    backend::{
        host::emit::{
            access_groups::Shape,
            guard_values::RangeValues,
            kernel::KernelEmitter,
            position::{count, index},
            strip::{Row, Span, Strip, StripRow},
            strips::Common,
        },
        llvm::{Result, internal},
    },
    ir::CompareOp,
};

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// Emits all threads of a row in strips of the full width. Each lane tests whether it is present.
    pub(crate) fn walking_strips(
        &mut self,
        common: &Common<'_, 'ctx>,
        row: Row<'ctx>,
        (low, high): Span<'ctx>,
    ) -> Result<()> {
        let (width, one) = (self.int(common.strips.width), self.int(1));
        let builder = &self.emitter.builder;
        let threads = builder.build_int_nuw_sub(high, low, "")?;
        let iterations = builder.build_int_nuw_add(threads, builder.build_int_sub(width, one, "")?, "")?;
        let iterations = builder.build_int_unsigned_div(iterations, width, "strips")?;
        let bound = index(&self.emitter, high)?;
        let asked = RangeValues { value: bound.get_type().const_zero(), op: CompareOp::Lt, bound, wraps: false };
        let Some(places) = common.whole.first().cloned() else { return internal("a strip without a row") };
        self.counted("strip", (self.int(0), iterations), |this, iteration| {
            let builder = &this.emitter.builder;
            let from = builder.build_int_add(low, builder.build_int_nuw_mul(iteration, width, "")?, "")?;
            let rows = vec![StripRow { row, places }];
            let (most, shape) = (common.strips.width, Shape::Vectors);
            let (asked, arrays) = (vec![asked], common.arrays.clone());
            this.one(common, Strip { rows, from, width, most, padded: true, shape, present: None, asked, arrays })
        })?;
        Ok(())
    }

    /// The lane that the current code runs for.
    pub(crate) fn present(&self) -> Option<IntValue<'ctx>> {
        Some(self.strip.as_ref()?.present?.1)
    }

    /// The number of the last present lane, counted from the strip's first. If it is not less than the width, all lanes
    /// are present.
    pub(crate) fn last_lane(&self) -> Result<IntValue<'ctx>> {
        let Some(Strip { asked, from, .. }) = &self.strip else { return internal("lanes of no strip") };
        let [RangeValues { bound: high, .. }] = asked.as_slice() else {
            return internal("absent lanes without a range");
        };
        let builder = &self.emitter.builder;
        let high = builder.build_int_truncate(*high, from.get_type(), "")?;
        Ok(builder.build_int_sub(builder.build_int_sub(high, *from, "")?, self.int(1), "last")?)
    }

    /// Makes a lane the current one, or the last present lane in its place if it is absent.
    fn stand_in(&mut self, lane: IntValue<'ctx>, last: IntValue<'ctx>) -> Result<()> {
        let at = self.choose("llvm.umin", lane, last.into())?;
        let Some(strip) = self.strip.as_mut() else { return internal("lanes of no strip") };
        let [StripRow { row: ([y, z], _), .. }] = *strip.rows.as_slice() else { return internal("several rows") };
        strip.present = Some((0, at));
        let x = count(&self.emitter, strip.from, at)?;
        self.set_thread([x, y, z]);
        Ok(())
    }

    /// Runs `body` for each lane of the strip. For an absent lane, the thread index is that of the last present lane;
    /// `body` gets the number of the absent one.
    pub(crate) fn lanes_or_last(&mut self, body: impl Fn(&mut Self, IntValue<'ctx>) -> Result<()>) -> Result<()> {
        let last = self.last_lane()?;
        self.lanes(false, |this, _| {
            let Some(lane) = this.present() else { return internal("a strip without a thread") };
            this.stand_in(lane, last)?;
            body(this, lane)
        })
    }

    /// For each lane of the strip, whether it is present.
    pub(crate) fn lanes_there(&self) -> Result<Vec<IntValue<'ctx>>> {
        let last = self.last_lane()?;
        let most = self.strip.as_ref().map_or(0, |strip| strip.most);
        let is_there = |lane| self.emitter.builder.build_int_compare(IntPredicate::ULE, self.int(lane), last, "");
        Ok((0..most).map(is_there).collect::<std::result::Result<_, _>>()?)
    }

    /// As [`Self::lanes_or_last`], for the first `lanes`, as straight-line scalar code.
    pub(crate) fn first_lanes_or_last(
        &mut self,
        lanes: u32,
        mut body: impl FnMut(&mut Self, IntValue<'ctx>) -> Result<()>,
    ) -> Result<()> {
        let (before, last) = (self.strip.clone(), self.last_lane()?);
        for lane in 0..lanes {
            let lane = self.int(lane);
            self.stand_in(lane, last)?;
            body(self, lane)?;
        }
        self.strip = before;
        Ok(())
    }

    /// Runs `body` for all lanes of the strip, without a test whether they are present.
    pub(crate) fn unmasked(&mut self, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let asked = self.strip.as_mut().map(|strip| std::mem::take(&mut strip.asked));
        body(self)?;
        self.ask(asked.unwrap_or_default());
        Ok(())
    }

    /// Runs `body` lane by lane, in scalar code, on copies of the strip's arrays.
    pub(crate) fn one_by_one(&mut self, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.aside(|this| {
            let before = this.strip.clone();
            if let Some(strip) = &mut this.strip {
                strip.shape = Shape::Single;
            }
            body(this)?;
            this.strip = before;
            Ok(())
        })
    }
}
