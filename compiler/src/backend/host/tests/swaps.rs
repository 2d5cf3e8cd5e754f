//! Branches between barriers: if-conversion with speculative stores, residue-class guards, and index-set splitting.

use crate::backend::host::tests::harness::llvm;

const ODD_EVEN: &str = "
def odd_even(x):
    v = cuda.shared.array(256, float32)
    tid = cuda.threadIdx.x
    v[tid] = x[tid]
    cuda.syncthreads()
    for phase in range(256):
        if tid % 2 == phase % 2 and tid < 255:
            if v[tid] > v[tid + 1]:
                swap = v[tid]
                v[tid] = v[tid + 1]
                v[tid + 1] = swap
        cuda.syncthreads()
    x[tid] = v[tid]
";

#[test]
fn swaps_of_every_second_thread_have_no_masks() {
    let llvm = llvm(ODD_EVEN, "void(float32[::1])", "x86-64-v4");
    assert!(!llvm.contains("masked.store") && !llvm.contains("masked.scatter"), "{llvm}");
    assert!(llvm.contains("select <8 x i1>"), "the swap is a selection in vectors:\n{llvm}");
}

#[test]
fn a_flag_that_several_threads_set_keeps_its_branch() {
    let source = "
def k(x, out):
    flag = cuda.shared.array(1, int32)
    tid = cuda.threadIdx.x
    if tid == 0:
        flag[0] = 0
    cuda.syncthreads()
    if flag[0] == 0:
        if x[tid] > 5:
            flag[0] = 1
    cuda.syncthreads()
    out[tid] = flag[0]
";
    let kernel = super::harness::kernel(source, "void(int32[::1], int32[::1])");
    for at in [0, 7, 31] {
        let mut x = vec![0_i32; 32];
        x[at] = 9;
        let mut out = vec![0_i32; 32];
        let args = [super::harness::array(&mut x), super::harness::array(&mut out)];
        kernel.launch([1, 1, 1], [32, 1, 1], 0, &args);
        assert!(out.iter().all(|&flag| flag == 1), "thread {at}");
    }
}

#[test]
fn global_memory_is_written_where_the_program_does() {
    let source = "
def k(best, x):
    i = cuda.grid(1)
    if i < x.size:
        if x[i] < best[i]:
            best[i] = x[i]
";
    let llvm = llvm(source, "void(int32[::1], int32[::1])", "x86-64-v4");
    assert!(llvm.contains("masked.store"), "no thread writes back what it read:\n{llvm}");
}

#[test]
fn arms_for_two_parts_of_a_row_load_without_masks() {
    let source = "
def k(x):
    sums = cuda.shared.array((2, 512), int32)
    tid = cuda.threadIdx.x
    source = 0
    sums[0, tid] = x[tid]
    cuda.syncthreads()
    offset = 1
    while offset < 512:
        target = 1 - source
        if tid >= offset:
            sums[target, tid] = sums[source, tid] + sums[source, tid - offset]
        else:
            sums[target, tid] = sums[source, tid]
        source = target
        cuda.syncthreads()
        offset *= 2
    x[tid] = sums[source, tid]
";
    let llvm = llvm(source, "void(int32[::1])", "x86-64-v4");
    assert!(!llvm.contains("masked.load"), "{llvm}");
}

const SCATTER: &str = "
def k(x, index, out):
    i = cuda.grid(1)
    if i < x.size:
        value = x[i]
        if value > 0:
            out[index[i]] = value
";

#[test]
fn a_scatter_that_the_cpu_cannot_mask_has_no_branch() {
    let signature = "void(float32[::1], int32[::1], float32[::1])";
    let has_slot = |cpu| llvm(SCATTER, signature, cpu).contains("alloca float");
    assert!(has_slot("x86-64-v3") && !has_slot("x86-64-v4"));
}

#[test]
fn a_store_that_the_cpu_can_mask_keeps_its_condition() {
    let source = SCATTER.replace("index[i]", "i");
    let llvm = llvm(&source, "void(float32[::1], int32[::1], float32[::1])", "x86-64-v3");
    assert!(!llvm.contains("alloca float") && llvm.contains("masked.store"), "{llvm}");
}

#[test]
fn inactive_threads_store_nothing() {
    let signature = "void(int32[::1], int32[::1], int32[::1])";
    let kernel = super::harness::kernel_planned_as(SCATTER, signature, "x86-64-v3");
    let mut x: Vec<i32> = (0..1000).map(|i| i % 7 - 3).collect();
    let mut index: Vec<i32> = (0..1000).map(|i| if i % 7 > 3 { 999 - i } else { 1 << 30 }).collect();
    let mut out = vec![-1_i32; 1000];
    let args = [super::harness::array(&mut x), super::harness::array(&mut index), super::harness::array(&mut out)];
    kernel.launch([4, 1, 1], [256, 1, 1], 0, &args);
    for (at, &value) in out.iter().enumerate() {
        let from = 999 - at;
        assert_eq!(value, if from % 7 > 3 { x[from] } else { -1 }, "{at}");
    }
}
