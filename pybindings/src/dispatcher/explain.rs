//! The variants of a kernel that launches run, the reasons, and the remarks about their plans for the CPU, as text; and
//! the features of these plans, for tests.

use std::sync::Arc;

use pyo3::prelude::*;
use weft_artifact::Factors;
use weft_compiler::target::{
    Sm,
    occupancy::{Needs, Occupancy},
};
use weft_runtime::{
    USUAL_BLOCK,
    ptxas::{self, Resources},
};

use super::{
    Dispatcher, answers,
    overload::{Code, Found, Overload},
    variants::{Variants, coarsened::FactorChoice, measured::Effort},
};
use crate::{devices, engine, errors};

impl Dispatcher {
    /// Which variants launches run, and why, of each kernel or of that for a signature.
    ///
    /// # Errors
    ///
    /// As compiling for the signature.
    pub(super) fn explained(slf: &Bound<'_, Self>, signature: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
        let (py, this) = (slf.py(), slf.get());
        let overloads = match signature.filter(|signature| !signature.is_none()) {
            Some(signature) => vec![Self::known_overload(slf, &this.types(signature)?)?],
            None => this.state().overloads.clone(),
        };
        let reports: Vec<String> = overloads.iter().map(|overload| overload.explained(py)).collect::<PyResult<_>>()?;
        Ok(reports.join("\n"))
    }
}

/// A variant's types, its assumptions, and the names of its plan's features.
type VariantFeatures = (String, Vec<&'static str>, Vec<&'static str>);

/// The features of the CPU plans that the compiler has made of a kernel: for each of its specializations, and each of
/// their variants, the types, the assumptions about launches, and the names (docs/design/cpu-plans.md lists them). Each
/// is planned once more, without code generation.
///
/// For tests, which measure their coverage by them.
#[pyfunction]
pub(crate) fn plan_features(kernel: &Bound<'_, Dispatcher>) -> PyResult<Vec<VariantFeatures>> {
    compiled(kernel).iter().map(|overload| overload.plan_features(kernel.py())).collect()
}

/// The text forms of the CPU plans of a kernel's specializations and their variants, in the order of
/// [`plan_features`]. For benchmarks of passes.
#[pyfunction]
pub(crate) fn printed_plans(kernel: &Bound<'_, Dispatcher>) -> PyResult<Vec<String>> {
    compiled(kernel).iter().map(|overload| overload.plan_text(kernel.py())).collect()
}

/// The specializations of a kernel, and their variants that are compiled.
fn compiled(kernel: &Bound<'_, Dispatcher>) -> Vec<Arc<Overload>> {
    let overloads = kernel.get().state().overloads.clone();
    let variants = overloads.iter().flat_map(|overload| {
        let Variants { assuming, in_place, .. } = &overload.variants;
        assuming.iter().chain(in_place.get())
    });
    let mut all = overloads.clone();
    all.extend(variants);
    all
}

impl Overload {
    /// The features of its plan.
    fn plan_features(&self, py: Python<'_>) -> PyResult<VariantFeatures> {
        let mut definition = self.definition.clone();
        let names = answers::with_answers(py, &mut definition, &mut Found::default(), |definition| {
            engine::plan_features(py, definition, &self.args, &self.jit)
        })?;
        Ok((self.shown(), self.assumed().names().collect(), names))
    }

    /// The text form of its plan.
    fn plan_text(&self, py: Python<'_>) -> PyResult<String> {
        let mut definition = self.definition.clone();
        answers::with_answers(py, &mut definition, &mut Found::default(), |definition| {
            engine::plan_text(py, definition, &self.args, &self.jit)
        })
    }

    /// The remarks about its plan.
    fn plan_remarks(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let mut definition = self.definition.clone();
        answers::with_answers(py, &mut definition, &mut Found::default(), |definition| {
            engine::plan_remarks(py, definition, &self.args, &self.jit)
        })
    }

    /// The remarks about its plan for the CPU, and about those of its variants that have other ones.
    fn all_plan_remarks(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        if self.executor.kind() != "cpu" {
            return Ok(Vec::new());
        }
        let own = self.plan_remarks(py)?;
        let mut lines = own.clone();
        for variant in self.variants.assuming.iter() {
            let remarks = variant.plan_remarks(py)?;
            if remarks != own {
                lines.push(format!("for {}:", variant.kinds()));
                lines.extend(remarks.into_iter().map(|remark| format!("  {remark}")));
            }
        }
        Ok(lines)
    }

    /// The launches that it is for.
    fn kinds(&self) -> String {
        let names: Vec<_> = self.assumed().names().collect();
        if names.is_empty() {
            "launches of any kind".to_owned()
        } else {
            format!("launches that are {}", names.join(", "))
        }
    }

