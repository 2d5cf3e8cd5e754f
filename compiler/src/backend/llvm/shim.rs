//! LLVM calls that may cause a fatal error, through the C shim `shim.c`, which converts it to an error value.
//!
//! After [`Error::Fatal`] the context, its modules and the target machine must be leaked, never dropped. Therefore
//! [`with_context`] creates the only contexts of this crate, modules are [`LeakyModule`]s (a context frees the modules
//! that it owns), and target machines are owned by a [`Machine`].

#![expect(unsafe_code, reason = "LLVM's C interface and the shim around its fatal errors")]

use std::{
    ffi::{CStr, CString, c_char, c_int, c_uint, c_void},
    fmt,
    mem::{self, ManuallyDrop},
    ptr,
    sync::{Once, atomic::AtomicBool},
};

use inkwell::{
    OptimizationLevel,
    builder::BuilderError,
    context::{AsContextRef, Context},
    llvm_sys::{
        core::LLVMDisposeMessage,
        error::{LLVMDisposeErrorMessage, LLVMGetErrorMessage},
        prelude::{LLVMMemoryBufferRef, LLVMModuleRef, LLVMValueRef},
        target_machine::{LLVMCodeModel, LLVMRelocMode, LLVMTargetMachineRef},
    },
    memory_buffer::MemoryBuffer,
    module::Module,
    targets::{CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine, TargetTriple},
    values::{AsValueRef, InstructionValue},
};

use crate::{stage::Size, stop};

unsafe extern "C" {
    fn weft_shim_install();
    fn weft_shim_watch(context: *mut c_void);
    fn weft_gate(context: *mut c_void, stop: *const AtomicBool);
    fn weft_gate_large(is_huge: c_int);
    fn weft_gate_addresses();
    fn weft_gate_warps();
    fn weft_loop_hint(back: LLVMValueRef, hint: *const c_char);
    fn weft_split_blocks(module: LLVMModuleRef);
    fn weft_decide_floats(module: LLVMModuleRef);
    fn weft_single_accesses(module: LLVMModuleRef);
    fn weft_narrow_sums(module: LLVMModuleRef);
    fn weft_keep_quotients(module: LLVMModuleRef);
    fn weft_keep_blends(module: LLVMModuleRef);
    fn weft_share_bases(module: LLVMModuleRef);
    fn weft_size(module: LLVMModuleRef, instructions: *mut u64) -> u64;
    fn weft_narrow_clamps(module: LLVMModuleRef);
    fn weft_narrow_comparisons(module: LLVMModuleRef);
    fn weft_pair_conversions(module: LLVMModuleRef);
    fn weft_disable_unrolling(module: LLVMModuleRef);
    fn weft_look_before_spinning(module: LLVMModuleRef);
    fn weft_keep_in_branches(module: LLVMModuleRef);
    fn weft_cpu_features(name: *const c_char) -> *mut c_char;
    fn weft_frames_watch(module: LLVMModuleRef);
    fn weft_frames_deepest(module: LLVMModuleRef, name: *const c_char, more: *mut u64) -> u64;
    fn weft_nvvm_ir(module: LLVMModuleRef, sm: c_uint, error: *mut *mut c_char) -> *mut c_char;
    fn weft_shim_message() -> *const c_char;
    fn weft_shim_emit(
        machine: LLVMTargetMachineRef,
        module: LLVMModuleRef,
        file_type: c_int,
        error: *mut *mut c_char,
        out: *mut LLVMMemoryBufferRef,
        failed: *mut c_int,
    ) -> c_int;
    fn weft_shim_host_passes(
        module: LLVMModuleRef,
        passes: *const c_char,
        machine: LLVMTargetMachineRef,
        large: c_int,
        error: *mut *mut c_void,
    ) -> c_int;
    fn weft_shim_nvptx_passes(
        module: LLVMModuleRef,
        passes: *const c_char,
        machine: LLVMTargetMachineRef,
        large: c_int,
        error: *mut *mut c_void,
    ) -> c_int;
    fn weft_shim_machine(
        target: *mut c_void,
        triple: *const c_char,
        cpu: *const c_char,
        features: *const c_char,
        level: c_int,
        reloc: c_int,
        model: c_int,
        out: *mut LLVMTargetMachineRef,
    ) -> c_int;
    fn weft_shim_link(into: LLVMModuleRef, from: LLVMModuleRef, failed: *mut c_int) -> c_int;
}

