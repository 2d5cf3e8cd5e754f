//! The target CPU of host code, and its properties: this machine's CPU, or one whose code this machine can run.
//!
//! Plans depend on properties of the planned CPU. It is the target CPU unless `WEFT_HOST_PLAN` names another one, so
//! any machine can make the plans of every CPU. The code generator depends on properties of the target CPU itself.

use std::sync::{Arc, OnceLock};

use inkwell::{OptimizationLevel, targets::TargetMachine};

use crate::{
    backend::{
        host::plan::{cx::PassSet, passes::PASSES},
        llvm::shim,
    },
    request::{HostCpu, PlannedCpu},
};

/// The baseline CPU, whose features every machine has.
const LEAST: &str = "x86-64";

/// The feature change that enables 512-bit vectors in LLVM.
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
            skipped_passes: Vec::new(),
        })
    });
    Arc::clone(cpu)
}

/// The CPU with an LLVM name such as `x86-64-v3`, whether or not this machine can run its code; `None` if LLVM does not
/// know the name.
pub(crate) fn known(name: &str) -> Option<HostCpu> {
    let features = shim::cpu_features(name)?;
    Some(HostCpu { triple: cpu().triple.clone(), name: name.to_owned(), features, ..HostCpu::default() })
}

/// The CPU with an LLVM name such as `x86-64-v3`, whether or not this machine can run its code.
///
/// # Errors
///
/// A sentence, if LLVM does not know the name.
pub fn cpu_for_export(name: &str) -> Result<Arc<HostCpu>, String> {
    named(name).map(Arc::new)
}

/// The CPU that the settings select: `WEFT_HOST_CPU` names the target CPU (`None`: this machine's), and
/// `WEFT_HOST_PLAN` the planned CPU (`None`: the target CPU). `opt_level` is LLVM's optimization level, 0 to 3.
///
/// # Errors
///
/// A sentence, if LLVM does not know one of the names, or if this machine cannot run code for the target CPU.
pub fn cpu_set(name: Option<&str>, planned: Option<&str>, opt_level: u8) -> Result<Arc<HostCpu>, String> {
    let of_setting = |variable: &'static str, name: &str| {
        let name = name.to_owned();
        move |message: String| format!("{variable} is \"{name}\": {message}")
    };
    let code = match name {
        Some(name) => cpu_named(name).map_err(of_setting("WEFT_HOST_CPU", name))?,
        None => cpu(),
    };
    if planned.is_none() && opt_level == MAX_OPTIMIZED {
        return Ok(code);
    }
    let planned = match planned {
        Some(planned) => {
            let HostCpu { name, features, .. } = named(planned).map_err(of_setting("WEFT_HOST_PLAN", planned))?;
            Some(PlannedCpu { name, features })
        }
        None => None,
    };
    let opt_level = (opt_level != MAX_OPTIMIZED).then_some(opt_level);
    Ok(Arc::new(HostCpu { planned, opt_level, ..HostCpu::clone(&code) }))
}

/// A CPU whose kernels are planned without some passes.
///
/// # Errors
///
/// A sentence, if a pass does not exist or is required.
pub fn without_passes(cpu: Arc<HostCpu>, skipped: &[String]) -> Result<Arc<HostCpu>, String> {
    if skipped.is_empty() {
        return Ok(cpu);
    }
    skipped_passes(skipped).map_err(|message| format!("WEFT_SKIP_PASSES is \"{}\": {message}", skipped.join(",")))?;
    Ok(Arc::new(HostCpu { skipped_passes: skipped.to_vec(), ..HostCpu::clone(&cpu) }))
}

/// Checks the names of passes after which plans are printed.
///
/// # Errors
///
/// A sentence, if a pass does not exist.
pub fn check_printed(names: &[String]) -> Result<(), String> {
    let set = PassSet::of_names(names.iter().map(String::as_str));
    set.map(drop).map_err(|message| format!("WEFT_PRINT_AFTER is \"{}\": {message}", names.join(",")))
}

/// The passes of the planner, in order: their names, their stages, whether each is optional, and why it has its
/// position.
pub fn passes() -> impl Iterator<Item = (&'static str, &'static str, bool, &'static str)> {
    PASSES.iter().map(|pass| (pass.name, pass.stage.name(), pass.optional, pass.why_here))
}

pub(super) fn skipped_passes(names: &[String]) -> Result<PassSet, String> {
    PassSet::of_skipped(names.iter().map(String::as_str))
}

/// LLVM's default optimization level.
const MAX_OPTIMIZED: u8 = 3;

/// LLVM's pass pipeline and the optimization level of its code generator.
pub(super) fn optimization(cpu: &HostCpu) -> (&'static str, OptimizationLevel) {
    match cpu.opt_level.unwrap_or(MAX_OPTIMIZED) {
        0 => ("default<O0>", OptimizationLevel::None),
        1 => ("default<O1>", OptimizationLevel::Less),
        2 => ("default<O2>", OptimizationLevel::Default),
        MAX_OPTIMIZED.. => ("default<O3>", OptimizationLevel::Aggressive),
    }
}

fn named(name: &str) -> Result<HostCpu, String> {
    known(name)
        .ok_or_else(|| format!("LLVM knows no CPU `{name}`: use a name such as x86-64-v3, znver4 or skylake-avx512"))
}

/// The CPU with an LLVM name, if this machine can run its code.
fn cpu_named(name: &str) -> Result<Arc<HostCpu>, String> {
    let named = named(name)?;
    let least = known(LEAST).map(|cpu| cpu.features).unwrap_or_default();
    let missing = missing(&named.features, &[&cpu().features, &least]);
    if missing.is_empty() {
        return Ok(Arc::new(named));
    }
    Err(format!("this machine's CPU cannot run code for `{name}`: it lacks {}", missing.join(", ")))
}

