//! `weft emit`.

use std::{
    io::Write,
    iter,
    path::{Path, PathBuf},
    sync::Arc,
};

use weft_artifact::{Artifact, Factors, Kernel};
use weft_compiler::{
    diagnostic::{Code, Diagnostic, Failure},
    request::{
        Abi, Derivative, Entry, Foreign, FunctionDef, GpuCode, HostCpu, Keep, Options, Outcome, Overloads, Request,
        Role, Target,
    },
    source::Span,
    target::{self, Sm, occupancy::Needs},
};
use weft_engine::Engine;
use weft_runtime::{
    USUAL_BLOCK,
    ptxas::{self, NotAssembled},
};

use crate::{
    Stdout, Surroundings,
    args::{AbiArg, EmitArgs, Form},
    kernels::{self, Job},
    output::{self, Output},
    page,
    program::{Captures, Jit},
    report::{Report, Stop},
    tools,
};

/// Compiles the selected kernels and writes the outputs. On an error it reports and writes nothing.
pub(crate) fn emit(
    args: &EmitArgs,
    surroundings: &Surroundings,
    color: bool,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> Result<u8, Stop> {
    let mut report = Report::default();
    let given = kernels::given_signatures(&args.kernels, &mut report);
    let targets = targets(&args.target, &tools::host_cpu(surroundings)?, &mut report);
    let forms = forms(args, &targets)?;
    let program = kernels::read(&args.file)?;
    if program.is_broken() {
        report.add(program.faults(), &program.sources());
        stderr.write_all(report.render(args.json, color).as_bytes())?;
        return Ok(1);
    }
    let wants_kernels = args.function.is_empty() || !args.kernels.kernel.is_empty();
    let selected = if wants_kernels {
        kernels::select(&program, &args.file, &args.kernels.kernel, &mut report)
    } else {
        Vec::new()
    };
    let functions = kernels::select_functions(&program, &args.file, &args.function, &mut report);
    foreign_fits(args, &targets, wants_kernels)?;
    if report.has_errors() {
        stderr.write_all(report.render(args.json, color).as_bytes())?;
        return Ok(2);
    }
    let sources = program.sources();
    report.add(program.faults(), &sources);
    if wants_kernels {
        report.add(&kernels::missed(&program, &args.kernels.kernel), &sources);
    }
    if selected.is_empty() && functions.is_empty() && !report.has_errors() {
        let message = format!("{} has no kernels", args.file.display());
        let error = Diagnostic::error(Code::NoKernel, Span::default(), message);
        report.add_nowhere(error.help("a kernel is a function with `@cuda.jit`"));
    }
    let mut captures = Captures::default();
    let mut all_jobs = Vec::new();
    for (kernel, is_function) in
        selected.into_iter().map(|kernel| (kernel, false)).chain(functions.into_iter().map(|function| (function, true)))
    {
        let jobs = if is_function { kernels::function_jobs } else { kernels::jobs };
        let jobs = jobs(&program, kernel, &given, &mut captures);
        if jobs.is_empty() && kernel.jit.signatures.is_empty() && !report.has_errors() {
            report.add(&[kernels::no_signature(&kernel)], &sources);
        }
        report.add(&jobs.iter().filter_map(kernels::returning).collect::<Vec<_>>(), &sources);
        all_jobs.extend(jobs);
    }
    let (mut outputs, mut remarks) = (Vec::new(), Vec::new());
    if !report.has_errors() {
        let is_gpu = |target: &Target| matches!(target, Target::Sm(..));
        let needed = targets.iter().any(is_gpu);
        let libdevice = if needed { tools::libdevice(args.libdevice.as_deref(), surroundings)? } else { None };
        let flag = if forms.contains(&Form::Cubin) { "--emit cubin" } else { "--resource-usage" };
        let needs_ptxas = needed && (forms.contains(&Form::Cubin) || args.resource_usage);
        let ptxas = needs_ptxas.then(|| tools::find_ptxas(surroundings, flag)).transpose()?;
        let engine = Engine::new().with_ir_digests(tools::ir_digests(surroundings)?);
        let printed = tools::printed_passes(surroundings)?;
        let compile = Compile { engine, args, forms: &forms, libdevice, ptxas, printed };
        for job in &all_jobs {
            for target in &targets {
                compile.run(job, target, &mut report, &mut outputs, &mut remarks)?;
            }
        }
    }
    let text = report.render(args.json, color);
    if report.has_errors() {
        stderr.write_all(text.as_bytes())?;
        return Ok(1);
    }
    if args.output.is_none() && output::are_modules(&outputs) {
        // The titles between modules help a reader, but an assembler rejects the joined text.
        let several = format!("{} PTX modules, which no assembler accepts in one file", outputs.len());
        let instead = "use `-o FOLDER` to write one file per kernel, or `--kernel NAME` to select one kernel";
        match surroundings.stdout {
            Stdout::Terminal => {}
            Stdout::File => return Err(Stop::Usage(format!("the output would be {several}: {instead}"))),
            Stdout::Other if args.json => {}
            Stdout::Other => writeln!(stderr, "note: these are {several}: {instead}")?,
        }
    }
    if args.output.is_none() && outputs.len() > 1 && forms.contains(&Form::Html) {
        return Err(Stop::Usage(
            "the output would be several pages: write them to a folder with `-o FOLDER`".to_owned(),
        ));
    }
    output::write(&outputs, args.output.as_deref(), &program.paths(), stdout)?;
    stderr.write_all(text.as_bytes())?;
    stderr.write_all(remarks.concat().as_bytes())?;
    Ok(0)
}

/// The targets of `--target` without duplicates. Unknown names are added to the report.
pub(crate) fn targets(names: &[String], cpu: &Arc<HostCpu>, report: &mut Report) -> Vec<Target> {
    let mut targets = Vec::new();
    for name in names {
        match target::parse(name, || Arc::clone(cpu)) {
            Ok(target) if targets.contains(&target) => {}
            Ok(target) => targets.push(target),
            Err(unknown) => {
                let error =
                    Diagnostic::error(Code::UnknownTarget, Span::default(), format!("there is no target `{name}`"));
                report.add_nowhere(error.help(format!("did you mean {}?", unknown.nearest.join(", "))));
            }
        }
    }
    targets
}

/// Rejects combinations of options that produce code no other program can call.
fn foreign_fits(args: &EmitArgs, targets: &[Target], wants_kernels: bool) -> Result<(), Stop> {
    let usage = |message: &str| Err(Stop::Usage(message.to_owned()));
    let is_foreign = args.abi.is_some() || !args.function.is_empty();
    if is_foreign && targets.iter().any(|target| matches!(target, Target::Host(_))) {
        return usage(
            "code for other programs (`--function`, `--abi`) must be PTX, which the target `host` does not have",
        );
    }
    if args.abi == Some(AbiArg::C) && wants_kernels {
        return usage("`--abi c` is for device functions, not for kernels: select one with `--function NAME`");
    }
    Ok(())
}

/// The forms to write, without duplicates. The target `host` has neither PTX, NVVM IR, a cubin nor a page, and only it has plans.
fn forms(args: &EmitArgs, targets: &[Target]) -> Result<Vec<Form>, Stop> {
    let mut forms = args.emit.clone();
    forms.extend(args.plan.then_some(Form::Plan));
    forms.extend(args.html.then_some(Form::Html));
    forms.sort_unstable();
    forms.dedup();
    let gpu_only = forms.iter().find(|form| matches!(form, Form::Ptx | Form::Cubin | Form::Nvvm | Form::Html));
    if let Some(form) = gpu_only
        && targets.iter().any(|target| matches!(target, Target::Host(_)))
    {
        let name = output::extension(*form);
        return Err(Stop::Usage(format!("the target `host` has no {name}: use `--emit asm` to show its code")));
    }
    if forms.contains(&Form::Plan)
        && let Some(gpu) = targets.iter().find(|target| matches!(target, Target::Sm(..)))
    {
        return Err(Stop::Usage(format!("the target `{gpu}` has no plan: use `--target host`")));
    }
    if forms.contains(&Form::Cubin) && args.output.is_none() {
        return Err(Stop::Usage("a cubin is binary: write it to a file with `-o PATH`".to_owned()));
    }
    Ok(if forms.is_empty() { vec![Form::Asm] } else { forms })
}

/// The result of a compilation, which needs no answers from Python here.
fn answered<T>(request: &Request, outcome: Outcome<T>) -> Result<T, Failure> {
    match outcome {
        Outcome::Made(made) => Ok(made),
        Outcome::Queries(_) => Err(kernels::unanswered(&request.function)),
    }
}

/// State shared by all compilations of a call.
struct Compile<'a> {
    engine: Engine,
    args: &'a EmitArgs,
    forms: &'a [Form],
    libdevice: Option<Arc<Vec<u8>>>,
    ptxas: Option<PathBuf>,
    /// The passes after which plans are printed.
    printed: Vec<String>,
}