/// The reason why emission failed.
#[derive(Debug)]
pub(crate) enum Error {
    /// A fatal error in LLVM: its objects are in an unknown state.
    Fatal(String),
    /// An internal error: LLVM, or a check in weft, rejected the module.
    Internal(String),
    /// NVVM IR has no form of a part of the module.
    NotInNvvm(String),
}

/// The result of building or emitting code.
pub(crate) type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fatal(text) | Self::Internal(text) | Self::NotInNvvm(text) => f.write_str(text),
        }
    }
}

impl From<BuilderError> for Error {
    fn from(error: BuilderError) -> Self {
        Self::Internal(format!("LLVM's builder: {error}"))
    }
}

/// An error for input that cannot occur in a verified module.
pub(crate) fn internal<T>(text: impl Into<String>) -> Result<T> {
    Err(Error::Internal(text.into()))
}

/// A module that its context frees; it is never dropped itself.
pub(crate) type LeakyModule<'ctx> = ManuallyDrop<Module<'ctx>>;

/// Initializes LLVM for both targets and installs the handler of fatal errors. It may be called repeatedly.
pub(crate) fn initialize() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        Target::initialize_nvptx(&InitializationConfig::default());
        Target::initialize_x86(&InitializationConfig::default());
        // SAFETY: installs a function that lives as long as the process; nothing else installs one.
        unsafe { weft_shim_install() };
    });
}

/// Runs `work` with a new context. Frees the context afterwards, also if the compilation is cancelled, unless LLVM had
/// a fatal error.
pub(crate) fn with_context<T>(work: impl FnOnce(&Context) -> Result<T>) -> Result<T> {
    initialize();
    let context = Context::create();
    let raw = AsContextRef::as_ctx_ref(&&context);
    // SAFETY: the context is alive, and the handler is a function of the shim with no state.
    unsafe { weft_shim_watch(raw.cast()) };
    // SAFETY: the context is alive; the flag lives as long as this thread, and no other thread uses the context.
    unsafe { weft_gate(raw.cast(), stop::flag().unwrap_or(ptr::null())) };
    let result = work(&context);
    if matches!(result, Err(Error::Fatal(_))) {
        // LLVM's objects are in an unknown state.
        mem::forget(context);
    }
    result
}

/// Skips LLVM's passes that take too long for large functions, or for huge ones, in this thread's context.
pub(crate) fn skip_slow_passes(huge: bool) {
    // SAFETY: it changes only state of this thread.
    unsafe { weft_gate_large(huge.into()) };
}

/// Skips loop strength reduction and NVPTX's vectorizer of loads and stores in this thread's code generator, until the
/// next context.
pub(crate) fn keep_addresses() {
    // SAFETY: sets a flag of this thread.
    unsafe { weft_gate_addresses() };
}

/// Stops this thread's code generator, until the next context, from duplicating blocks where the paths of a warp's
/// threads join.
pub(crate) fn keep_joins() {
    // SAFETY: sets a flag of this thread.
    unsafe { weft_gate_warps() };
}

/// Requests unrolling of the loop whose latch branch is `back`.
pub(crate) fn unroll(back: InstructionValue<'_>) {
    // SAFETY: the instruction is alive, and so is its context; the text ends with a NUL.
    unsafe { weft_loop_hint(back.as_value_ref(), c"llvm.loop.unroll.full".as_ptr()) };
}

/// Marks the loop of this latch branch as a loop of the program: `host/passes.cpp` reads the mark.
pub(crate) fn of_program(back: InstructionValue<'_>) {
    // SAFETY: the instruction is alive, and so is its context; the text ends with a NUL.
    unsafe { weft_loop_hint(back.as_value_ref(), c"weft.of_program".as_ptr()) };
}

/// Computes clamps and comparisons of 64-bit values that fit 32 bits in 32.
pub(crate) fn narrow_comparisons(module: &Module<'_>) {
    // SAFETY: the module is alive, and no other code uses it or its context.
    unsafe { weft_narrow_clamps(module.as_mut_ptr()) };
    // SAFETY: as above.
    unsafe { weft_narrow_comparisons(module.as_mut_ptr()) };
}

/// Converts pairs of floats to 16-bit floats in one register by one instruction.
pub(crate) fn pair_conversions(module: &Module<'_>) {
    // SAFETY: the module is alive, and no other code uses it or its context.
    unsafe { weft_pair_conversions(module.as_mut_ptr()) };
}

/// Prevents ptxas from unrolling loops whose counters it miscompiles.
pub(crate) fn disable_unrolling(module: &Module<'_>) {
    // SAFETY: the module is alive, and no other code uses it or its context.
    unsafe { weft_disable_unrolling(module.as_mut_ptr()) };
}

