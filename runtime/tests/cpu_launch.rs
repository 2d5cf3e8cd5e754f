//! Launches on the CPU executor, with kernels that are functions of this test, passed by a loader without LLVM.
#![expect(unsafe_code, reason = "plays the part of compiled code")]

mod support;

use std::{
    collections::HashSet,
    sync::{Arc, Barrier, Mutex},
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

use support::{Entry, artifact, config, cpu, cpu_with, expect_error, load, load_with, probe};
use weft_artifact::{HostConfig, HostContext, HostEntry, SlotType};
use weft_runtime::{ErrorKind, LaunchConfig};

/// Cell `i` of the array in slot 0 counts how often block `i` ran.
unsafe extern "C" fn count(context: *mut HostContext) {
    let HostContext { slots, first_block, last_block, .. } = support::given(context);
    for block in first_block..last_block {
        support::bump(slots, block);
    }
}

/// As `count`, and sleeps in each block; slot 1 is a `&Mutex<HashSet<ThreadId>>` that notes who ran.
unsafe extern "C" fn count_slowly(context: *mut HostContext) {
    let HostContext { slots, first_block, last_block, .. } = support::given(context);
    let threads: &Mutex<HashSet<ThreadId>> = support::reference(slots, 1);
    threads.lock().expect("no holder panics").insert(thread::current().id());
    for block in first_block..last_block {
        support::bump(slots, block);
        thread::sleep(Duration::from_millis(2));
    }
}

/// Notes its configuration in the eight cells of slot 0, then first, last and the scratch address.
unsafe extern "C" fn note(context: *mut HostContext) {
    let HostContext { slots, config, first_block, last_block, scratch, .. } = support::given(context);
    for i in 0..8 {
        support::store(slots, i, u64::from(support::config_word(config, i)));
    }
    for (i, value) in [first_block, last_block, scratch as usize as u64].into_iter().enumerate() {
        support::store(slots, 8 + i, value);
    }
}

/// Copies the cells after the first to the address in slot 0.
unsafe extern "C" fn note_cells(context: *mut HostContext) {
    let slots = support::given(context).slots;
    for i in 0..4 {
        support::store(slots, i, support::slot(slots, 1 + i));
    }
}

/// Uses all of its scratch as a block does: writes it in one pass and checks it in another. Slot 0: how many blocks
/// found their own bytes; slot 1: bytes of scratch; slot 2: a `&Mutex<HashSet<usize>>` that notes the addresses.
unsafe extern "C" fn use_scratch(context: *mut HostContext) {
    let HostContext { slots, first_block, last_block, scratch, .. } = support::given(context);
    let addresses: &Mutex<HashSet<usize>> = support::reference(slots, 2);
    addresses.lock().expect("no holder panics").insert(scratch as usize);
    let bytes = support::scratch(scratch, support::slot(slots, 1) as usize);
    for block in first_block..last_block {
        let mark = (block % 251) as u8;
        bytes.fill(mark);
        thread::yield_now();
        if bytes.iter().all(|&byte| byte == mark) {
            support::bump(slots, 0);
        }
    }
}

fn counted(kernel: Entry, threads: usize, grid: [u32; 3]) -> Vec<u64> {
    let device = cpu_with(threads);
    let kernel = load(&device, kernel, 1);
    let mut cells = vec![0_u64; grid.iter().product::<u32>() as usize];
    kernel.launch(&config(grid, [1, 1, 1]), None, &mut [cells.as_mut_ptr() as u64]).expect("launches");
    cells
}

#[test]
fn every_block_runs_once() {
    for threads in [1, 2, 3, 8, 40] {
        for grid in [[1, 1, 1], [2, 1, 1], [7, 1, 1], [1, 3, 5], [333, 1, 1], [65536, 1, 1], [64, 32, 16]] {
            let cells = counted(count, threads, grid);
            assert!(cells.iter().all(|&n| n == 1), "{threads} threads, grid {grid:?}");
        }
    }
}

#[test]
fn every_block_runs_once_whatever_the_last_launch_cost() {
    let device = cpu_with(4);
    let kernel = load(&device, count_slowly, 2);
    let threads = Mutex::new(HashSet::<ThreadId>::new());
    for n_blocks in [1_u32, 3, 40, 2, 16] {
        let mut cells = vec![0_u64; n_blocks as usize];
        let mut slots = [cells.as_mut_ptr() as u64, &raw const threads as u64];
        kernel.launch(&config([n_blocks, 1, 1], [1, 1, 1]), None, &mut slots).expect("launches");
        assert!(cells.iter().all(|&n| n == 1), "{n_blocks} blocks");
    }
}

#[test]
fn slow_blocks_run_on_all_threads() {
    let device = cpu_with(4);
    let kernel = load(&device, count_slowly, 2);
    let threads = Mutex::new(HashSet::<ThreadId>::new());
    let mut cells = vec![0_u64; 64];
    let mut slots = [cells.as_mut_ptr() as u64, &raw const threads as u64];
    kernel.launch(&config([64, 1, 1], [1, 1, 1]), None, &mut slots).expect("launches");
    let threads = threads.into_inner().expect("no holder panics");
    assert_eq!(threads.len(), 4);
    assert!(threads.contains(&thread::current().id()), "the calling thread takes part");
}

#[test]
fn one_block_and_short_launches_run_on_the_calling_thread() {
    let device = cpu_with(4);
    let kernel = load(&device, count_slowly, 2);
    let threads = Mutex::new(HashSet::<ThreadId>::new());
    let mut cells = vec![0_u64; 1];
    let mut slots = [cells.as_mut_ptr() as u64, &raw const threads as u64];
    kernel.launch(&config([1, 1, 1], [1, 1, 1]), None, &mut slots).expect("launches");
    assert_eq!(threads.into_inner().expect("no holder panics"), HashSet::from([thread::current().id()]));
}

#[test]
fn the_first_launch_of_one_block_is_quick() {
    let best = (0..20).map(|_| {
        let device = cpu_with(64);
        let kernel = load(&device, count, 1);
        let mut cell = 0_u64;
        let mut slots = [&raw mut cell as u64];
        let start = Instant::now();
        kernel.launch(&config([1, 1, 1], [256, 1, 1]), None, &mut slots).expect("launches");
        let took = start.elapsed();
        assert_eq!(cell, 1);
        took
    });
    let best = best.min().unwrap_or_default();
    assert!(best < Duration::from_micros(100), "{best:?}");
}

#[test]
fn a_kernel_gets_what_the_abi_says() {
    let device = cpu();
    let kernel = load_with(&device, note, 1, 256, 128);
    let mut cells = [0_u64; 11];
    let launch = LaunchConfig { grid: [1, 1, 1], block: [8, 4, 2], shared_bytes: 40, cluster: LaunchConfig::ALONE };
    kernel.launch(&launch, None, &mut [cells.as_mut_ptr() as u64]).expect("launches");
    let capability = u64::from(HostConfig::capability_word((9, 0)));
    assert_eq!(cells[..10], [1, 1, 1, 8, 4, 2, 40, capability, 0, 1]);
    assert_eq!(cells[10] % 64, 0, "scratch is aligned");
    assert_eq!((kernel.shared_bytes(), kernel.registers(), kernel.max_threads_per_block()), (128, 0, 1024));
}

#[test]
fn each_thread_has_its_own_scratch() {
    let device = cpu_with(4);
    for (fixed, dynamic) in [(64, 0), (128 << 10, 0), (64, 200 << 10), (3 << 20, 100)] {
        let kernel = load_with(&device, use_scratch, 3, fixed, 64);
        let addresses = Mutex::new(HashSet::<usize>::new());
        let mut sound = 0_u64;
        let launch =
            LaunchConfig { grid: [64, 1, 1], block: [1, 1, 1], shared_bytes: dynamic, cluster: LaunchConfig::ALONE };
        let bytes = fixed + u64::from(dynamic);
        let mut slots = [&raw mut sound as u64, bytes, &raw const addresses as u64];
        kernel.launch(&launch, None, &mut slots).expect("launches");
        assert_eq!(sound, 64);
        let addresses = addresses.into_inner().expect("no holder panics");
        assert!(addresses.iter().all(|address| address % 64 == 0));
        assert!((1..=4).contains(&addresses.len()));
    }
}

#[test]
fn scratch_is_kept_between_launches() {
    let device = cpu();
    let kernel = load_with(&device, note, 1, 4096, 0);
    let address = || {
        let mut cells = [0_u64; 11];
        kernel.launch(&config([1, 1, 1], [1, 1, 1]), None, &mut [cells.as_mut_ptr() as u64]).expect("launches");
        cells[10]
    };
    assert_eq!(address(), address());
}

#[test]
fn several_threads_may_launch_at_once() {
    let device = cpu_with(4);
    let kernel = load(&device, count, 1);
    let start = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                start.wait();
                for n_blocks in [1_u32, 5000, 2, 20000, 17] {
                    let mut cells = vec![0_u64; n_blocks as usize];
                    let mut slots = [cells.as_mut_ptr() as u64];
                    kernel.launch(&config([n_blocks, 1, 1], [1, 1, 1]), None, &mut slots).expect("launches");
                    assert!(cells.iter().all(|&n| n == 1));
                }
            });
        }
    });
}

