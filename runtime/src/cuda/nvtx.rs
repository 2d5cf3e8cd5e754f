//! NVTX: ranges for NVIDIA's profilers, such as Nsight Systems.
//!
//! A profiler sets `NVTX_INJECTION64_PATH` to a library of its own, which instrumented programs open. Its
//! `InitializeInjectionNvtx2` receives a function that returns tables, and writes the addresses of its own functions
//! into the slots that the tables point to. The program then calls these functions. That is all of NVTX, for which
//! there is no library: NVIDIA's headers do the same (`nvtxDetail/nvtxTypes.h` and `nvToolsExt.h` of
//! <https://github.com/NVIDIA/NVTX>, version 3, specify the tables, the numbers and the attributes of a range).
#![expect(unsafe_code, reason = "calls into a profiler's library")]

use std::{
    ffi::{CString, OsStr, OsString, c_char, c_int, c_uint, c_void},
    mem, ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

use libloading::Library;

use super::tools::find;
use crate::{
    profiler_ranges::{self, Category, Profiler},
    settings::Settings,
};

/// Names the profiler's library, in processes of 64 bits.
const LIBRARY: &str = "NVTX_INJECTION64_PATH";
const INITIALIZE: &str = "InitializeInjectionNvtx2";
/// The name of weft's ranges, among those of other libraries.
const DOMAIN: &str = "weft";

/// `NVTX_VERSION`.
const VERSION: u16 = 3;
/// `NVTX_ETID_CALLBACKS` and `NVTX_ETID_VERSIONINFO`.
const CALLBACKS_TABLE: u32 = 1;
const VERSION_TABLE: u32 = 3;
/// `NVTX_CB_MODULE_CORE2`, and in it `NVTX_CBID_CORE2_DomainRangePushEx` and so on.
const CORE2: usize = 5;
const PUSH: usize = 4;
const POP: usize = 5;
const NAME_CATEGORY: usize = 8;
const CREATE_DOMAIN: usize = 12;
/// `NVTX_PAYLOAD_TYPE_UNSIGNED_INT64` and `NVTX_MESSAGE_TYPE_ASCII`, which may be UTF-8.
const UNSIGNED_INT64: i32 = 1;
const ASCII: i32 = 1;

/// For each module from `NVTX_CB_MODULE_CORE` on, how many functions it has with the first number, which is of none. A profiler
/// may want to see all of them.
const COUNTS: [usize; 6] = [16, 9, 15, 7, 16, 7];
const MOST: usize = 16;

/// The functions of a module: `pointers` is passed to a profiler, a list of the slots' addresses with a null at its
/// end.
struct FunctionTable {
    slots: [AtomicPtr<c_void>; MOST],
    pointers: [AtomicPtr<AtomicPtr<c_void>>; MOST + 1],
}

/// Their addresses are fixed as long as the process runs: a profiler may write to them at any time.
static TABLES: [FunctionTable; COUNTS.len()] = [const {
    FunctionTable {
        slots: [const { AtomicPtr::new(ptr::null_mut()) }; MOST],
        pointers: [const { AtomicPtr::new(ptr::null_mut()) }; MOST + 1],
    }
}; COUNTS.len()];

type GetModule = extern "C" fn(c_uint, *mut *const AtomicPtr<AtomicPtr<c_void>>, *mut c_uint) -> c_int;
type GetTable = extern "C" fn(u32) -> *const c_void;
type Initialize = unsafe extern "C" fn(GetTable) -> c_int;
type CreateDomain = unsafe extern "C" fn(*const c_char) -> *mut c_void;
type NameCategory = unsafe extern "C" fn(*mut c_void, u32, *const c_char);
type Push = unsafe extern "C" fn(*mut c_void, *const Attributes) -> c_int;
type Pop = unsafe extern "C" fn(*mut c_void) -> c_int;

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    size: usize,
    get_module: GetModule,
}

/// `NvtxExportTableVersionInfo`.
#[repr(C)]
struct VersionInfo {
    size: usize,
    version: u32,
    reserved: u32,
    set_version: extern "C" fn(u32),
}

/// `nvtxEventAttributes_v2`.
#[repr(C)]
struct Attributes {
    version: u16,
    size: u16,
    category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    reserved: i32,
    payload: u64,
    message_type: i32,
    message: *const c_char,
}

static CALLBACKS: Callbacks = Callbacks { size: size_of::<Callbacks>(), get_module };
static VERSION_INFO: VersionInfo =
    VersionInfo { size: size_of::<VersionInfo>(), version: VERSION as u32, reserved: 0, set_version };

extern "C" fn get_table(number: u32) -> *const c_void {
    match number {
        CALLBACKS_TABLE => (&raw const CALLBACKS).cast(),
        VERSION_TABLE => (&raw const VERSION_INFO).cast(),
        _ => ptr::null(),
    }
}

