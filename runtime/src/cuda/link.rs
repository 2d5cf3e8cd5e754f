//! Kernels with code from elsewhere: CUDA C++ is compiled by NVRTC, and all of it is linked by the driver, or by nvJitLink
//! where code is to be optimized together.

#![expect(unsafe_code, reason = "calls into the CUDA driver")]

use std::{
    borrow::Cow,
    ffi::{CString, c_uint, c_void},
    fs, ptr, slice,
    sync::{Arc, Mutex, PoisonError},
};

use cudarc::driver::sys::{self, CUjit_option_enum as JitOption, CUjitInputType_enum as InputType};
use weft_artifact::Artifact;

use super::{
    context::Context,
    link_logs::JitLogs,
    machine_code,
    module::CudaModule,
    nvjitlink::NvJitLink,
    nvrtc::{Compiled, CudaSource, Form, Nvrtc},
};
use crate::{
    code::{Linked, LinkedKind, Linking},
    error::{Error, ErrorKind},
    toolkit::Toolkit,
};

/// The most sources whose code is cached: several kernels may call the same function.
const MAX_CACHED: usize = 32;

/// A function that only the toolkit's device runtime library has: grid groups require it.
const OF_CUDADEVRT: &[u8] = b"cudaCGGetIntrinsicHandle";

static NVRTC: Mutex<Option<Arc<Nvrtc>>> = Mutex::new(None);
static NVJITLINK: Mutex<Option<Arc<NvJitLink>>> = Mutex::new(None);

/// A tool: the one that was opened, or opened now.
fn opened<T>(
    cached: &Mutex<Option<Arc<T>>>,
    toolkit: &Toolkit,
    open: impl FnOnce(&Toolkit) -> Result<T, Error>,
) -> Result<Arc<T>, Error> {
    let mut cached = cached.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(tool) = &*cached {
        return Ok(Arc::clone(tool));
    }
    let tool = Arc::new(open(toolkit)?);
    *cached = Some(Arc::clone(&tool));
    Ok(tool)
}

/// A piece of code for a linker.
pub(super) struct Input<'a> {
    pub(super) kind: LinkedKind,
    pub(super) data: Cow<'a, [u8]>,
    pub(super) name: &'a str,
}

impl<'a> Input<'a> {
    /// A kernel's PTX.
    pub(super) fn of(artifact: &'a Artifact) -> Self {
        let name = artifact.kernels.first().map_or("the kernel", |kernel| kernel.name.as_str());
        Self { kind: LinkedKind::Ptx, data: Cow::Borrowed(&artifact.code), name }
    }
}

/// Links a kernel's PTX with external code and loads it. Returns the tools' warnings.
pub(super) fn link(
    context: &Arc<Context>,
    artifact: &Artifact,
    linking: &Linking<'_>,
) -> Result<(CudaModule, Vec<String>), Error> {
    let (major, minor) = context.attributes.compute_capability;
    let sm = 10 * major + minor;
    let lto = linking.lto || linking.code.iter().any(|code| code.kind == LinkedKind::LtoIr);
    let mut notes = Vec::new();
    let mut inputs = vec![Input::of(artifact)];
    for code in linking.code {
        inputs.push(input(code, linking, sm, context.attributes.driver_version, lto, &mut notes)?);
    }
    let of_grid = inputs.iter().any(|input| input.data.windows(OF_CUDADEVRT.len()).any(|part| part == OF_CUDADEVRT));
    let cudadevrt = linking.toolkit.archive("libcudadevrt.a").filter(|_| of_grid).and_then(|path| fs::read(path).ok());
    if let Some(data) = cudadevrt {
        inputs.push(Input { kind: LinkedKind::Archive, data: Cow::Owned(data), name: "libcudadevrt.a" });
    }
    let bound = linking.launch_bounds.map(|bounds| registers_within(bounds, context.registers_per_block));
    let registers = linking.max_registers.into_iter().chain(bound).min();
    let load = |cubin| CudaModule::load_linked(context, artifact, cubin);
    let module = if lto {
        // The code does not record the version of nvJitLink that made it: so it is not cached.
        let linker = opened(&NVJITLINK, linking.toolkit, NvJitLink::open)?;
        let inputs: Vec<_> = inputs.iter().map(|input| (input.kind, &*input.data, input.name)).collect();
        load(linker.link(&inputs, sm, registers)?)?
    } else if let Some(keeper) = linking.keeper {
        machine_code::link(context, artifact, &inputs, registers, keeper)?
    } else {
        load(by_driver(context, &inputs, registers)?)?
    };
    Ok((module, notes))
}