#[test]
fn a_kernel_outlives_its_module_and_executor() {
    let kernel = load(&cpu_with(3), count, 1);
    let mut cells = vec![0_u64; 1000];
    let mut slots = [cells.as_mut_ptr() as u64];
    kernel.launch(&config([1000, 1, 1], [1, 1, 1]), None, &mut slots).expect("launches");
    assert!(cells.iter().all(|&n| n == 1));
}

#[test]
fn a_launch_that_breaks_a_limit_names_it() {
    let device = cpu();
    let name = &device.attributes().name;
    let kernel = load_with(&device, count, 1, 64 << 10, 64 << 10);
    let launch = |grid, block, shared_bytes| {
        let mut cell = 0_u64;
        let config = LaunchConfig { grid, block, shared_bytes, cluster: LaunchConfig::ALONE };
        let error = expect_error(kernel.launch(&config, None, &mut [&raw mut cell as u64]));
        assert_eq!(error.kind, ErrorKind::Launch);
        assert_eq!(cell, 0, "nothing ran");
        error.message
    };
    let one = [1, 1, 1];
    assert_eq!(
        launch(one, [2048, 1, 1], 0),
        format!("cannot launch `probe`: block (2048, 1, 1) has 2048 threads; {name} allows 1024 per block")
    );
    assert_eq!(
        launch(one, [64, 32, 1], 0),
        format!("cannot launch `probe`: block (64, 32, 1) has 2048 threads; {name} allows 1024 per block")
    );
    assert_eq!(
        launch(one, [1, 1, 65], 0),
        format!("cannot launch `probe`: block (1, 1, 65) has 65 in z; {name} allows 64")
    );
    assert_eq!(launch([0, 1, 1], one, 0), "cannot launch `probe`: grid (0, 1, 1) has no blocks");
    assert_eq!(launch(one, [4, 0, 1], 0), "cannot launch `probe`: block (4, 0, 1) has no threads");
    assert_eq!(
        launch([1, 65536, 1], one, 0),
        format!("cannot launch `probe`: grid (1, 65536, 1) has 65536 in y; {name} allows 65535")
    );
    assert_eq!(
        launch([1 << 31, 1, 1], one, 0),
        format!("cannot launch `probe`: grid (2147483648, 1, 1) has 2147483648 in x; {name} allows 2147483647")
    );
    assert_eq!(
        launch(one, one, 200_000),
        format!(
            "cannot launch `probe`: it needs 265536 bytes of shared memory per block (65536 static and 200000 \
             dynamic); {name} allows 232448"
        )
    );
}

