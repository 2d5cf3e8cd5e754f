//! NVIDIA's `ptxas`: assembles PTX to machine code, and reports each kernel's resource usage.

use std::{
    fmt, fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
};

/// A kernel's resource usage on a multiprocessor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// The symbol of the kernel, if `ptxas` reports it.
    pub symbol: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Static shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// Local memory of a thread, in bytes: arrays, spilled registers and stack frames.
    pub local_bytes: u32,
    /// Bytes of registers that a thread spills: stored and loaded. `None` if only `ptxas` could say.
    pub spills: Option<(u32, u32)>,
}

/// `40 registers a thread, 1024 bytes of shared memory a block, no spills`.
impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { symbol: _, registers, shared_bytes, local_bytes, spills } = self;
        write!(f, "{registers} registers a thread, {shared_bytes} bytes of shared memory a block")?;
        if *local_bytes > 0 {
            write!(f, ", {local_bytes} bytes of local memory a thread")?;
        }
        match spills {
            Some((0, 0)) => f.write_str(", no spills"),
            Some((stores, loads)) => write!(f, ", spills: {stores} bytes stored, {loads} bytes loaded"),
            None if *local_bytes == 0 => f.write_str(", no spills"),
            None => Ok(()),
        }
    }
}

/// Why there is no cubin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAssembled {
    /// The errors of `ptxas` about the PTX.
    Rejected(String),
    /// The reason that `ptxas` failed.
    Failed(String),
}

/// Assembles PTX.
///
/// # Errors
///
/// If `ptxas` rejects the PTX, or cannot be run.
pub fn assemble(ptxas: &Path, ptx: &[u8], target: &str, lineinfo: bool) -> Result<Vec<u8>, NotAssembled> {
    assemble_with(ptxas, ptx, target, if lineinfo { &["-lineinfo"] } else { &[] }).map(|(cubin, _)| cubin)
}

/// Assembles PTX with its lines. Returns the resources of each kernel, too.
///
/// # Errors
///
/// If `ptxas` rejects the PTX, or cannot be run.
pub fn assemble_and_report(ptxas: &Path, ptx: &[u8], target: &str) -> Result<(Vec<u8>, Vec<Resources>), NotAssembled> {
    assemble_with(ptxas, ptx, target, &["-lineinfo", "-v"]).map(|(cubin, said)| (cubin, read(&said)))
}

/// The cubin, and the output of `ptxas`.
fn assemble_with(ptxas: &Path, ptx: &[u8], target: &str, options: &[&str]) -> Result<(Vec<u8>, String), NotAssembled> {
    // Threads of the process may assemble at the same time.
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let cubin = std::env::temp_dir().join(format!("weft-{process}-{number}-{target}.cubin"));
    let assembled = run(ptxas, ptx, target, &cubin, options).and_then(|said| match fs::read(&cubin) {
        Ok(bytes) if !bytes.is_empty() => Ok((bytes, said)),
        Ok(_) => Err(NotAssembled::Failed(format!("{} wrote an empty cubin", ptxas.display()))),
        Err(error) => Err(NotAssembled::Failed(format!("{} wrote no cubin: {error}", ptxas.display()))),
    });
    // A failed run leaves no file.
    let _absent = fs::remove_file(&cubin);
    assembled
}

/// Whether PTX calls functions of other languages, except `vprintf`, which `ptxas` knows.
fn calls_out(ptx: &[u8]) -> bool {
    let text = String::from_utf8_lossy(ptx);
    text.split(".extern .func").skip(1).any(|declared| !declared.contains("vprintf"))
}

/// The output of `ptxas`.
fn run(ptxas: &Path, ptx: &[u8], target: &str, cubin: &Path, options: &[&str]) -> Result<String, NotAssembled> {
    let failed = |what: String| NotAssembled::Failed(format!("{} {what}", ptxas.display()));
    let cannot_run = |error: std::io::Error| failed(format!("cannot be run: {error}"));
    let mut command = Command::new(ptxas);
    command.arg(format!("-arch={target}")).arg("-").arg("-o").arg(cubin).args(options);
    if calls_out(ptx) {
        // It is linked later with the functions that it calls.
        command.arg("-c");
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(cannot_run)?;
    if let Some(mut stdin) = child.stdin.take() {
        // If ptxas stops reading, its own message says why.
        let _refused = stdin.write_all(ptx);
    }
    let output = child.wait_with_output().map_err(cannot_run)?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    if output.status.success() {
        return Ok(said);
    }
    match output.status.code() {
        Some(_) if !said.is_empty() => Err(NotAssembled::Rejected(said)),
        // With its number, or the signal that ended it.
        _ => Err(failed(format!("could not assemble the PTX for {target} ({}): {said}", output.status))),
    }
}

/// The resources of each kernel in PTX.
///
/// # Errors
///
/// If `ptxas` rejects the PTX, or cannot be run.
pub fn resources(ptxas: &Path, ptx: &[u8], target: &str) -> Result<Vec<Resources>, NotAssembled> {
    run(ptxas, ptx, target, Path::new("/dev/null"), &["-v"]).map(|said| read(&said))
}

/// Parses the output of `ptxas -v`.
fn read(said: &str) -> Vec<Resources> {
    let mut kernels: Vec<Resources> = Vec::new();
    let mut is_own = false;
    for line in said.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let symbol = rest.split('\'').next().unwrap_or_default().to_owned();
            kernels.push(Resources { symbol, spills: Some((0, 0)), ..Resources::default() });
            continue;
        }
        let Some(kernel) = kernels.last_mut() else { continue };
        if let Some((_, name)) = line.split_once("Function properties for ") {
            // Functions that are not inlined have lines of their own.
            is_own = name.trim() == kernel.symbol;
        } else if line.contains("bytes stack frame") && is_own {
            kernel.local_bytes = before(line, "bytes stack frame");
            kernel.spills = Some((before(line, "bytes spill stores"), before(line, "bytes spill loads")));
        } else if line.contains(" registers") {
            kernel.registers = before(line, "registers");
            kernel.shared_bytes = before(line, "bytes smem");
        }
    }
    kernels
}

/// The number in front of some words; 0 if they do not occur.
fn before(line: &str, words: &str) -> u32 {
    let number = line.split(words).next().filter(|head| head.len() < line.len());
    number.and_then(|head| head.split_whitespace().next_back()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ptxas_prints_is_read() {
        let said = "ptxas info    : 0 bytes gmem, 80 bytes cmem[3]
ptxas info    : Compiling entry function 'first' for 'sm_90'
ptxas info    : Function properties for helper
    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Function properties for first
    48 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 48 bytes cumulative stack size, 1024 bytes smem, 400 bytes cmem[0]
ptxas info    : Compile time = 11.455 ms
ptxas info    : Compiling entry function 'second' for 'sm_90'
ptxas info    : Function properties for second
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, 360 bytes cmem[0]
";
        let found = read(said);
        let first = Resources {
            symbol: "first".to_owned(),
            registers: 40,
            shared_bytes: 1024,
            local_bytes: 48,
            spills: Some((16, 24)),
        };
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], first);
        assert_eq!(
            found[0].to_string(),
            "40 registers a thread, 1024 bytes of shared memory a block, 48 bytes of local memory a thread, spills: 16 \
             bytes stored, 24 bytes loaded"
        );
        assert_eq!(found[1].to_string(), "8 registers a thread, 0 bytes of shared memory a block, no spills");
        assert_eq!(read("ptxas info    : 0 bytes gmem\n"), []);
    }
}