    fn explained(&self, py: Python<'_>) -> PyResult<String> {
        let mut text = self.shown();
        let mut line = |words: &str| {
            text.push_str("\n  ");
            text.push_str(words);
        };
        line(&format!("for {}", self.kinds()));
        for variant in self.variants.assuming.iter() {
            line(&format!("with a variant for {}", variant.kinds()));
        }
        let estimate = self.jobs.known_estimate();
        let coarsening = estimate.as_deref().unwrap_or(&self.kernel.coarsening);
        match self.wanted {
            FactorChoice::Factors(factors) if factors != Factors::NONE => match self.variants.coarsened.get(factors) {
                Some(variant) => line(&variant.kernel.coarsening.note),
                None => line(&format!("{factors} is set, and no launch had a grid and block that it divides")),
            },
            FactorChoice::Measure(Effort::Background) if estimate.is_none() => {
                line(
                    "threads are not coarsened: candidates are chosen when a launch that fills the GPU twice is repeated",
                );
            }
            FactorChoice::Factors(_) | FactorChoice::Measure(_) if coarsening.note.is_empty() => {
                line("threads are not coarsened");
            }
            FactorChoice::Factors(_) | FactorChoice::Measure(_) => {
                line(&coarsening.note);
                coarsening.candidates.iter().for_each(|candidate| line(&format!("  {}", candidate.note)));
            }
        }
        self.tunings.summary().iter().for_each(|place| line(place));
        if let Some(in_use) = self.tunings.last() {
            line(&format!("the last launch ran {in_use}"));
        }
        for resources in self.all_resources(py)? {
            line(&resources);
        }
        for remark in self.all_plan_remarks(py)? {
            line(&remark);
        }
        text.push('\n');
        Ok(text)
    }

    /// The resources that each compiled variant uses of a multiprocessor.
    fn all_resources(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        if self.executor.kind() != "cuda" {
            let how = "`weft emit FILE --target sm_90 --resource-usage` reports them for a GPU";
            return Ok(vec![format!("registers and occupancy do not apply to the CPU: {how}")]);
        }
        let mut lines: Vec<String> = self.resources(py)?.into_iter().collect();
        for variant in self.variants.assuming.iter() {
            lines.extend(variant.resources(py)?.map(|line| format!("{}: {line}", variant.kinds())));
        }
        for variant in self.variants.coarsened.all() {
            lines.extend(variant.resources(py)?.map(|line| format!("{}: {line}", variant.jit.code.coarsen)));
        }
        if lines.is_empty() {
            lines.push("registers, shared memory and occupancy are known after the first launch".to_owned());
        }
        Ok(lines)
    }

    /// Registers, shared memory, spills and occupancy, of the code that is loaded.
    fn resources(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let Some(code) = self.made() else { return Ok(None) };
        let loaded = &code.loaded;
        let mut resources = Resources {
            registers: loaded.registers(),
            shared_bytes: loaded.shared_bytes(),
            local_bytes: loaded.local_bytes(),
            ..Resources::default()
        };
        if resources.local_bytes > 0 && self.links.is_empty() {
            resources.spills = self.spills(py, code)?;
        }
        let attributes = self.executor.attributes();
        let (major, minor) = attributes.compute_capability;
        let (threads, dynamic, which) = match (loaded.last_launch(), self.kernel.max_threads) {
            (Some((threads, dynamic)), _) => (threads, dynamic, "as in the last launch"),
            (None, Some(threads)) => (threads, 0, "as in launch_bounds"),
            (None, None) => (USUAL_BLOCK.min(loaded.max_threads_per_block()), 0, "not launched yet"),
        };
        let blocks = loaded.active_blocks(threads, dynamic).map_err(|error| errors::runtime(py, &error))?;
        let shared_bytes = u64::from(resources.shared_bytes) + u64::from(dynamic);
        let needs = Needs::new(resources.registers, shared_bytes, threads);
        let occupancy = Sm::of_capability(major, minor).map(|sm| Occupancy {
            blocks,
            warps: blocks * threads.div_ceil(attributes.warp_size.max(1)),
            ..sm.occupancy(needs)
        });
        let occupancy = occupancy.map_or_else(|| format!("{blocks} blocks"), |occupancy| occupancy.to_string());
        Ok(Some(format!("{resources}; occupancy with {threads} threads a block ({which}): {occupancy}")))
    }

    /// The spilled registers that `ptxas` reports, if it is found: the driver reports local memory as a whole.
    fn spills(&self, py: Python<'_>, code: &Code) -> PyResult<Option<(u32, u32)>> {
        let path = std::env::var_os("PATH");
        let Some(file) = devices::toolkit(py)?.ptxas(path.as_deref()) else { return Ok(None) };
        let found = py.detach(|| ptxas::resources(&file, code.bytes(), self.target()));
        let found = found.unwrap_or_default().into_iter().find(|found| found.symbol == self.kernel.symbol);
        Ok(found.and_then(|found| found.spills))
    }
}
