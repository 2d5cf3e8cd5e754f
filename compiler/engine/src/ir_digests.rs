//! Digests of the LLVM IR of all kernels that a process compiles, to compare two builds of the compiler: a change that
//! should not change code is one where all digests are equal. `./weft-dev golden` collects and compares them.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    path::{Path, PathBuf},
};

use weft_compiler::{
    diagnostic::{Code, Diagnostic, Failure},
    host_cpu_set, pipeline,
    request::{Entry, Outcome, Request, Target},
    source::{SourceMap, Span},
};

/// A file of digests, and the targets that kernels are compiled for.
#[derive(Debug)]
pub struct IrDigests {
    file: PathBuf,
    targets: Vec<(String, Target)>,
}

impl IrDigests {
    /// The targets are CPUs with vectors of 128 to 512 bits and with different execution units, and two SMs. The CPUs are
    /// [planned](weft_compiler::request::PlannedCpu) ones, because the code does not run.
    pub fn new(file: PathBuf) -> Self {
        let names = ["x86-64-v2", "x86-64-v3", "x86-64-v4", "znver5", "sapphirerapids"];
        let cpus = names.map(|name| (name.to_owned(), host_cpu_set(None, Some(name), 3).map(Target::Host)));
        let cpus = cpus.into_iter().filter_map(|(name, target)| Some((name, target.ok()?)));
        let sms = [75, 90].map(|sm| (format!("sm_{sm}"), Target::Sm(sm, "")));
        Self { file, targets: cpus.chain(sms).collect() }
    }

    /// Appends a line for each target: the location of the kernel in the source, its name and argument types, the
    /// target, and the digest of the LLVM IR that LLVM's passes get, separated by tabs. A kernel that is compiled with
    /// several options has several digests. If a target rejects the kernel, the line has the code of the error instead
    /// of a digest.
    ///
    /// # Errors
    ///
    /// `E0901` if the file cannot be written.
    pub(crate) fn record(&self, request: &Request) -> Result<(), Failure> {
        let kernel = kernel(request);
        for (name, target) in &self.targets {
            if matches!(target, Target::Host(_)) && request.options.entry != Entry::Launch {
                continue;
            }
            let digest = match pipeline::unoptimized_llvm(&Request { target: target.clone(), ..request.clone() }) {
                Ok(Outcome::Made(llvm)) => blake3::hash(llvm.as_bytes()).to_hex().chars().take(16).collect(),
                Ok(Outcome::Queries(_)) => "queries".to_owned(),
                Err(failure) => {
                    failure.diagnostics.first().map_or_else(String::new, |first| first.code.number().to_owned())
                }
            };
            append(&self.file, &format!("{kernel}\t{name}\t{digest}\n")).map_err(|error| {
                let message = format!("WEFT_IR_DIGESTS: cannot write {}: {error}", self.file.display());
                let diagnostic = Diagnostic::error(Code::Internal, Span { file: u32::MAX, ..Span::default() }, message);
                Failure { diagnostics: vec![diagnostic], sources: SourceMap::default() }
            })?;
        }
        Ok(())
    }
}

/// The last two parts of the path of a kernel's file, its line, its name and its argument types.
fn kernel(request: &Request) -> String {
    let function = &request.function;
    let path = Path::new(&function.source.name);
    let parts: Vec<_> = path.iter().rev().take(2).map(|part| part.to_string_lossy()).collect();
    let file = parts.into_iter().rev().collect::<Vec<_>>().join("/");
    let (line, _) = function.source.line_column(function.ast.span.start);
    let args: Vec<String> = request.args.iter().map(ToString::to_string).collect();
    format!("{file}:{line}\t{}({})", function.ast.name, args.join(", "))
}

/// Appends a line in one write, so that lines of several processes do not mix.
fn append(file: &Path, line: &str) -> io::Result<()> {
    OpenOptions::new().create(true).append(true).open(file)?.write_all(line.as_bytes())
}
