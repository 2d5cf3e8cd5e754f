//! The CPU that code is made for: this machine's, or a lesser one that this machine can stand for.
//!
//! What a plan depends on is a property of the planned CPU, which is the same one unless `WEFT_HOST_PLAN` names another: any machine
//! makes the plans of every CPU. What the code generator depends on is a property of the CPU itself.

use std::sync::{Arc, OnceLock};

use inkwell::{OptimizationLevel, targets::TargetMachine};

use crate::{
    backend::llvm::shim,
    request::{HostCpu, PlannedCpu},
};

/// What every CPU has for which there is code.
const LEAST: &str = "x86-64";

/// What lets LLVM make vectors of 512 bits.
const NO_NARROW: &str = ",-prefer-256-bit";

/// This machine's CPU.
pub fn cpu() -> Arc<HostCpu> {
    static CPU: OnceLock<Arc<HostCpu>> = OnceLock::new();
    let cpu = CPU.get_or_init(|| {
        Arc::new(HostCpu {
            triple: TargetMachine::get_default_triple().as_str().to_string_lossy().into_owned(),
            name: TargetMachine::get_host_cpu_name().to_string(),
            features: TargetMachine::get_host_cpu_features().to_string(),
            planned: None,
            opt_level: None,
        })
    });
    Arc::clone(cpu)
}

/// The CPU that LLVM knows by a name, such as `x86-64-v3`, whether or not this machine runs its code.
pub(crate) fn known(name: &str) -> Option<HostCpu> {
    let features = shim::cpu_features(name)?;
    Some(HostCpu { triple: cpu().triple.clone(), name: name.to_owned(), features, planned: None, opt_level: None })
}

/// The CPU that the settings ask for: `WEFT_HOST_CPU` names the one that code is made for, `WEFT_HOST_PLAN` the one that kernels are
/// planned for. `None` is this machine's, and the one that code is made for. `opt_level` is LLVM's optimization level, 0 to 3.
///
/// # Errors
///
/// A sentence: LLVM knows no such CPU, or code is asked for that this machine cannot run.
pub fn cpu_set(name: Option<&str>, planned: Option<&str>, opt_level: u8) -> Result<Arc<HostCpu>, String> {
    let of_setting = |variable: &'static str, name: &str| {
        let name = name.to_owned();
        move |message: String| format!("{variable} is \"{name}\": {message}")
    };
    let code = match name {
        Some(name) => cpu_named(name).map_err(of_setting("WEFT_HOST_CPU", name))?,
        None => cpu(),
    };
    if planned.is_none() && opt_level == MOST_OPTIMIZED {
        return Ok(code);
    }
    let planned = match planned {
        Some(planned) => {
            let HostCpu { name, features, .. } = named(planned).map_err(of_setting("WEFT_HOST_PLAN", planned))?;
            Some(PlannedCpu { name, features })
        }
        None => None,
    };
    let opt_level = (opt_level != MOST_OPTIMIZED).then_some(opt_level);
    Ok(Arc::new(HostCpu { planned, opt_level, ..HostCpu::clone(&code) }))
}

/// LLVM's optimization level unless a setting says otherwise.
const MOST_OPTIMIZED: u8 = 3;

/// LLVM's pipeline and the level of its code generator.
pub(super) fn optimization(cpu: &HostCpu) -> (&'static str, OptimizationLevel) {
    match cpu.opt_level.unwrap_or(MOST_OPTIMIZED) {
        0 => ("default<O0>", OptimizationLevel::None),
        1 => ("default<O1>", OptimizationLevel::Less),
        2 => ("default<O2>", OptimizationLevel::Default),
        MOST_OPTIMIZED.. => ("default<O3>", OptimizationLevel::Aggressive),
    }
}

fn named(name: &str) -> Result<HostCpu, String> {
    known(name)
        .ok_or_else(|| format!("LLVM knows no CPU `{name}`: use a name such as x86-64-v3, znver4 or skylake-avx512"))
}