impl Compile<'_> {
    /// The options of a decorator, overridden by those of the command line.
    fn options(&self, jit: &Jit) -> Result<Options, Stop> {
        let code = self.args.options.over(&jit.options)?.code;
        let (assumptions, likely_block) = (self.args.assumptions(), self.args.block);
        // A page needs line tables, which change no instruction.
        let lineinfo = code.lineinfo || self.forms.contains(&Form::Html);
        Ok(Options { libdevice: self.libdevice.clone(), assumptions, likely_block, lineinfo, ..code })
    }

    fn entry(&self, is_function: bool) -> Entry {
        let role = match (is_function, self.args.abi) {
            (true, None | Some(AbiArg::C)) => Role::Function(Abi::C),
            (true, Some(AbiArg::Numba)) => Role::Function(Abi::Numba),
            (false, Some(_)) => Role::Kernel,
            (false, None) => return Entry::Launch,
        };
        Entry::Foreign(Foreign { role, symbol: None })
    }

    /// The function to compile; for an adjoint kernel, with the adjoints as its last parameters.
    fn function(&self, job: &Job<'_>) -> Result<(Arc<FunctionDef>, Option<Derivative>), Stop> {
        if self.args.adjoint.is_empty() {
            return Ok((Arc::clone(&job.def), None));
        }
        let params = &job.def.ast.params;
        let number = |name: &String| {
            let found = params.iter().position(|param| param.name == *name);
            let missing = || Stop::Usage(format!("`{}` has no parameter `{name}`", job.def.ast.name));
            found.map(|number| number as u32).ok_or_else(missing)
        };
        let of = self.args.adjoint.iter().map(number).collect::<Result<Vec<_>, _>>()?;
        let derivative = Derivative { wrt: of.clone(), of, has_old_contents: true, ..Derivative::default() };
        let mut def = FunctionDef::clone(&job.def);
        derivative.add_adjoints(&mut def.ast);
        Ok((Arc::new(def), Some(derivative)))
    }

    /// The intermediate code that the output formats need.
    fn keep(&self) -> Keep {
        let needs = |form: Form| self.forms.contains(&form);
        Keep { ir: needs(Form::Ir), llvm: needs(Form::Llvm), asm: needs(Form::Asm), ..Keep::default() }
    }

    /// Compiles one kernel for one signature and target.
    fn run(
        &self,
        job: &Job<'_>,
        target: &Target,
        report: &mut Report,
        outputs: &mut Vec<Output>,
        remarks: &mut Vec<String>,
    ) -> Result<(), Stop> {
        let options = self.options(job.kernel.jit)?;
        // The coarsening estimate exists only for GPUs.
        let choose = options.choose && matches!(target, Target::Sm(..));
        let (function, derivative) = self.function(job)?;
        let request = Request {
            function,
            overloads: Overloads::default(),
            args: job.signature.args.clone(),
            target: target.clone(),
            options: Options { entry: self.entry(job.is_function), choose, derivative, ..options },
            keep: self.keep(),
        };
        let compiled = match self.engine.compile(&request).and_then(|outcome| answered(&request, outcome)) {
            Ok(compiled) => compiled,
            Err(failure) => {
                report.add(&failure.diagnostics, &failure.sources);
                return Ok(());
            }
        };
        report.add(&compiled.warnings, &compiled.sources);
        let mut compiled = compiled;
        if self.args.remarks {
            remarks.extend(coarsening_remarks(job, &request, &compiled.artifact));
        }
        // The estimate has no code. Emits the variant that it recommends, else the kernel as written.
        if choose {
            let mut candidates = compiled.artifact.kernels.iter().flat_map(|kernel| &kernel.coarsening.candidates);
            let chosen = candidates.find(|candidate| candidate.is_worth_it());
            let coarsen = chosen.map_or(Factors::NONE, |candidate| candidate.factors);
            let options = Options { coarsen, choose: false, ..request.options.clone() };
            let request = Request { options, ..request.clone() };
            match self.engine.compile(&request).and_then(|outcome| answered(&request, outcome)) {
                Ok(variant) => compiled = variant,
                Err(failure) => {
                    report.add(&failure.diagnostics, &failure.sources);
                    return Ok(());
                }
            }
        }
        remarks.extend(self.plan_remarks(job, &request, report));
        remarks.extend(self.printed_plans(&request, report));
        let rejected = |said: String| {
            let message = format!("`ptxas` rejects the PTX for {target}: {said}");
            Diagnostic::error(Code::Internal, job.kernel.function.ast.name_span, message)
        };
        if self.args.resource_usage {
            match self.resource_usage(&compiled.artifact, target) {
                Ok(lines) => remarks.extend(lines.iter().map(|line| format!("{} for {target}: {line}\n", job.title()))),
                Err(NotAssembled::Failed(message)) => return Err(Stop::Usage(message)),
                Err(NotAssembled::Rejected(said)) => {
                    report.add(&[rejected(said)], &compiled.sources);
                    return Ok(());
                }
            }
        }
        for &form in self.forms {
            let is_gpu = matches!(target, Target::Sm(..));
            let bytes = match form {
                Form::Nvvm | Form::Plan => match self.separate_form(form, &request) {
                    Ok(text) => text,
                    Err(failure) => {
                        report.add(&failure.diagnostics, &failure.sources);
                        return Ok(());
                    }
                },
                Form::Ir => compiled.ir.clone().unwrap_or_default().into_bytes(),
                Form::Llvm => compiled.llvm.clone().unwrap_or_default().into_bytes(),
                Form::Asm if !is_gpu => compiled.asm.clone().unwrap_or_default().into_bytes(),
                Form::Ptx | Form::Asm => compiled.artifact.code.clone(),
                Form::Html => {
                    let ptx = String::from_utf8_lossy(&compiled.artifact.code);
                    page::page(&format!("{} for {target}", job.title()), &ptx).into_bytes()
                }
                Form::Cubin => match self.cubin(&compiled.artifact.code, target, request.options.lineinfo) {
                    Ok(cubin) => cubin,
                    Err(NotAssembled::Failed(message)) => return Err(Stop::Usage(message)),
                    Err(NotAssembled::Rejected(said)) => {
                        report.add(&[rejected(said)], &compiled.sources);
                        return Ok(());
                    }
                },
            };
            let form = if form == Form::Asm && is_gpu { Form::Ptx } else { form };
            let number = job.number.map(|number| format!(".{number}")).unwrap_or_default();
            let file = format!("{}{number}.{target}.{}", job.kernel.name, output::extension(form));
            outputs.push(Output { file, title: format!("{} for {target}", job.title()), form, bytes });
        }
        Ok(())
    }

    /// The remarks about the plan of a kernel for the host, if remarks are written.
    fn plan_remarks(&self, job: &Job<'_>, request: &Request, report: &mut Report) -> Vec<String> {
        if !self.args.remarks || matches!(request.target, Target::Sm(..)) {
            return Vec::new();
        }
        match self.engine.plan_remarks(request).and_then(|outcome| answered(request, outcome)) {
            Ok(lines) => {
                let title = format!("{} for {}: parallel regions, loops and accesses\n", job.title(), request.target);
                iter::once(title).chain(lines.iter().map(|line| format!("    {line}\n"))).collect()
            }
            Err(failure) => {
                report.add(&failure.diagnostics, &failure.sources);
                Vec::new()
            }
        }
    }

    /// The plans of a request's kernel after the passes that `WEFT_PRINT_AFTER` names.
    fn printed_plans(&self, request: &Request, report: &mut Report) -> Option<String> {
        if self.printed.is_empty() {
            return None;
        }
        let printed = self.engine.plan_trace(request, &self.printed).and_then(|outcome| answered(request, outcome));
        printed.inspect_err(|failure| report.add(&failure.diagnostics, &failure.sources)).ok()
    }

    /// A form that another compilation makes: NVVM IR, or the plan of the host.
    fn separate_form(&self, form: Form, request: &Request) -> Result<Vec<u8>, Failure> {
        if form == Form::Nvvm {
            return self.nvvm_ir(request);
        }
        Ok(answered(request, self.engine.plan_text(request)?)?.into_bytes())
    }

    /// The NVVM IR of a request that compiles to PTX.
    fn nvvm_ir(&self, request: &Request) -> Result<Vec<u8>, Failure> {
        let options =
            Options { gpu_code: GpuCode::NvvmIr { forceinline: false }, choose: false, ..request.options.clone() };
        let request = Request { options, keep: Keep::default(), ..request.clone() };
        Ok(answered(&request, self.engine.compile(&request)?)?.artifact.code.clone())
    }

    fn cubin(&self, ptx: &[u8], target: &Target, lineinfo: bool) -> Result<Vec<u8>, NotAssembled> {
        ptxas::assemble(self.ptxas()?, ptx, &target.to_string(), lineinfo)
    }

    fn ptxas(&self) -> Result<&Path, NotAssembled> {
        self.ptxas.as_deref().ok_or_else(|| NotAssembled::Failed("ptxas was not looked for".to_owned()))
    }

    /// The kernels' resource usage and occupancy per multiprocessor, one line per kernel.
    fn resource_usage(&self, artifact: &Artifact, target: &Target) -> Result<Vec<String>, NotAssembled> {
        let Some(sm) = Sm::of_target(target) else {
            return Ok(vec!["registers and occupancy do not apply to the CPU".to_owned()]);
        };
        let found = ptxas::resources(self.ptxas()?, &artifact.code, &target.to_string())?;
        let line = |kernel: &Kernel| {
            let resources = found.iter().find(|resources| resources.symbol == kernel.symbol)?;
            let in_one = kernel.coarsening.factors.threads_in_one();
            let threads = (kernel.max_threads.unwrap_or(USUAL_BLOCK) / in_one).max(1);
            let needs = Needs::new(resources.registers, u64::from(resources.shared_bytes), threads);
            let dynamic = if kernel.dynamic_shared { " without dynamic shared memory" } else { "" };
            let occupancy = sm.occupancy(needs);
            Some(format!("{resources}; occupancy with {threads} threads a block{dynamic}: {occupancy}"))
        };
        let lines: Vec<String> = artifact.kernels.iter().filter_map(line).collect();
        // The resources of a device function belong to the kernels that call it.
        Ok(if lines.is_empty() {
            vec!["registers and occupancy are those of the calling kernel".to_owned()]
        } else {
            lines
        })
    }
}

/// The remarks about coarsening, and about the launches that the code is for.
fn coarsening_remarks(job: &Job<'_>, request: &Request, artifact: &Artifact) -> Vec<String> {
    let (title, target, mut remarks) = (job.title(), &request.target, Vec::new());
    for kernel in &artifact.kernels {
        let note = &kernel.coarsening.note;
        let note = if note.is_empty() { "not coarsened: not requested" } else { note };
        remarks.push(format!("{title} for {target}: {note}\n"));
        let taken: Vec<_> = kernel.gains.and(request.options.assumptions).names().collect();
        if !taken.is_empty() {
            remarks.push(format!("{title} for {target}: for launches that are {}\n", taken.join(", ")));
        }
        remarks.extend(kernel.coarsening.candidates.iter().map(|candidate| format!("    {}\n", candidate.note)));
    }
    remarks
}