#[test]
fn a_wrong_number_of_slots_is_a_fault_of_the_caller() {
    let kernel = load(&cpu(), count, 2);
    let error = expect_error(kernel.launch(&config([1, 1, 1], [1, 1, 1]), None, &mut [0]));
    assert_eq!(error.kind, ErrorKind::Internal);
    assert_eq!(error.message, "a launch of `probe` passes 1 cells; the kernel takes 2");
}

#[test]
fn a_long_slot_lies_in_as_many_cells_as_it_takes() {
    let mut artifact = artifact(note_cells, probe(3, 0, 0));
    artifact.kernels[0].slots[1].ty = SlotType::Bytes { size: 17, align: 8 };
    let module = cpu().load(&artifact).expect("the loader takes it");
    let kernel = module.kernel(&artifact.kernels[0]).expect("the symbol is known");
    let mut seen = [0_u64; 4];
    let mut cells = [seen.as_mut_ptr() as u64, 11, 12, 13, 14];
    kernel.launch(&config([1, 1, 1], [1, 1, 1]), None, &mut cells).expect("launches");
    assert_eq!(seen, [11, 12, 13, 14]);
    let error = expect_error(kernel.launch(&config([1, 1, 1], [1, 1, 1]), None, &mut [0; 3]));
    assert_eq!(error.message, "a launch of `probe` passes 3 cells; the kernel takes 5");
}

