//! Compares the simulator's estimate of registers with those that `ptxas` allocates, for every kernel of `tests/kernels`.

use std::thread;

use weft_compiler::target::Sm;
use weft_runtime::ptxas;

use crate::{
    ptxas::ptxas_or_skip,
    simulator::{kernels, parse, ptx},
};

/// An estimate is close if it differs by at most this many registers: the smallest difference that changes occupancy.
const CLOSE: u32 = 8;
/// The least share of close estimates, in percent.
const SHARE: usize = 90;

#[test]
fn most_estimates_of_registers_are_close() {
    let Some(assembler) = ptxas_or_skip() else { return };
    let sm = Sm::parse("sm_90").unwrap_or_else(|error| panic!("{error}"));
    let paths = kernels();
    let compared = |path: &String| {
        let ptx = ptx(path, sm.name).unwrap_or_else(|error| panic!("{path}: {error}"));
        let module = parse(path, &ptx).unwrap_or_else(|fault| panic!("{fault}"));
        let found = ptxas::resources(&assembler, ptx.as_bytes(), sm.name);
        let found = found.unwrap_or_else(|error| panic!("{path}: {error:?}"));
        let pair = |kernel: &ptxas::Resources| {
            let estimate = module.registers(&kernel.symbol, sm.max_warps)?;
            Some((
                format!("{path}: {}, ptxas {}", estimate.count, kernel.registers),
                estimate.count.abs_diff(kernel.registers),
            ))
        };
        found.iter().filter_map(pair).collect::<Vec<_>>()
    };
    let n_threads = thread::available_parallelism().map_or(1, usize::from);
    let differences: Vec<(String, u32)> = thread::scope(|scope| {
        let part = |first| paths.iter().skip(first).step_by(n_threads).flat_map(compared).collect::<Vec<_>>();
        let parts: Vec<_> = (0..n_threads).map(|first| scope.spawn(move || part(first))).collect();
        parts.into_iter().flat_map(|part| part.join().expect("the other threads do not panic")).collect()
    });
    let far: Vec<&str> = differences.iter().filter(|(_, by)| *by > CLOSE).map(|(line, _)| line.as_str()).collect();
    let n = differences.len();
    assert!(n > 100, "{n} kernels");
    println!("{} of {n} estimates are close; the others:\n{}", n - far.len(), far.join("\n"));
    assert!((n - far.len()) * 100 >= n * SHARE, "{} of {n} estimates are not close:\n{}", far.len(), far.join("\n"));
}