/// The CPU that LLVM knows by a name, for code that this machine runs.
fn cpu_named(name: &str) -> Result<Arc<HostCpu>, String> {
    let named = named(name)?;
    let least = known(LEAST).map(|cpu| cpu.features).unwrap_or_default();
    let missing = missing(&named.features, &[&cpu().features, &least]);
    if missing.is_empty() {
        return Ok(Arc::new(named));
    }
    Err(format!("this machine's CPU cannot run code for `{name}`: it lacks {}", missing.join(", ")))
}

/// Name and features of the CPU that kernels are planned for.
fn planned(cpu: &HostCpu) -> (&str, &str) {
    cpu.planned.as_ref().map_or((&cpu.name, &cpu.features), |planned| (&planned.name, &planned.features))
}

fn has(features: &str, feature: &str) -> bool {
    features.split(',').any(|one| one == feature)
}

/// Whether a CPU's gathers and scatters take longer than single loads and stores. AMD's are microcode in every Zen with
/// AVX2 (uops.info, `VPGATHERDD`): 16 table lookups take 2.5 times as long by a gather of Zen 4.
pub(super) fn gathers_slowly(cpu: &HostCpu) -> bool {
    planned(cpu).0.starts_with("znver")
}

/// Whether a CPU loads and stores vectors under a mask, whatever their elements.
pub(super) fn has_masks(cpu: &HostCpu) -> bool {
    masks(planned(cpu).1)
}

fn masks(features: &str) -> bool {
    has(features, "+avx512bw") && has(features, "+avx512vl")
}

/// Whether a CPU converts `half`: every one with AVX2 does. Others are asked for no more than integers and float32.
pub(super) fn converts_halves(cpu: &HostCpu) -> bool {
    // There is no expansion of the intrinsic, so that the CPU itself must have it.
    has(&cpu.features, "+f16c") && has(planned(cpu).1, "+f16c")
}

/// The features that code for a CPU is made with: vectors of 512 bits where it has them and does not slow down for them. LLVM keeps
/// to 256 on all of Intel's, and then takes a row of sixteen threads for two. Skylake's, Cascade Lake's and Cooper Lake's cores lower
/// their clock for 512 bits; measured was a Xeon of the Sapphire Rapids.
pub(super) fn features(cpu: &HostCpu) -> String {
    let HostCpu { name, features, .. } = cpu;
    if is_wide(name, features) { format!("{features}{NO_NARROW}") } else { features.clone() }
}

/// Whether vectors of 512 bits are worth it on a CPU.
fn is_wide(name: &str, features: &str) -> bool {
    let slows_down = ["skylake", "cascadelake", "cooperlake"].iter().any(|slow| name.starts_with(slow));
    let is_client = ["cannonlake", "icelake-client", "tigerlake", "rocketlake"].contains(&name);
    masks(features) && !slows_down && !is_client
}

/// Bits of the widest vectors that LLVM is to make, if kernels are planned for another CPU; no wider ones than the CPU has.
pub(super) fn vector_bits(cpu: &HostCpu) -> Option<u32> {
    let PlannedCpu { name, features } = cpu.planned.as_ref()?;
    Some(if is_wide(name, features) {
        512
    } else if has(features, "+avx2") {
        256
    } else {
        128
    })
}

/// Whether a CPU begins two products of 512-bit vectors in a cycle, each of which takes four: eight sums keep it busy. Intel's servers
/// do, and AMD's from Zen 5 on; a Zen 4 does one.
pub(super) fn multiplies_in_pairs(cpu: &HostCpu) -> bool {
    let (name, features) = planned(cpu);
    is_wide(name, features) && !["x86-64", "znver4"].iter().any(|one| name.starts_with(one))
}