/// The most registers of a thread with launch bounds: threads of a block, and blocks of an SM. They hold for a kernel's own
/// code alone, and the linkers refuse a kernel that calls a function with more.
fn registers_within((threads, blocks): (u32, u32), registers_per_block: u32) -> u32 {
    // Registers are given to four warps at a time, eight for each thread; an SM has 2048 threads.
    let threads = threads.max(1).next_multiple_of(128).saturating_mul(blocks.max(1)).min(2048);
    (registers_per_block / threads / 8 * 8).clamp(16, 255)
}

/// A piece of code as the linkers take it: CUDA C++ is compiled.
fn input<'a>(
    code: &'a Linked,
    linking: &Linking<'_>,
    sm: u32,
    driver: (u32, u32),
    lto: bool,
    notes: &mut Vec<String>,
) -> Result<Input<'a>, Error> {
    if code.kind != LinkedKind::Cu {
        return Ok(Input { kind: code.kind, data: Cow::Borrowed(&code.data), name: &code.name });
    }
    let nvrtc = opened(&NVRTC, linking.toolkit, Nvrtc::open)?;
    let (form, kind) = if lto {
        (Form::LtoIr, LinkedKind::LtoIr)
    } else if nvrtc.version > driver {
        // A driver takes no PTX that is newer than itself.
        (Form::Cubin, LinkedKind::Cubin)
    } else {
        (Form::Ptx, LinkedKind::Ptx)
    };
    let Compiled { code: data, log } = compiled(&nvrtc, code, linking, sm, form)?;
    if !log.is_empty() {
        notes.push(format!("NVRTC log messages whilst compiling {}:\n\n{log}", code.name));
    }
    Ok(Input { kind, data: Cow::Owned(data), name: &code.name })
}

/// The code that a source was compiled to before.
struct CompiledSource {
    text: Vec<u8>,
    name: String,
    sm: u32,
    form: Form,
    code: Vec<u8>,
    log: String,
}

/// Compiles CUDA C++. A source without includes, whose files may change, is compiled once.
fn compiled(nvrtc: &Nvrtc, code: &Linked, linking: &Linking<'_>, sm: u32, form: Form) -> Result<Compiled, Error> {
    static COMPILED: Mutex<Vec<CompiledSource>> = Mutex::new(Vec::new());
    let alone = !code.data.windows(7).any(|part| part == b"include");
    let same = |cached: &CompiledSource| {
        (&cached.text, &cached.name, cached.sm, cached.form) == (&code.data, &code.name, sm, form)
    };
    if alone {
        let cached = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cached) = cached.iter().find(|cached| same(cached)) {
            return Ok(Compiled { code: cached.code.clone(), log: cached.log.clone() });
        }
    }
    let mut includes = linking.includes.to_vec();
    includes.extend(linking.toolkit.includes());
    let source = CudaSource { text: &code.data, name: &code.name, folder: code.folder.as_deref() };
    let made = nvrtc.compile(&source, sm, form, &includes)?;
    if alone {
        let mut cached = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        cached.truncate(MAX_CACHED - 1);
        let (text, name) = (code.data.clone(), code.name.clone());
        cached.insert(0, CompiledSource { text, name, sm, form, code: made.code.clone(), log: made.log.clone() });
    }
    Ok(made)
}

/// A `CUlinkState`, destroyed when it is dropped.
struct LinkState<'a> {
    context: &'a Context,
    state: sys::CUlinkState,
}

impl Drop for LinkState<'_> {
    fn drop(&mut self) {
        // SAFETY: the link is live, and has no other users.
        let _: Result<(), Error> = unsafe { self.context.driver.cuLinkDestroy(self.state) };
    }
}

