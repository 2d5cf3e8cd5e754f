//! The simulator of PTX: it accepts the PTX of every kernel of `tests/kernels`, and runs the kernels with simple arguments.

use weft_simulator::{Launch, Module};

use crate::{
    header::Header,
    support::{emit_for, files, read, stem},
};

/// The module of a kernel.
pub(crate) fn parse(path: &str, ptx: &str) -> Result<Module, String> {
    Module::parse(ptx).map_err(|error| format!("{path}: {error}"))
}

/// Kernels for which the launch of [`run`] is invalid, and a part of the error.
const REFUSED: &[(&str, &str)] = &[
    // A loop of 700 million iterations, because its factor is tiny.
    ("control/narrow_counters.py", "more instructions than its limit"),
    // The search finds no 7 in the array of zeros.
    ("control/waiting.py", "is in no array"),
    // It calls a function of another module.
    ("functions/external.py", "is in another module"),
    // Threads beyond the length of 8 report an exception to the address 8.
    ("functions/raises.py", "is in no array"),
    // Its tiles are for blocks of 32 and of 16 by 16 threads.
    ("functions/recursive_barriers.py", "of shared memory"),
    ("memory/shared_2d.py", "of shared memory"),
    // Its tiles are for a block of one warp.
    ("memory/swizzled.py", "of shared memory"),
    // Arrays of zeros are no tensor maps.
    ("memory/bulk_copies.py", "the tensor map is not one of the CPU"),
    ("memory/bulk_stores.py", "the tensor map is not one of the CPU"),
    // A cluster of one block waits for the arrivals of two.
    ("functions/clusters.py", "that no other thread can complete: it lacks 1 arrivals"),
    // The index 8 is outside of the local array of 4 numbers.
    ("memory/local_array.py", "of local memory"),
];

/// Whether a kernel needs an SM with a suffix, such as `sm_90a`.
fn needs_suffix(path: &str) -> bool {
    Header::read(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}")).needs_suffix()
}

/// The kernels that are for any SM.
pub(crate) fn kernels() -> Vec<String> {
    files(&["tests/kernels"], "py").into_iter().filter(|path| !needs_suffix(path)).collect()
}

/// The PTX of a kernel.
pub(crate) fn ptx(path: &str, sm: &str) -> Result<String, String> {
    let header = Header::read(&read(path))?;
    let inside = path.trim_start_matches("tests/");
    emit_for(inside, stem(path), &Header { assumptions: Vec::new(), ..header }, sm, "ptx")
}

/// Runs the kernels of a module with zeros in all arrays, 8 in 64-bit numbers, 3 in narrower ones.
fn run(module: &Module) -> Result<u64, String> {
    let mut instructions = 0;
    for (name, params) in module.kernels() {
        let mut memory = module.memory();
        let mut launch = Launch::new([2, 1, 1], [64, 1, 1]);
        (launch.dynamic_shared, launch.limit) = (1024, 4_000_000);
        for param in &params {
            // An array has elements on both sides of its address, because an index may be negative.
            let address = if param.is_pointer { memory.add("array", &vec![0; 1 << 17]) + (1 << 16) } else { 8 };
            let value = if param.size == 8 { address } else { 3 };
            let bytes = value.to_le_bytes().into_iter().cycle().take(param.size as usize);
            launch.params.push(bytes.collect());
        }
        let counts = module.launch(name, &launch, &memory).map_err(|error| error.to_string())?;
        instructions += counts.instructions();
    }
    Ok(instructions)
}

#[test]
fn the_simulator_runs_every_kernel() {
    let mut faults = Vec::new();
    for path in kernels() {
        let ptx = ptx(&path, "sm_90").unwrap_or_else(|error| panic!("{path}: {error}"));
        let module = match parse(&path, &ptx) {
            Ok(module) => module,
            Err(fault) => {
                faults.push(fault);
                continue;
            }
        };
        let refused = REFUSED.iter().find(|(name, _)| path.ends_with(name)).map(|(_, part)| *part);
        match (run(&module), refused) {
            (Ok(_), None) => {}
            (Err(error), Some(part)) if error.contains(part) => {}
            (Ok(_), Some(part)) => faults.push(format!("{path}: it runs, `{part}` was expected")),
            (Err(error), _) => faults.push(format!("{path}: {error}")),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_simulator_reads_kernels_for_one_architecture() {
    let paths: Vec<String> = files(&["tests/kernels"], "py").into_iter().filter(|path| needs_suffix(path)).collect();
    let ptx = |path: &String| ptx(path, "sm_90a").unwrap_or_else(|error| panic!("{path}: {error}"));
    let faults: Vec<String> = paths.iter().filter_map(|path| parse(path, &ptx(path)).err()).collect();
    assert!(paths.len() > 1 && faults.is_empty(), "{} kernels: {}", paths.len(), faults.join("\n"));
}

#[test]
fn the_simulator_reads_the_ptx_for_newer_gpus() {
    let mut faults = Vec::new();
    for path in kernels() {
        let ptx = ptx(&path, "sm_120").unwrap_or_else(|error| panic!("{path}: {error}"));
        faults.extend(parse(&path, &ptx).err());
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
