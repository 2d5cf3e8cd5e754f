//! Which variants of a kernel launches run, and why, as a text for people; and what their plans for the CPU consist of, for tests.

use pyo3::prelude::*;
use weft_artifact::Factors;

use super::{
    Dispatcher, answers,
    coarsened::Wanted,
    overload::{Found, Overload},
};
use crate::engine;

impl Dispatcher {
    /// Which variants launches run, and why, of each kernel or of that for a signature.
    ///
    /// # Errors
    ///
    /// As compiling for the signature.
    pub(super) fn explained(slf: &Bound<'_, Self>, signature: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
        let this = slf.get();
        let overloads = match signature.filter(|signature| !signature.is_none()) {
            Some(signature) => vec![Self::known_overload(slf, &this.types(signature)?)?],
            None => this.state().overloads.clone(),
        };
        let texts: Vec<String> = overloads.iter().map(|overload| overload.explained()).collect();
        Ok(texts.join("\n"))
    }
}

/// A variant's types, its assumptions, and the names of what its plan consists of.
type VariantFeatures = (String, Vec<&'static str>, Vec<&'static str>);

/// What the plans for the CPU consist of that the compiler has made of a kernel: for each of its specializations, and each of their
/// variants, the types, the assumptions about launches, and the names (docs/design/cpu-plans.md lists them). Each is planned once
/// more, and no code is made.
///
/// For tests, which count by them what they reach.
#[pyfunction]
pub(crate) fn plan_features(kernel: &Bound<'_, Dispatcher>) -> PyResult<Vec<VariantFeatures>> {
    let overloads = kernel.get().state().overloads.clone();
    let variants = overloads.iter().flat_map(|overload| overload.variants.iter().chain(overload.confined.get()));
    let mut all = overloads.clone();
    all.extend(variants);
    all.iter().map(|overload| overload.plan_features(kernel.py())).collect()
}

impl Overload {
    /// What its plan consists of.
    fn plan_features(&self, py: Python<'_>) -> PyResult<VariantFeatures> {
        let mut definition = self.definition.clone();
        let names = answers::with_answers(py, &mut definition, &mut Found::default(), |definition| {
            engine::plan_features(py, definition, &self.args, &self.jit)
        })?;
        Ok((self.shown(), self.granted().names().collect(), names))
    }

    /// The launches that it is for.
    fn kinds(&self) -> String {
        let names: Vec<_> = self.granted().names().collect();
        if names.is_empty() {
            "launches of any kind".to_owned()
        } else {
            format!("launches that are {}", names.join(", "))
        }
    }

    fn explained(&self) -> String {
        let mut text = self.shown();
        let mut line = |words: &str| {
            text.push_str("\n  ");
            text.push_str(words);
        };
        line(&format!("for {}", self.kinds()));
        for variant in self.variants.iter() {
            line(&format!("with a variant for {}", variant.kinds()));
        }
        let coarsening = &self.kernel.coarsening;
        match self.wanted {
            Wanted::Factors(factors) if factors != Factors::NONE => match self.coarsened.get(factors) {
                Some(variant) => line(&variant.kernel.coarsening.note),
                None => line(&format!("{factors} is set, and no launch had a grid and block that it divides")),
            },
            Wanted::Factors(_) | Wanted::Estimate | Wanted::Measure if coarsening.note.is_empty() => {
                line("each thread does its own work");
            }
            Wanted::Factors(_) | Wanted::Estimate | Wanted::Measure => {
                line(&coarsening.note);
                coarsening.candidates.iter().for_each(|candidate| line(&format!("  {}", candidate.note)));
            }
        }
        if self.wanted == Wanted::Estimate {
            line("launches that fill the device less than twice, and those that cannot be divided, run as they are");
            if self.made().is_none() {
                line("none of them was launched yet: that code is compiled when one is");
            }
        }
        self.tunings.told().iter().for_each(|place| line(place));
        if let Some(in_use) = self.tunings.last() {
            line(&format!("the last launch ran {in_use}"));
        }
        text.push('\n');
        text
    }
}