/// Has the driver link code; gives a cubin.
pub(super) fn by_driver(context: &Context, inputs: &[Input<'_>], max_registers: Option<u32>) -> Result<Vec<u8>, Error> {
    let _entered = context.enter()?;
    // The driver writes to the logs as long as the link lives.
    let mut logs = JitLogs::new();
    let (mut options, mut values) = logs.options();
    if let Some(count) = max_registers {
        options.push(JitOption::CU_JIT_MAX_REGISTERS as c_uint);
        // A number is passed in the pointer's bits.
        values.push(ptr::without_provenance_mut(count as usize));
    }
    let mut state = ptr::null_mut();
    // SAFETY: each option has its value; the logs have the given size, and outlive the link.
    let made = unsafe {
        context.driver.cuLinkCreate(options.len() as c_uint, options.as_mut_ptr(), values.as_mut_ptr(), &raw mut state)
    };
    context.blame(made)?;
    let link = LinkState { context, state };
    for input in inputs {
        let mut data = Cow::Borrowed(&*input.data);
        if input.kind == LinkedKind::Ptx && data.last() != Some(&0) {
            data.to_mut().push(0);
        }
        let name = CString::new(input.name).unwrap_or_default();
        // The driver only reads it.
        let at = data.as_ptr().cast_mut().cast::<c_void>();
        let Some(kind) = input_type(input.kind) else {
            return Err(Error::new(
                ErrorKind::Internal,
                format!("{} must be compiled before it is linked", input.name),
            ));
        };
        // SAFETY: the link is live; the data has the given size, and is copied; there are no options.
        let added = unsafe {
            context.driver.cuLinkAddData(
                link.state,
                kind as c_uint,
                at,
                data.len(),
                name.as_ptr(),
                0,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        context
            .blame(added)
            .map_err(|error| failed(&format!("the driver cannot link {}", input.name), error, &logs))?;
    }
    let (mut cubin, mut size) = (ptr::null_mut(), 0);
    // SAFETY: the link is live; it writes a pointer and a number.
    let linked = unsafe { context.driver.cuLinkComplete(link.state, &raw mut cubin, &raw mut size) };
    let name = inputs.first().map_or("", |input| input.name);
    context.blame(linked).map_err(|error| failed(&format!("the driver cannot link `{name}`"), error, &logs))?;
    // SAFETY: the driver returned this many bytes, which live as long as the link.
    Ok(unsafe { slice::from_raw_parts(cubin.cast::<u8>(), size) }.to_vec())
}

/// An error of linking with the driver's log.
#[cold]
fn failed(what: &str, mut error: Error, logs: &JitLogs) -> Error {
    error.kind = ErrorKind::Link;
    error.message = format!("{what}: {}{}", error.message, logs.lines());
    error
}

/// The driver's name of a kind of code; it takes no sources.
fn input_type(kind: LinkedKind) -> Option<InputType> {
    match kind {
        LinkedKind::Ptx => Some(InputType::CU_JIT_INPUT_PTX),
        LinkedKind::Cubin => Some(InputType::CU_JIT_INPUT_CUBIN),
        LinkedKind::Fatbin => Some(InputType::CU_JIT_INPUT_FATBINARY),
        LinkedKind::Object => Some(InputType::CU_JIT_INPUT_OBJECT),
        LinkedKind::Archive => Some(InputType::CU_JIT_INPUT_LIBRARY),
        LinkedKind::Cu | LinkedKind::LtoIr => None,
    }
}

#[cfg(test)]
mod tests {
    use super::registers_within;

    #[test]
    fn registers_fit_the_launch_bounds() {
        let within = |threads, blocks| registers_within((threads, blocks), 65536);
        assert_eq!([within(1024, 1), within(256, 4), within(512, 4), within(256, 1)], [64, 64, 32, 255]);
        // There is room for 28 warps, though 25 are requested.
        assert_eq!([within(800, 1), within(1, 1), within(0, 0), within(1024, 64)], [72, 255, 255, 32]);
    }
}