/// The name and features of the planned CPU.
fn planned(cpu: &HostCpu) -> (&str, &str) {
    cpu.planned.as_ref().map_or((&cpu.name, &cpu.features), |planned| (&planned.name, &planned.features))
}

fn has(features: &str, feature: &str) -> bool {
    features.split(',').any(|one| one == feature)
}

/// Whether the planned CPU's gathers and scatters are slower than scalar loads and stores. They are microcode on each
/// AMD Zen (uops.info, `VPGATHERDD`).
pub(super) fn gathers_slowly(cpu: &HostCpu) -> bool {
    planned(cpu).0.starts_with("znver")
}

/// Whether the planned CPU has masked vector loads and stores for all element types.
pub(super) fn has_masks(cpu: &HostCpu) -> bool {
    masks(planned(cpu).1)
}

/// Whether the planned CPU has masked vector loads and stores for elements of four and eight bytes.
pub(super) fn has_word_masks(cpu: &HostCpu) -> bool {
    has(planned(cpu).1, "+avx2")
}

fn masks(features: &str) -> bool {
    has(features, "+avx512bw") && has(features, "+avx512vl")
}

/// Whether conversions of `half` may use the CPU's instruction (F16C). Without it they are integer and `float32`
/// operations.
pub(super) fn converts_halves(cpu: &HostCpu) -> bool {
    // The target CPU must have it, too: LLVM has no expansion of the intrinsic.
    has(&cpu.features, "+f16c") && has(planned(cpu).1, "+f16c")
}

/// The features for LLVM's code generator. They enable 512-bit vectors if the CPU profits from them: by default LLVM
/// prefers 256 bits on all Intel CPUs with AVX-512, and would split 16 lanes into two vectors.
pub(super) fn features(cpu: &HostCpu) -> String {
    let HostCpu { name, features, .. } = cpu;
    if is_wide(name, features) { format!("{features}{NO_NARROW}") } else { features.clone() }
}

/// Whether a CPU profits from 512-bit vectors. Skylake, Cascade Lake and Cooper Lake lower their clock for them.
/// Client CPUs with AVX-512 are excluded, too.
fn is_wide(name: &str, features: &str) -> bool {
    let slows_down = ["skylake", "cascadelake", "cooperlake"].iter().any(|slow| name.starts_with(slow));
    let is_client = ["cannonlake", "icelake-client", "tigerlake", "rocketlake"].contains(&name);
    masks(features) && !slows_down && !is_client
}

/// The preferred width in bits of LLVM's own vectors, if there is a planned CPU. LLVM limits it to the target CPU's
/// width.
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

/// Whether the planned CPU starts two multiplications of 512-bit vectors per cycle. With a latency of four cycles,
/// eight independent sums keep it busy. Intel's server CPUs do, and AMD's from Zen 5 on; Zen 4 starts one.
pub(super) fn multiplies_in_pairs(cpu: &HostCpu) -> bool {
    let (name, features) = planned(cpu);
    is_wide(name, features) && !["x86-64", "znver4"].iter().any(|one| name.starts_with(one))
}

/// The features in `features` that none of the lists has.
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
        // No instruction is emitted that the target CPU lacks, whatever the plan.
        let least = HostCpu { features: String::new(), ..new };
        assert!(has_masks(&least) && !converts_halves(&least));
    }

    #[test]
    fn settings_name_both() {
        let set = |name, planned| cpu_set(name, planned, MAX_OPTIMIZED).map(|cpu| HostCpu::clone(&cpu));
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
    fn only_optional_passes_are_skipped() {
        let skip = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            without_passes(cpu(), &names).map(|cpu| cpu.skipped_passes.clone())
        };
        assert_eq!(skip(&[]), Ok(Vec::new()));
        assert_eq!(skip(&["guards", "unroll"]), Ok(vec!["guards".to_owned(), "unroll".to_owned()]));
        let unknown = skip(&["unrol"]).expect_err("there is no such pass");
        assert!(unknown.starts_with("WEFT_SKIP_PASSES is \"unrol\": there is no pass `unrol`; the passes are warps_"));
        let required = skip(&["form"]).expect_err("the pass is required");
        assert!(
            required.contains("the pass `form` is required; the optional passes are") && !required.contains("context")
        );
        assert!(check_printed(&["form".to_owned(), "all".to_owned()]).is_ok());
        let unknown = check_printed(&["forms".to_owned()]).expect_err("there is no such pass");
        assert!(unknown.starts_with("WEFT_PRINT_AFTER is \"forms\": there is no pass `forms`"));
    }

    #[test]
    fn a_cpu_that_this_machine_does_not_run_is_refused() {
        assert_eq!(cpu_named("x86-64").map(|cpu| cpu.name.clone()), Ok("x86-64".to_owned()));
        assert!(cpu_named("x86-65").is_err_and(|message| message.contains("no CPU `x86-65`")));
        let features = |name: &str| known(name).expect("LLVM knows it").features;
        let (old, new) = (features("x86-64-v3"), features("x86-64-v4"));
        assert_eq!(missing(&old, &[&new]), [""; 0]);
        assert!(missing(&new, &[&old]).contains(&"avx512f"));
        // A feature that is listed with a minus is absent.
        assert_eq!(missing("+avx2", &["+avx,-avx2"]), ["avx2"]);
    }
}