/// Which version of NVTX the profiler is made for does not matter.
extern "C" fn set_version(_: u32) {}

extern "C" fn get_module(module: c_uint, table: *mut *const AtomicPtr<AtomicPtr<c_void>>, size: *mut c_uint) -> c_int {
    let index = (module as usize).wrapping_sub(1);
    let (Some(found), Some(count)) = (TABLES.get(index), COUNTS.get(index)) else { return 0 };
    if !size.is_null() {
        // SAFETY: the profiler passes an output pointer, or null.
        unsafe { size.write(*count as c_uint) };
    }
    if !table.is_null() {
        // SAFETY: as above.
        unsafe { table.write(found.pointers.as_ptr()) };
    }
    1
}

/// A profiler's functions for ranges.
#[derive(Debug)]
struct Nvtx {
    /// Null is the domain that programs share which make none.
    domain: AtomicPtr<c_void>,
    push: Push,
    pop: Pop,
}

impl Profiler for Nvtx {
    fn push(&self, category: Category, message: &str, payload: Option<u64>) {
        let message = c_string(message);
        let attributes = Attributes {
            version: VERSION,
            size: size_of::<Attributes>() as u16,
            category: category.number(),
            color_type: 0,
            color: 0,
            payload_type: if payload.is_some() { UNSIGNED_INT64 } else { 0 },
            reserved: 0,
            payload: payload.unwrap_or_default(),
            message_type: ASCII,
            message: message.as_ptr(),
        };
        let domain = self.domain.load(Ordering::Relaxed);
        // SAFETY: the domain is the profiler's, which copies the attributes.
        unsafe { (self.push)(domain, &raw const attributes) };
    }

    fn pop(&self) {
        let domain = self.domain.load(Ordering::Relaxed);
        // SAFETY: the domain is the profiler's.
        unsafe { (self.pop)(domain) };
    }
}

/// Reports ranges to the profiler that is attached to this process, if any: the library that `variable` returns for the
/// environment variable. A library that cannot be opened, or is not a profiler's, is ignored.
pub(super) fn attach(settings: &Settings, variable: impl Fn(&str) -> Option<OsString>) {
    if !settings.nvtx {
        return;
    }
    let path = variable(LIBRARY).filter(|path| !path.is_empty());
    if let Some(profiler) = path.and_then(|path| open(&path)) {
        profiler_ranges::tell(Box::new(profiler));
    }
}

fn open(path: &OsStr) -> Option<Nvtx> {
    // SAFETY: the user who sets the variable wants the library to be opened.
    let library = unsafe { Library::new(path) }.ok()?;
    // SAFETY: the function of a profiler that has this name is of this type.
    let initialize = unsafe { find::<Initialize>(&library, INITIALIZE) }.ok()?;
    for (table, count) in TABLES.iter().zip(COUNTS) {
        for (pointer, slot) in table.pointers.iter().zip(&table.slots).take(count).skip(1) {
            pointer.store(ptr::from_ref(slot).cast_mut(), Ordering::Relaxed);
        }
    }
    // SAFETY: the function is the profiler's, and its argument is valid as long as the process runs.
    let is_ready = unsafe { initialize(get_table) } != 0;
    if !is_ready {
        return None;
    }
    // The profiler's functions are called for as long as the process runs.
    mem::forget(library);
    // SAFETY: the profiler wrote functions of these types into these slots, or nothing.
    let (push, pop) = unsafe { (function::<Push>(PUSH)?, function::<Pop>(POP)?) };
    // SAFETY: as above.
    let (create, name) = unsafe { (function::<CreateDomain>(CREATE_DOMAIN), function::<NameCategory>(NAME_CATEGORY)) };
    let title = c_string(DOMAIN);
    // SAFETY: the text is valid, and the profiler copies it.
    let domain = create.map_or(ptr::null_mut(), |create| unsafe { create(title.as_ptr()) });
    if let Some(name) = name {
        for category in Category::ALL {
            let title = c_string(category.name());
            // SAFETY: as above, and the domain is the profiler's.
            unsafe { name(domain, category.number(), title.as_ptr()) };
        }
    }
    Some(Nvtx { domain: AtomicPtr::new(domain), push, pop })
}

/// The profiler's entry in a slot of the module of domains.
///
/// # Safety
///
/// `F` is the type of that slot's function.
unsafe fn function<F: Copy>(number: usize) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "a pointer to a function") };
    let address = TABLES.get(CORE2 - 1)?.slots.get(number)?.load(Ordering::Acquire);
    if address.is_null() {
        return None;
    }
    // SAFETY: the caller promises that it is a function of this type, and a pointer to one has an address' bytes.
    Some(unsafe { mem::transmute_copy::<*mut c_void, F>(&address) })
}

/// A text for C, without bytes that would end it.
fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}