/// Prevents ptxas from computing a wrong trip count for a loop that begins with an atomic operation which it expands to
/// a loop.
pub(crate) fn look_before_spinning(module: &Module<'_>) {
    // SAFETY: the module is alive, and no other code uses it or its context.
    unsafe { weft_look_before_spinning(module.as_mut_ptr()) };
}

/// Prevents the code generator from speculating long operations out of their branches.
pub(crate) fn keep_in_branches(module: &Module<'_>) {
    // SAFETY: the module is alive and complete, and no other code uses it or its context.
    unsafe { weft_keep_in_branches(module.as_mut_ptr()) };
}

/// Splits basic blocks that are too long for LLVM's code generator.
pub(crate) fn split_blocks(module: &Module<'_>) {
    // SAFETY: the module is alive and complete, and no other code uses it.
    unsafe { weft_split_blocks(module.as_mut_ptr()) };
}

/// Makes float results independent of the target: fuses each multiply-add that may be fused, and allows no
/// approximation.
pub(crate) fn decide_floats(module: &Module<'_>) {
    // SAFETY: the module is alive and complete, and no other code uses it.
    unsafe { weft_decide_floats(module.as_mut_ptr()) };
}

/// Splits gathers and scatters into single loads and stores.
pub(crate) fn single_accesses(module: &Module<'_>) {
    // SAFETY: the module is alive and complete, and no other code uses it.
    unsafe { weft_single_accesses(module.as_mut_ptr()) };
}

/// Computes sums of bytes in 16-bit vectors if they fit.
pub(crate) fn narrow_sums(module: &Module<'_>) {
    // SAFETY: the module is alive and complete, and no other code uses it.
    unsafe { weft_narrow_sums(module.as_mut_ptr()) };
}

/// Prevents LLVM from sinking integer divisions into the loops that use them.
pub(crate) fn keep_quotients(module: &Module<'_>) {
    // SAFETY: the module is alive and complete, and no other code uses it.
    unsafe { weft_keep_quotients(module.as_mut_ptr()) };
}

/// Computes sums that do not change in a loop before it, as bases of addresses.
pub(crate) fn share_bases(module: &Module<'_>) {
    // SAFETY: the module is alive and complete, and no other code uses it.
    unsafe { weft_share_bases(module.as_mut_ptr()) };
}

/// Prevents LLVM from making masked stores of stores of blended values.
pub(crate) fn keep_blends(module: &Module<'_>) {
    // SAFETY: the module is alive and complete, and no other code uses it.
    unsafe { weft_keep_blends(module.as_mut_ptr()) };
}

/// The size of a module.
pub(crate) fn size(module: &Module<'_>) -> Size {
    let mut instructions = 0;
    // SAFETY: the module is alive, and the result is written.
    let functions = unsafe { weft_size(module.as_mut_ptr(), &raw mut instructions) };
    Size { functions, instructions }
}

/// Prints a module as NVVM IR for an SM. The module is complete, and no other code uses it.
///
/// # Errors
///
/// `NotInNvvm` with the first instruction, type or constant that NVVM IR cannot express.
pub(crate) fn nvvm_ir(module: &Module<'_>, sm: u32) -> Result<String> {
    let mut error = ptr::null_mut();
    // SAFETY: the module is alive; the error is written if there is no text.
    let text = unsafe { weft_nvvm_ir(module.as_mut_ptr(), sm, &raw mut error) };
    let is_printed = !text.is_null();
    let message = if is_printed { text } else { error };
    // SAFETY: one of the two is a string of LLVM's, which ends with a NUL and lives until it is disposed of.
    let owned = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
    // SAFETY: LLVM allocated the string, which is not used after this.
    unsafe { LLVMDisposeMessage(message) };
    if is_printed { Ok(owned) } else { Err(Error::NotInNvvm(owned)) }
}

/// The features of an x86-64 CPU in LLVM's notation; `None` if LLVM does not know the name.
pub(crate) fn cpu_features(name: &str) -> Option<String> {
    let name = c_string(name).ok()?;
    // SAFETY: the name ends with a NUL.
    let text = unsafe { weft_cpu_features(name.as_ptr()) };
    if text.is_null() {
        return None;
    }
    // SAFETY: a non-null string ends with a NUL and lives until it is disposed of.
    let features = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // SAFETY: LLVM allocated the string, which is not used after this.
    unsafe { LLVMDisposeMessage(text) };
    Some(features)
}