#[test]
fn scratch_that_cannot_be_had_is_an_error() {
    let kernel = load_with(&cpu_with(2), count, 1, 1 << 50, 0);
    for n_blocks in [1, 10] {
        let mut cells = [0_u64; 10];
        let slots = &mut [cells.as_mut_ptr() as u64];
        let error = expect_error(kernel.launch(&config([n_blocks, 1, 1], [1, 1, 1]), None, slots));
        assert_eq!(error.kind, ErrorKind::Memory);
        assert_eq!(cells, [0; 10]);
    }
}

/// Whether the launch is one thread's or all threads': no block is begun, or lost without a word.
#[test]
fn blocks_whose_stacks_cannot_be_had_are_an_error() {
    let device = cpu_with(4);
    let mut kernel = probe(1, 0, 0);
    kernel.host = Some(HostEntry {
        stack_bytes: Some(1 << 56),
        call_bytes: 0,
        below_bytes: 0,
        dynamic_offset: 0,
        x_axis: 0,
        may_split_blocks: false,
        calls_runtime: false,
    });
    let artifact = artifact(count, kernel);
    let module = device.load(&artifact).expect("the loader takes it");
    let kernel = module.kernel(&artifact.kernels[0]).expect("the symbol is known");
    for n_blocks in [1_u32, 30, 10_000] {
        let mut cells = vec![0_u64; n_blocks as usize];
        let launched = kernel.launch(&config([n_blocks, 1, 1], [1; 3]), None, &mut [cells.as_mut_ptr() as u64]);
        assert_eq!(expect_error(launched).kind, ErrorKind::Memory);
        assert!(cells.iter().all(|&n| n == 0));
    }
}

/// A fork of a process with a busy pool: the child's launches neither hang nor lose blocks.
#[test]
#[cfg(target_os = "linux")]
fn a_forked_process_has_threads_of_its_own() {
    let device = cpu_with(4);
    let kernel = load(&device, count, 1);
    let launch = |n_blocks: u32| {
        let mut cells = vec![0_u64; n_blocks as usize];
        let mut slots = [cells.as_mut_ptr() as u64];
        let done = kernel.launch(&config([n_blocks, 1, 1], [1, 1, 1]), None, &mut slots);
        done.is_ok() && cells.iter().all(|&n| n == 1)
    };
    assert!(launch(30_000));
    let child = Arc::new(Mutex::new(None));
    thread::scope(|scope| {
        let busy = scope.spawn(|| {
            let start = Instant::now();
            while child.lock().expect("no holder panics").is_none() && start.elapsed() < Duration::from_secs(20) {
                assert!(launch(30_000));
            }
        });
        thread::sleep(Duration::from_millis(20));
        let status = support::in_fork(|| launch(30_000) && launch(1) && launch(20_000));
        *child.lock().expect("no holder panics") = Some(status);
        busy.join().expect("launches in the parent go on");
    });
    assert_eq!(*child.lock().expect("no holder panics"), Some(true));
    assert!(launch(30_000));
}
