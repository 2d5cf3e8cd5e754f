//! Checks that NVIDIA's assembler accepts the PTX that weft emits: every kernel of `tests/kernels`, for four SMs.
//!
//! `ptxas` is the one of `WEFT_PTXAS`, or the one that `./weft-dev` installs in `.venv`. Without `ptxas` the test
//! fails, unless `WEFT_SKIP_PTXAS=1` is set.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use crate::{
    header::Header,
    support::{emit_for, files, read, root, stem},
};

/// The SMs: the oldest, two in wide use, the newest generation.
const SMS: [&str; 4] = ["sm_75", "sm_80", "sm_90", "sm_100"];

/// The assembler, or the reason why it is missing.
fn ptxas() -> Result<PathBuf, String> {
    if let Some(path) = env::var_os("WEFT_PTXAS") {
        let path = PathBuf::from(path);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(format!("WEFT_PTXAS is {}, which is no file", path.display()))
        };
    }
    let lib = root().join(".venv/lib");
    let versions =
        fs::read_dir(&lib).map_err(|_| format!("WEFT_PTXAS is not set, and there is no {}", lib.display()))?;
    let mut found: Vec<_> = versions
        .filter_map(|entry| Some(entry.ok()?.path().join("site-packages/nvidia/cu13/bin/ptxas")))
        .filter(|path| path.is_file())
        .collect();
    found.sort();
    found.pop().ok_or_else(|| format!("WEFT_PTXAS is not set, and no ptxas is installed in {}", lib.display()))
}

/// The assembler; `None` if it is missing and the test may be skipped.
pub(crate) fn ptxas_or_skip() -> Option<PathBuf> {
    match ptxas() {
        Ok(path) => Some(path),
        Err(reason) if env::var("WEFT_SKIP_PTXAS").is_ok_and(|value| value == "1") => {
            println!("skipped: {reason}");
            None
        }
        Err(reason) => panic!("{reason}; run ./weft-dev test, or set WEFT_SKIP_PTXAS=1 to go without"),
    }
}

#[test]
fn every_kernel_assembles() {
    let Some(ptxas) = ptxas_or_skip() else { return };
    let folder = env::temp_dir().join(format!("weft-ptxas-{}", process::id()));
    fs::create_dir_all(&folder).expect("the system has a folder for such files");
    let paths = files(&["tests/kernels"], "py");
    let mut jobs = Vec::new();
    for path in &paths {
        let header = Header::read(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        let sms = if header.is_limited() { header.targets } else { SMS.map(str::to_owned).into() };
        jobs.extend(sms.into_iter().map(|sm| (path.as_str(), sm)));
    }
    let faults = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    let n_threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(|| {
                while let Some((path, sm)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(fault) = assemble(&ptxas, &folder, path, sm) {
                        faults.lock().expect("no thread panicked").push(format!("{path} for {sm}: {fault}"));
                    }
                }
            });
        }
    });
    fs::remove_dir_all(&folder).expect("the folder is this test's own");
    let mut faults = faults.into_inner().expect("no thread panicked");
    faults.sort();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Whether an error says that a kernel needs a newer SM than this one.
fn is_too_old(sm: &str, error: &str) -> bool {
    let number = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u32>().ok();
    let needed = error.split_once("needs `sm_").and_then(|(_, rest)| number(rest));
    let own = sm.strip_prefix("sm_").and_then(number);
    error.contains("or newer") && own.zip(needed).is_some_and(|(own, needed)| own < needed)
}

/// Compiles one kernel for one SM and assembles it, unless the kernel needs a newer SM.
fn assemble(ptxas: &Path, folder: &Path, path: &str, sm: &str) -> Result<(), String> {
    let header = Header::read(&read(path))?;
    let ptx = match emit_for(path.trim_start_matches("tests/"), stem(path), &header, sm, "ptx") {
        Ok(ptx) => ptx,
        Err(error) if is_too_old(sm, &error) => return Ok(()),
        Err(error) => return Err(error),
    };
    let name = path.trim_end_matches(".py").replace('/', "_");
    let (input, cubin) = (folder.join(format!("{name}.{sm}.ptx")), folder.join(format!("{name}.{sm}.cubin")));
    fs::write(&input, &ptx).map_err(|error| error.to_string())?;
    // Kernels that call external functions cannot be assembled alone: they are linked later.
    let calls_out = ptx.split(".extern .func").skip(1).any(|declared| !declared.contains("vprintf"));
    let result = Command::new(ptxas)
        .arg(format!("-arch={sm}"))
        .args(calls_out.then_some("-c"))
        .arg(&input)
        .arg("-o")
        .arg(&cubin)
        .output()
        .map_err(|error| format!("{}: {error}", ptxas.display()))?;
    let made = fs::metadata(&cubin).is_ok_and(|file| file.len() > 0);
    // The assembler warns if it serializes products of a warpgroup, or ignores numbers of registers.
    let warning = String::from_utf8_lossy(&result.stderr);
    let is_slow = warning.contains("wgmma") || warning.contains("setmaxnreg");
    if result.status.success() && made && !is_slow {
        Ok(())
    } else {
        Err(format!("{}{}", String::from_utf8_lossy(&result.stdout), String::from_utf8_lossy(&result.stderr)))
    }
}