/// The stack size of a function with all its callees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Depth {
    /// The stack use of a call of the function; for recursive functions, up to the first recursive call.
    pub call: u64,
    /// The most stack that a recursive function uses until the next call checks its address; 0 if there is none.
    pub around: u64,
}

/// Makes the code generator report the frame sizes of a module's functions.
pub(crate) fn watch_frames(module: &Module<'_>) {
    // SAFETY: the module is alive and complete, and no other code uses it.
    unsafe { weft_frames_watch(module.as_mut_ptr()) };
}

/// The stack size of a function. The module was emitted on this thread after [`watch_frames`].
pub(crate) fn deepest(module: &Module<'_>, symbol: &str) -> Result<Depth> {
    let name = c_string(symbol)?;
    let mut around = 0;
    // SAFETY: the module is alive, the name ends with a NUL, and the result is written.
    let call = unsafe { weft_frames_deepest(module.as_mut_ptr(), name.as_ptr(), &raw mut around) };
    if call == 0 { internal(format!("no function {symbol} was emitted")) } else { Ok(Depth { call, around }) }
}

/// The error message of the last caught call, if it had an error.
fn message() -> Option<String> {
    // SAFETY: the function has no arguments and returns a thread-local buffer.
    let text = unsafe { weft_shim_message() };
    // SAFETY: the buffer ends with a NUL and does not change before the next caught call of this thread.
    let text = unsafe { CStr::from_ptr(text) };
    (!text.is_empty()).then(|| text.to_string_lossy().into_owned())
}

/// Converts the return value `fatal` of a call that catches fatal errors.
pub(crate) fn outcome(what: &str, fatal: c_int) -> Result<()> {
    let text = message();
    if fatal != 0 {
        return Err(Error::Fatal(format!("{what}: {}", text.unwrap_or_default())));
    }
    text.map_or(Ok(()), |text| internal(format!("{what}: {text}")))
}

/// Converts a string made by weft or LLVM to a C string.
pub(crate) fn c_string(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::Internal(format!("a NUL in {text:?}")))
}

/// The target machine.
#[derive(Debug)]
pub(crate) struct MachineSpec<'a> {
    /// The triple.
    pub triple: &'a str,
    /// LLVM's name of the processor.
    pub cpu: &'a str,
    /// `+ptx78,-foo`; empty for the processor's own.
    pub features: &'a str,
    /// Optimization level of the code generator.
    pub level: OptimizationLevel,
    /// Relocation model.
    pub reloc: RelocMode,
    /// Code model.
    pub model: CodeModel,
}

/// A target machine; leaked with everything else after a fatal error.
#[derive(Debug)]
pub(crate) struct Machine {
    machine: ManuallyDrop<TargetMachine>,
}

impl Machine {
    /// Creates a target machine.
    pub(crate) fn new(spec: &MachineSpec<'_>) -> Result<Self> {
        let target = Target::from_triple(&TargetTriple::create(spec.triple));
        let target = target.map_err(|error| Error::Internal(format!("no target {}: {error}", spec.triple)))?;
        let (triple, cpu, features) = (c_string(spec.triple)?, c_string(spec.cpu)?, c_string(spec.features)?);
        let mut raw = ptr::null_mut();
        // LLVMCodeGenOptLevel counts from none to aggressive.
        let level = match spec.level {
            OptimizationLevel::None => 0,
            OptimizationLevel::Less => 1,
            OptimizationLevel::Default => 2,
            OptimizationLevel::Aggressive => 3,
        };
        // SAFETY: the strings outlive the call, which copies them; `raw` is written only where the call succeeds.
        let fatal = unsafe {
            weft_shim_machine(
                target.as_mut_ptr().cast(),
                triple.as_ptr(),
                cpu.as_ptr(),
                features.as_ptr(),
                level,
                LLVMRelocMode::from(spec.reloc) as c_int,
                LLVMCodeModel::from(spec.model) as c_int,
                &raw mut raw,
            )
        };
        outcome("LLVM cannot make a target machine", fatal)?;
        if raw.is_null() {
            return internal(format!("LLVM has no target machine for {spec:?}"));
        }
        // SAFETY: `raw` is a target machine that no other code owns.
        let machine = unsafe { TargetMachine::new(raw) };
        Ok(Self { machine: ManuallyDrop::new(machine) })
    }

    /// Sets the module's triple and data layout to the machine's.
    pub(crate) fn prepare(&self, module: &Module<'_>) {
        module.set_triple(&self.machine.get_triple());
        module.set_data_layout(&self.machine.get_target_data().get_data_layout());
    }