/// The features that none of some lists has.
fn missing<'a>(features: &'a str, lists: &[&str]) -> Vec<&'a str> {
    let is_there = |feature: &&str| lists.iter().any(|list| list.split(',').any(|one| one == *feature));
    let features = features.split(',').filter(|feature| !feature.is_empty() && !is_there(feature));
    features.map(|feature| feature.trim_start_matches('+')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_has_its_features() {
        let has =
            |cpu: &str, feature: &str| known(cpu).expect("LLVM knows it").features.split(',').any(|one| one == feature);
        assert!(has("x86-64-v4", "+avx512f") && has("x86-64-v3", "+avx2"));
        assert!(!has("x86-64-v3", "+avx512f") && !has("x86-64-v2", "+avx2"));
        assert_eq!(known("pentium4"), None);
    }

    #[test]
    fn vectors_are_as_wide_as_costs_nothing() {
        let wide = |name: &str| features(&known(name).expect("LLVM knows it")).ends_with(",-prefer-256-bit");
        assert!(wide("sapphirerapids") && wide("icelake-server") && wide("x86-64-v4"));
        assert!(!wide("skylake-avx512") && !wide("tigerlake") && !wide("x86-64-v3") && !wide("alderlake"));
    }

    #[test]
    fn two_products_a_cycle() {
        let pairs = |name: &str| multiplies_in_pairs(&known(name).expect("LLVM knows it"));
        assert!(pairs("sapphirerapids") && pairs("icelake-server") && pairs("znver5"));
        assert!(!pairs("znver4") && !pairs("x86-64-v4") && !pairs("tigerlake") && !pairs("x86-64-v3"));
    }

    #[test]
    fn plans_are_those_of_the_planned_cpu_and_code_is_not() {
        let machine = known("x86-64-v3").expect("LLVM knows it");
        let with = |name: &str| {
            let HostCpu { name, features, .. } = known(name).expect("LLVM knows it");
            HostCpu { planned: Some(PlannedCpu { name, features }), ..machine.clone() }
        };
        let (old, new, amd) = (with("x86-64-v2"), with("sapphirerapids"), with("znver4"));
        assert_eq!([&machine, &old, &new].map(has_masks), [false, false, true]);
        assert_eq!([&machine, &old, &new].map(multiplies_in_pairs), [false, false, true]);
        assert_eq!([&machine, &old, &new].map(converts_halves), [true, false, true]);
        assert_eq!([&machine, &old, &new].map(vector_bits), [None, Some(128), Some(512)]);
        assert!(gathers_slowly(&amd) && !gathers_slowly(&new));
        assert_eq!([&old, &new, &amd].map(features), [&machine, &machine, &machine].map(features));
        // What the CPU itself lacks is not emitted, whatever the plan.
        let least = HostCpu { features: String::new(), ..new };
        assert!(has_masks(&least) && !converts_halves(&least));
    }

    #[test]
    fn settings_name_both() {
        let set = |name, planned| cpu_set(name, planned, MOST_OPTIMIZED).map(|cpu| HostCpu::clone(&cpu));
        assert_eq!(set(None, None), Ok(HostCpu::clone(&cpu())));
        let both = set(Some("x86-64"), Some("x86-64-v4")).expect("this machine runs it");
        assert_eq!(
            (both.name.as_str(), both.planned.map(|planned| planned.name)),
            ("x86-64", Some("x86-64-v4".into()))
        );
        assert!(set(None, Some("abacus")).is_err_and(|message| message.starts_with("WEFT_HOST_PLAN is \"abacus\": ")));
        assert!(set(Some("abacus"), None).is_err_and(|message| message.starts_with("WEFT_HOST_CPU is \"abacus\": ")));
    }

    #[test]
    fn a_cpu_that_this_machine_does_not_run_is_refused() {
        assert_eq!(cpu_named("x86-64").map(|cpu| cpu.name.clone()), Ok("x86-64".to_owned()));
        assert!(cpu_named("x86-65").is_err_and(|message| message.contains("no CPU `x86-65`")));
        let features = |name: &str| known(name).expect("LLVM knows it").features;
        let (old, new) = (features("x86-64-v3"), features("x86-64-v4"));
        assert_eq!(missing(&old, &[&new]), [""; 0]);
        assert!(missing(&new, &[&old]).contains(&"avx512f"));
        // What a machine is known not to have is no feature of its own.
        assert_eq!(missing("+avx2", &["+avx,-avx2"]), ["avx2"]);
    }
}
