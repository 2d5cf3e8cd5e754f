//! `weft build`: exports kernels of a file, with C sources that launch them, without running Python.

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use weft_artifact::{Assumptions, CodeFormat, Factors};
use weft_compiler::{
    cpu_for_export,
    diagnostic::{Code, Diagnostic, Failure},
    request::{FunctionDef, Keep, Options, Outcome, Overloads, Request, Target},
    source::Span,
    syntax::ast,
};
use weft_engine::Engine;
use weft_export::{ExportedKernel, Image, ImageFormat, Package, Rules};
use weft_runtime::ptxas::{self, NotAssembled};

use crate::{
    Surroundings,
    args::BuildArgs,
    emit,
    kernels::{self, Job},
    output,
    program::{Captures, Program},
    report::{Report, Stop},
    tools,
};

/// Exports the selected kernels. On an error it reports and writes nothing.
pub(crate) fn build(
    args: &BuildArgs,
    surroundings: &Surroundings,
    color: bool,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> Result<u8, Stop> {
    let mut report = Report::default();
    let given = kernels::given_signatures(&args.kernels, &mut report);
    let cpu = cpu_for_export(&args.host_cpu).map_err(|message| Stop::Usage(format!("--host-cpu: {message}")))?;
    let targets = emit::targets(&args.target, &cpu, &mut report);
    let program = kernels::read(&args.file)?;
    let sources = program.sources();
    report.add(program.faults(), &sources);
    let selected = kernels::select(&program, &args.file, &args.kernels.kernel, &mut report);
    report.add(&kernels::missed(&program, &args.kernels.kernel), &sources);
    if selected.is_empty() && !report.has_errors() {
        let message = format!("{} has no kernels", args.file.display());
        let error = Diagnostic::error(Code::NoKernel, Span::default(), message);
        report.add_nowhere(error.help("a kernel is a function with `@cuda.jit`"));
    }
    let mut captures = Captures::default();
    let mut jobs = Vec::new();
    for kernel in selected {
        let of_kernel = kernels::jobs(&program, kernel, &given, &mut captures);
        if of_kernel.is_empty() && kernel.jit.signatures.is_empty() && !report.has_errors() {
            report.add(&[kernels::no_signature(&kernel)], &sources);
        }
        report.add(&of_kernel.iter().filter_map(kernels::returning).collect::<Vec<_>>(), &sources);
        jobs.extend(of_kernel);
    }
    let mut package = Package { name: package_name(args)?, kernels: Vec::new() };
    if !report.has_errors() {
        let ptxas = args.cubin.then(|| tools::find_ptxas(surroundings, "--cubin")).transpose()?;
        let libdevice = tools::libdevice(Some(args.libdevice.as_deref().unwrap_or("none")), surroundings)?;
        let builder = Builder { engine: Engine::new(), args, targets: &targets, ptxas, libdevice };
        for job in &jobs {
            package.kernels.extend(builder.kernel(&package.name, job, &program, &mut report)?);
        }
    }
    stderr.write_all(report.render(args.json, color).as_bytes())?;
    if report.has_errors() {
        return Ok(1);
    }
    let files = package.files().map_err(Stop::Usage)?;
    let written = files.iter().map(|file| (args.output.join(&file.name), file.bytes.as_slice())).collect::<Vec<_>>();
    output::write_files(&args.output, &written, &program.paths())?;
    for (path, _) in &written {
        writeln!(stdout, "{}", path.display())?;
    }
    Ok(0)
}

/// The package's name: given, or that of the file.
fn package_name(args: &BuildArgs) -> Result<String, Stop> {
    if let Some(name) = &args.name {
        return Ok(name.clone());
    }
    let stem = args.file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        let message = format!("{} gives no name to the package: use `--name NAME`", args.file.display());
        return Err(Stop::Usage(message));
    }
    Ok(name)
}

/// Compiles kernels for all targets.
struct Builder<'a> {
    engine: Engine,
    args: &'a BuildArgs,
    targets: &'a [Target],
    ptxas: Option<PathBuf>,
    libdevice: Option<Arc<Vec<u8>>>,
}

