//! The CPU that code is made for: this machine's, or a lesser one that this machine can stand for.

use std::sync::{Arc, OnceLock};

use inkwell::targets::TargetMachine;

use crate::{backend::llvm::shim, request::HostCpu};

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
        })
    });
    Arc::clone(cpu)
}

/// The CPU that LLVM knows by a name, such as `x86-64-v3`, whether or not this machine runs its code.
pub(crate) fn known(name: &str) -> Option<HostCpu> {
    let features = shim::cpu_features(name)?;
    Some(HostCpu { triple: cpu().triple.clone(), name: name.to_owned(), features })
}

/// The CPU that LLVM knows by a name, for code that this machine runs.
///
/// # Errors
///
/// A sentence: LLVM knows no such CPU, or it has what this machine has not.
pub fn cpu_named(name: &str) -> Result<Arc<HostCpu>, String> {
    let Some(named) = known(name) else {
        return Err(format!("there is no CPU `{name}`: LLVM's names are x86-64-v3, znver4, skylake-avx512 and others"));
    };
    let least = known(LEAST).map(|cpu| cpu.features).unwrap_or_default();
    let missing = missing(&named.features, &[&cpu().features, &least]);
    if missing.is_empty() {
        return Ok(Arc::new(named));
    }
    Err(format!("this machine's CPU cannot run code for `{name}`: it lacks {}", missing.join(", ")))
}

/// Whether a CPU's gathers and scatters take longer than single loads and stores. AMD's are microcode in every Zen with
/// AVX2 (uops.info, `VPGATHERDD`): 16 table lookups take 2.5 times as long by a gather of Zen 4.
pub(super) fn gathers_slowly(cpu: &HostCpu) -> bool {
    cpu.name.starts_with("znver")
}

/// Whether a CPU loads and stores vectors under a mask, whatever their elements.
pub(super) fn has_masks(cpu: &HostCpu) -> bool {
    let has = |feature: &str| cpu.features.split(',').any(|one| one == feature);
    has("+avx512bw") && has("+avx512vl")
}

/// The features that code for a CPU is made with: vectors of 512 bits where it has them and does not slow down for them. LLVM keeps
/// to 256 on all of Intel's, and then takes a row of sixteen threads for two. Skylake's, Cascade Lake's and Cooper Lake's cores lower
/// their clock for 512 bits; measured was a Xeon of the Sapphire Rapids.
pub(super) fn features(cpu: &HostCpu) -> String {
    let slows_down = ["skylake", "cascadelake", "cooperlake"].iter().any(|name| cpu.name.starts_with(name));
    let is_client = ["cannonlake", "icelake-client", "tigerlake", "rocketlake"].contains(&cpu.name.as_str());
    if has_masks(cpu) && !slows_down && !is_client {
        return format!("{}{NO_NARROW}", cpu.features);
    }
    cpu.features.clone()
}

/// Whether a CPU begins two products of 512-bit vectors in a cycle, each of which takes four: eight sums keep it busy. Intel's servers
/// do, and AMD's from Zen 5 on; a Zen 4 does one.
pub(super) fn multiplies_in_pairs(cpu: &HostCpu) -> bool {
    let is_wide = features(cpu).ends_with(NO_NARROW);
    is_wide && !["x86-64", "znver4"].iter().any(|name| cpu.name.starts_with(name))
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
    fn a_cpu_that_this_machine_does_not_run_is_refused() {
        assert_eq!(cpu_named("x86-64").map(|cpu| cpu.name.clone()), Ok("x86-64".to_owned()));
        assert!(cpu_named("x86-65").is_err_and(|message| message.contains("there is no CPU `x86-65`")));
        let features = |name: &str| known(name).expect("LLVM knows it").features;
        let (old, new) = (features("x86-64-v3"), features("x86-64-v4"));
        assert_eq!(missing(&old, &[&new]), [""; 0]);
        assert!(missing(&new, &[&old]).contains(&"avx512f"));
        // What a machine is known not to have is no feature of its own.
        assert_eq!(missing("+avx2", &["+avx,-avx2"]), ["avx2"]);
    }
}
