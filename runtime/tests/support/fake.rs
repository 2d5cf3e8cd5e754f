//! A CUDA driver made of C (`fake_driver/`) for tests without a GPU. It is chosen when a process starts, so each test runs in
//! a process of its own.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, OnceLock},
};

use weft_artifact::{Artifact, CodeFormat, Kernel};
use weft_runtime::{Executor, LoadedKernel, Settings, cuda};

use super::probe;

/// Says to a child process which test it is.
pub(crate) const CHILD: &str = "WEFT_TEST_CHILD";

/// Runs `body` in a process whose `libcuda.so` is the one in `libraries`.
pub(crate) fn in_process(test: &str, libraries: &Path, variables: &[(&str, &str)], body: impl FnOnce()) {
    if env::var(CHILD).is_ok_and(|child| child == test) {
        return body();
    }
    let program = env::current_exe().expect("the system knows this program");
    let mut child = Command::new(program);
    child.args(["--exact", test, "--test-threads=1"]).env(CHILD, test).env("LD_LIBRARY_PATH", libraries);
    let output = child.envs(variables.iter().copied()).output().expect("this program starts");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// Runs `body` over the driver made of C.
pub(crate) fn with_driver(test: &str, variables: &[(&str, &str)], body: impl FnOnce()) {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let built = BUILT.get_or_init(|| build_driver("fake-driver", &[]));
    in_process(test, built, variables, body);
}

/// Compiles the driver and answers its folder.
pub(crate) fn build_driver(name: &str, flags: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if env::var(CHILD).is_err() {
        fs::create_dir_all(&folder).expect("the target folder can be written");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_driver/libcuda.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]).args(flags);
        let status = compiler.arg(source).arg("-o").arg(folder.join("libcuda.so")).status();
        assert!(status.expect("there is a C compiler").success());
    }
    folder
}

/// The first device.
pub(crate) fn device() -> Arc<dyn Executor> {
    cuda::open(&Settings::default(), 0).expect("the driver has a device")
}

/// PTX for the driver made of C.
pub(crate) fn ptx(text: &str) -> Artifact {
    Artifact { format: CodeFormat::Ptx, target: "sm_90".into(), code: text.into(), kernels: Vec::new() }
}

/// A kernel by its symbol.
pub(crate) fn named(symbol: &str, n_slots: usize) -> Kernel {
    Kernel { symbol: symbol.into(), name: symbol.into(), host: None, ..probe(n_slots, 0, 0) }
}

/// A kernel of the driver made of C.
pub(crate) fn kernel(device: &Arc<dyn Executor>, symbol: &str, n_slots: usize) -> Arc<dyn LoadedKernel> {
    let module = device.load(&ptx(&format!("// {symbol}"))).expect("it compiles");
    module.kernel(&named(symbol, n_slots)).expect("it is there")
}

/// The driver calls that follow a kernel's launch.
pub(crate) fn traced(body: impl FnOnce()) -> Vec<String> {
    let path = env::var("FAKE_TRACE").expect("the test sets it");
    let calls = || fs::read_to_string(&path).unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>();
    let before = calls().len();
    body();
    calls().split_off(before)
}

/// A file for a trace, empty at first.
pub(crate) fn trace_file(test: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("trace-{test}"));
    if env::var(CHILD).is_err() {
        fs::write(&path, "").expect("the target folder can be written");
    }
    path.to_str().expect("the target folder has a plain name").to_owned()
}