impl Builder<'_> {
    /// Compiles a kernel. Errors of the program are added to the report, and give `None`.
    fn kernel(
        &self,
        package: &str,
        job: &Job<'_>,
        program: &Program,
        report: &mut Report,
    ) -> Result<Option<ExportedKernel>, Stop> {
        let number = job.number.map(|number| format!("_{number}")).unwrap_or_default();
        let name = format!("{}{number}", job.kernel.name);
        let mut images = Vec::new();
        for target in self.targets {
            let request = self.request(job, target)?;
            // The check's messages have the kernel's own name; the exported symbol has the package's, too.
            match self.engine.check(&request) {
                Ok(Outcome::Made(checked)) => report.add(&checked.warnings, &checked.sources),
                Ok(Outcome::Queries(_)) => {
                    let failure = kernels::unanswered(&job.def);
                    report.add(&failure.diagnostics, &failure.sources);
                    return Ok(None);
                }
                Err(failure) => {
                    report.add(&failure.diagnostics, &failure.sources);
                    return Ok(None);
                }
            }
            for assumptions in weft_export::VARIANTS {
                let function = renamed(&job.def, weft_export::symbol(package, &name, assumptions));
                let options = Options { assumptions, ..request.options.clone() };
                let variant = Request { function, options, ..request.clone() };
                match self.images(&variant)? {
                    Ok(of_variant) => images.extend(of_variant),
                    Err(failure) => {
                        report.add(&failure.diagnostics, &failure.sources);
                        return Ok(None);
                    }
                }
            }
        }
        let jit = job.kernel.jit;
        let rules = Rules { launch: jit.launch.clone(), outputs: jit.outputs.clone() };
        match ExportedKernel::new(name, &rules, images) {
            Ok(kernel) => Ok(Some(kernel)),
            Err(message) => {
                let span = job.kernel.function.ast.name_span;
                report.add(&[Diagnostic::error(Code::BadRule, span, message)], &program.sources());
                Ok(None)
            }
        }
    }

    /// Compiles a kernel for a target, under assumptions.
    fn images(&self, request: &Request) -> Result<Result<Vec<Image>, Failure>, Stop> {
        let output = match self.engine.compile(request) {
            Ok(Outcome::Made(output)) => output,
            // The check has reported them.
            Ok(Outcome::Queries(_)) => return Ok(Ok(Vec::new())),
            Err(failure) => return Ok(Err(failure)),
        };
        let Some(kernel) = output.artifact.kernels.first() else { return Ok(Ok(Vec::new())) };
        let Request { target, options, .. } = request;
        let image =
            |format, code| Image::new(self.target_name(target), format, code, kernel.clone(), options.assumptions);
        let code = &output.artifact.code;
        let mut images = Vec::new();
        match output.artifact.format {
            CodeFormat::HostObject => images.push(image(ImageFormat::HostObject, code.clone())),
            CodeFormat::Ptx | CodeFormat::NvvmIr => {
                if let Some(ptxas) = &self.ptxas {
                    let cubin = cubin(ptxas, code, target, options.lineinfo)?;
                    images.push(image(ImageFormat::Cubin, cubin));
                }
                images.push(image(ImageFormat::Ptx, code.clone()));
            }
        }
        Ok(Ok(images))
    }

    /// The request for a kernel: code for any launch.
    fn request(&self, job: &Job<'_>, target: &Target) -> Result<Request, Stop> {
        let options = self.args.options.over(&job.kernel.jit.options)?.code;
        let options = Options {
            libdevice: self.libdevice.clone(),
            assumptions: Assumptions::NONE,
            coarsen: Factors::NONE,
            choose: false,
            ..options
        };
        Ok(Request {
            function: Arc::clone(&job.def),
            overloads: Overloads::default(),
            args: job.signature.args.clone(),
            target: target.clone(),
            options,
            keep: Keep::default(),
        })
    }

    /// The name of a target in the package: that of the CPU for the host.
    fn target_name(&self, target: &Target) -> String {
        match target {
            Target::Sm(..) => target.to_string(),
            Target::Host(_) => self.args.host_cpu.clone(),
        }
    }
}

/// The function under another name, which its symbol gets.
fn renamed(def: &Arc<FunctionDef>, name: String) -> Arc<FunctionDef> {
    let ast = ast::Function { name, ..def.ast.clone() };
    Arc::new(FunctionDef { ast, ..FunctionDef::clone(def) })
}

fn cubin(ptxas: &Path, ptx: &[u8], target: &Target, lineinfo: bool) -> Result<Vec<u8>, Stop> {
    ptxas::assemble(ptxas, ptx, &target.to_string(), lineinfo).map_err(|error| match error {
        NotAssembled::Failed(message) => Stop::Usage(message),
        NotAssembled::Rejected(said) => Stop::Usage(format!("`ptxas` rejects the PTX for {target}: {said}")),
    })
}