    /// Runs a pipeline such as `default<O3>` on a module for a CPU; `large` disables interleaving and SLP
    /// vectorization.
    pub(crate) fn run_host_passes(&self, module: &Module<'_>, passes: &str, large: bool) -> Result<()> {
        let text = c_string(passes)?;
        let mut error = ptr::null_mut();
        // SAFETY: all three objects are alive, and the module belongs to a context that this thread alone uses.
        let fatal = unsafe {
            weft_shim_host_passes(
                module.as_mut_ptr(),
                text.as_ptr(),
                self.machine.as_mut_ptr(),
                large.into(),
                &raw mut error,
            )
        };
        Self::ran(passes, fatal, error)
    }

    /// Runs a pipeline on a module for PTX, with PTX's costs; `large` disables interleaving and SLP vectorization.
    pub(crate) fn run_nvptx_passes(&self, module: &Module<'_>, passes: &str, large: bool) -> Result<()> {
        let text = c_string(passes)?;
        let mut error = ptr::null_mut();
        // SAFETY: all three objects are alive, and the module belongs to a context that this thread alone uses.
        let fatal = unsafe {
            weft_shim_nvptx_passes(
                module.as_mut_ptr(),
                text.as_ptr(),
                self.machine.as_mut_ptr(),
                large.into(),
                &raw mut error,
            )
        };
        Self::ran(passes, fatal, error)
    }

    /// The result of a pipeline; consumes an `LLVMErrorRef` that is not null.
    fn ran(passes: &str, fatal: c_int, error: *mut c_void) -> Result<()> {
        if fatal == 0 && !error.is_null() {
            // SAFETY: a non-null error is an LLVMErrorRef, which this call consumes.
            let text = unsafe { LLVMGetErrorMessage(error.cast()) };
            // SAFETY: the message ends with a NUL and lives until it is disposed of.
            let owned = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
            // SAFETY: the message came from LLVMGetErrorMessage and is not used after this.
            unsafe { LLVMDisposeErrorMessage(text) };
            return internal(format!("LLVM's passes {passes}: {owned}"));
        }
        outcome("LLVM's passes", fatal)
    }

    /// Emits assembly or an object file.
    pub(crate) fn emit(&self, module: &Module<'_>, file_type: FileType) -> Result<Vec<u8>> {
        let (mut error, mut buffer, mut failed) = (ptr::null_mut(), ptr::null_mut(), 0);
        // LLVMCodeGenFileType.
        let file_type = match file_type {
            FileType::Assembly => 0,
            FileType::Object => 1,
        };
        // SAFETY: the machine and the module are alive; the three results are written if the call succeeds.
        let fatal = unsafe {
            weft_shim_emit(
                self.machine.as_mut_ptr(),
                module.as_mut_ptr(),
                file_type,
                &raw mut error,
                &raw mut buffer,
                &raw mut failed,
            )
        };
        if fatal == 0 && failed != 0 {
            let mut text = "LLVM cannot emit code for the target".to_owned();
            if !error.is_null() {
                // SAFETY: a non-null error ends with a NUL and lives until it is disposed of.
                text = unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned();
                // SAFETY: LLVM allocated the string, which is not used after this.
                unsafe { LLVMDisposeMessage(error) };
            }
            return internal(text);
        }
        outcome("LLVM's code generator", fatal)?;
        // SAFETY: the call succeeded, so `buffer` is a memory buffer that no other code owns.
        let buffer = unsafe { MemoryBuffer::new(buffer) };
        Ok(buffer.as_slice().to_vec())
    }

    /// Frees the machine. It must not be called after a fatal error.
    pub(crate) fn dispose(mut self) {
        // SAFETY: `self` is consumed, so the machine is not used again.
        unsafe { ManuallyDrop::drop(&mut self.machine) };
    }
}

/// Links `from`, which is consumed, into `into`.
#[expect(clippy::needless_pass_by_value, reason = "LLVM frees the module, so there must be no other reference to it")]
pub(crate) fn link<'ctx>(into: &Module<'ctx>, from: LeakyModule<'ctx>) -> Result<()> {
    let mut failed = 0;
    // SAFETY: both modules are of one context; `from` is LLVM's after this and is not used again.
    let fatal = unsafe { weft_shim_link(into.as_mut_ptr(), from.as_mut_ptr(), &raw mut failed) };
    outcome("LLVM's linker", fatal)?;
    if failed != 0 { internal("LLVM's linker failed without a message") } else { Ok(()) }
}
