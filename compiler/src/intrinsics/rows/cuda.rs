//! Rows of `cuda`: thread indices, synchronization, and array constructors.

use weft_artifact::{
    Number,
    Scalar::{Bool, I32, I64},
};

use super::super::{Arg, Custom, Intrinsic, Lowering, Ptx, Returns, Signature};
use crate::ir::{Op, Reduction, Scope, SpecialRegister};

pub(super) const CUDA: &[Intrinsic] = &[
    Intrinsic {
        path: "weft.cuda.threadIdx.x",
        signatures: &[Signature { args: &[], returns: Returns::Scalar(I32) }],
        lowering: Lowering::Register(SpecialRegister::ThreadIdx(0)),
        ptx: Ptx::Has("%tid.x"),
        doc: "Index of the thread in its block along x. PTX ISA, special registers: `%tid`.",
    },
    Intrinsic {
        path: "weft.cuda.threadIdx.y",
        signatures: &[Signature { args: &[], returns: Returns::Scalar(I32) }],
        lowering: Lowering::Register(SpecialRegister::ThreadIdx(1)),
        ptx: Ptx::Has("%tid.y"),
        doc: "Index of the thread in its block along y. PTX ISA, special registers: `%tid`.",
    },
    Intrinsic {
        path: "weft.cuda.threadIdx.z",
        signatures: &[Signature { args: &[], returns: Returns::Scalar(I32) }],
        lowering: Lowering::Register(SpecialRegister::ThreadIdx(2)),
        ptx: Ptx::Has("%tid.z"),
        doc: "Index of the thread in its block along z. PTX ISA, special registers: `%tid`.",
    },
    Intrinsic {
        path: "weft.cuda.blockIdx.x",
        signatures: &[Signature { args: &[], returns: Returns::Scalar(I32) }],
        lowering: Lowering::Register(SpecialRegister::BlockIdx(0)),
        ptx: Ptx::Has("%ctaid.x"),
        doc: "Index of the block in the grid along x. PTX ISA, special registers: `%ctaid`.",
    },
    Intrinsic {
        path: "weft.cuda.blockIdx.y",
        signatures: &[Signature { args: &[], returns: Returns::Scalar(I32) }],
        lowering: Lowering::Register(SpecialRegister::BlockIdx(1)),
        ptx: Ptx::Has("%ctaid.y"),
        doc: "Index of the block in the grid along y. PTX ISA, special registers: `%ctaid`.",
    },
    Intrinsic {
        path: "weft.cuda.blockIdx.z",
        signatures: &[Signature { args: &[], returns: Returns::Scalar(I32) }],
        lowering: Lowering::Register(SpecialRegister::BlockIdx(2)),
        ptx: Ptx::Has("%ctaid.z"),
        doc: "Index of the block in the grid along z. PTX ISA, special registers: `%ctaid`.",
    },
    Intrinsic {
        path: "weft.cuda.blockDim.x",
        signatures: &[Signature { args: &[], returns: Returns::Scalar(I32) }],
        lowering: Lowering::Register(SpecialRegister::BlockDim(0)),
        ptx: Ptx::Has("%ntid.x"),
        doc: "Threads in a block along x. PTX ISA, special registers: `%ntid`.",
    },
    Intrinsic {
        path: "weft.cuda.blockDim.y",
        signatures: &[Signature { args: &[], returns: Returns::Scalar(I32) }],
        lowering: Lowering::Register(SpecialRegister::BlockDim(1)),
        ptx: Ptx::Has("%ntid.y"),
        doc: "Threads in a block along y. PTX ISA, special registers: `%ntid`.",
    },
    Intrinsic {
        path: "weft.cuda.blockDim.z",
        signatures: &[Signature { args: &[], returns: Returns::Scalar(I32) }],
        lowering: Lowering::Register(SpecialRegister::BlockDim(2)),
        ptx: Ptx::Has("%ntid.z"),
        doc: "Threads in a block along z. PTX ISA, special registers: `%ntid`.",
    },
    Intrinsic {
        path: "weft.cuda.gridDim.x",
        signatures: &[Signature { args: &[], returns: Returns::Scalar(I32) }],
        lowering: Lowering::Register(SpecialRegister::GridDim(0)),
        ptx: Ptx::Has("%nctaid.x"),
        doc: "Blocks in the grid along x. PTX ISA, special registers: `%nctaid`.",
    },
    Intrinsic {
        path: "weft.cuda.gridDim.y",
        signatures: &[Signature { args: &[], returns: Returns::Scalar(I32) }],
        lowering: Lowering::Register(SpecialRegister::GridDim(1)),
        ptx: Ptx::Has("%nctaid.y"),
        doc: "Blocks in the grid along y. PTX ISA, special registers: `%nctaid`.",
    },
    Intrinsic {
        path: "weft.cuda.gridDim.z",
        signatures: &[Signature { args: &[], returns: Returns::Scalar(I32) }],
        lowering: Lowering::Register(SpecialRegister::GridDim(2)),
        ptx: Ptx::Has("%nctaid.z"),
        doc: "Blocks in the grid along z. PTX ISA, special registers: `%nctaid`.",
    },
    Intrinsic {
        path: "weft.cuda.laneid",
        signatures: &[Signature { args: &[], returns: Returns::Scalar(I32) }],
        lowering: Lowering::Register(SpecialRegister::LaneId),
        ptx: Ptx::Has("%laneid"),
        doc: "Position of the thread in its warp, 0 to 31. PTX ISA, special registers: `%laneid`.",
    },
    Intrinsic {
        path: "weft.cuda.warpsize",
        signatures: &[Signature { args: &[], returns: Returns::Scalar(I32) }],
        lowering: Lowering::Register(SpecialRegister::WarpSize),
        ptx: Ptx::Computed,
        doc: "Threads in a warp: 32.",
    },
    Intrinsic {
        path: "weft.cuda.grid",
        signatures: &[
            Signature { args: &[Arg::Const(1)], returns: Returns::Scalar(I64) },
            Signature { args: &[Arg::Const(2)], returns: Returns::Tuple(&[I64, I64]) },
            Signature { args: &[Arg::Const(3)], returns: Returns::Tuple(&[I64, I64, I64]) },
        ],
        lowering: Lowering::Custom(Custom::Grid),
        ptx: Ptx::Has("%ctaid.x"),
        doc: "Position of the thread in the whole grid, `threadIdx + blockIdx * blockDim`: an `int64` for 1 dimension, a tuple for 2 or 3.",
    },
    Intrinsic {
        path: "weft.cuda.gridsize",
        signatures: &[
            Signature { args: &[Arg::Const(1)], returns: Returns::Scalar(I64) },
            Signature { args: &[Arg::Const(2)], returns: Returns::Tuple(&[I64, I64]) },
            Signature { args: &[Arg::Const(3)], returns: Returns::Tuple(&[I64, I64, I64]) },
        ],
        lowering: Lowering::Custom(Custom::GridSize),
        ptx: Ptx::Has("%nctaid.x"),
        doc: "Threads in the whole grid, `blockDim * gridDim`: an `int64` for 1 dimension, a tuple for 2 or 3.",
    },
    Intrinsic {
        path: "weft.cuda.syncthreads",
        signatures: &[Signature { args: &[], returns: Returns::Nothing }],
        lowering: Lowering::Op(Op::Barrier),
        ptx: Ptx::Operation,
        doc: "Waits for all threads of the block that have not returned, and orders memory between them. PTX ISA, \
            `bar.sync`.",
    },
    Intrinsic {
        path: "weft.cuda.syncthreads_count",
        signatures: &[Signature { args: &[Arg::Scalar(Bool)], returns: Returns::Scalar(I32) }],
        lowering: Lowering::Op(Op::BarrierReduce(Reduction::Count)),
        ptx: Ptx::Operation,
        doc: "Like `syncthreads`; returns the number of threads whose argument is not 0. PTX ISA, `barrier.red`.",
    },
    Intrinsic {
        path: "weft.cuda.syncthreads_and",
        signatures: &[Signature { args: &[Arg::Scalar(Bool)], returns: Returns::Scalar(I32) }],
        lowering: Lowering::Op(Op::BarrierReduce(Reduction::And)),
        ptx: Ptx::Operation,
        doc: "Like `syncthreads`; returns 1 if the argument of all threads is not 0, else 0. PTX ISA, `barrier.red`.",
    },
    Intrinsic {
        path: "weft.cuda.syncthreads_or",
        signatures: &[Signature { args: &[Arg::Scalar(Bool)], returns: Returns::Scalar(I32) }],
        lowering: Lowering::Op(Op::BarrierReduce(Reduction::Or)),
        ptx: Ptx::Operation,
        doc: "Like `syncthreads`; returns 1 if the argument of any thread is not 0, else 0. PTX ISA, `barrier.red`.",
    },
    Intrinsic {
        path: "weft.cuda.syncwarp",
        signatures: &[
            Signature { args: &[], returns: Returns::Nothing },
            Signature { args: &[Arg::Scalar(I32)], returns: Returns::Nothing },
        ],
        lowering: Lowering::Custom(Custom::SyncWarp),
        ptx: Ptx::Has("bar.warp.sync"),
        doc: "Waits for the threads of the warp that are in the mask (default: all), and orders memory between them. \
            PTX ISA, `bar.warp.sync`.",
    },
    Intrinsic {
        path: "weft.cuda.threadfence",
        signatures: &[Signature { args: &[], returns: Returns::Nothing }],
        lowering: Lowering::Op(Op::Fence(Scope::Device)),
        ptx: Ptx::Operation,
        doc: "Orders the thread's memory accesses before and after it, as the device sees them. PTX ISA, `membar`.",
    },
    Intrinsic {
        path: "weft.cuda.threadfence_block",
        signatures: &[Signature { args: &[], returns: Returns::Nothing }],
        lowering: Lowering::Op(Op::Fence(Scope::Block)),
        ptx: Ptx::Operation,
        doc: "Orders the thread's memory accesses before and after it, as the block sees them. PTX ISA, `membar`.",
    },
    Intrinsic {
        path: "weft.cuda.threadfence_system",
        signatures: &[Signature { args: &[], returns: Returns::Nothing }],
        lowering: Lowering::Op(Op::Fence(Scope::System)),
        ptx: Ptx::Operation,
        doc: "Orders the thread's memory accesses before and after it, as the system sees them. PTX ISA, `membar`.",
    },
    Intrinsic {
        path: "weft.cuda.shared.array",
        signatures: &[
            Signature { args: &[Arg::Const(64), Arg::DType(Number::BOOL)], returns: Returns::Array(Number::BOOL) },
            Signature { args: &[Arg::Const(64), Arg::DType(Number::I8)], returns: Returns::Array(Number::I8) },
            Signature { args: &[Arg::Const(64), Arg::DType(Number::U8)], returns: Returns::Array(Number::U8) },
            Signature { args: &[Arg::Const(64), Arg::DType(Number::I16)], returns: Returns::Array(Number::I16) },
            Signature { args: &[Arg::Const(64), Arg::DType(Number::U16)], returns: Returns::Array(Number::U16) },
            Signature { args: &[Arg::Const(64), Arg::DType(Number::I32)], returns: Returns::Array(Number::I32) },
            Signature { args: &[Arg::Const(64), Arg::DType(Number::U32)], returns: Returns::Array(Number::U32) },
            Signature { args: &[Arg::Const(64), Arg::DType(Number::I64)], returns: Returns::Array(Number::I64) },
            Signature { args: &[Arg::Const(64), Arg::DType(Number::U64)], returns: Returns::Array(Number::U64) },
            Signature { args: &[Arg::Const(64), Arg::DType(Number::F32)], returns: Returns::Array(Number::F32) },
            Signature { args: &[Arg::Const(64), Arg::DType(Number::F64)], returns: Returns::Array(Number::F64) },
            Signature { args: &[Arg::Const(64), Arg::DType(Number::C64)], returns: Returns::Array(Number::C64) },
            Signature { args: &[Arg::Const(64), Arg::DType(Number::C128)], returns: Returns::Array(Number::C128) },
        ],
        lowering: Lowering::Custom(Custom::SharedArray),
        ptx: Ptx::Has(".shared"),
        doc: "An array in the shared memory of the block: `array(shape, dtype)`. The shape is a compile-time integer \
            or tuple; shape 0 is the dynamic shared memory of the launch. With `swizzle=32`, `64` or `128`, rows of an \
            array of two dimensions store their parts of 16 bytes in different orders, so that columns have no bank \
            conflicts. The contents are undefined at first.",
    },
    Intrinsic {
        path: "weft.cuda.shared.swizzled",
        signatures: &[],
        lowering: Lowering::Custom(Custom::SharedSwizzled),
        ptx: Ptx::Computed,
        doc: "`swizzled(array, width)`: the memory of a shared array of two dimensions as a swizzled array, for dynamic \
            shared memory. The memory must start at a multiple of 128 bytes to have no bank conflicts.",
    },
    Intrinsic {
        path: "weft.cuda.local.array",
        signatures: &[
            Signature { args: &[Arg::Const(8), Arg::DType(Number::BOOL)], returns: Returns::Array(Number::BOOL) },
            Signature { args: &[Arg::Const(8), Arg::DType(Number::I8)], returns: Returns::Array(Number::I8) },
            Signature { args: &[Arg::Const(8), Arg::DType(Number::U8)], returns: Returns::Array(Number::U8) },
            Signature { args: &[Arg::Const(8), Arg::DType(Number::I16)], returns: Returns::Array(Number::I16) },
            Signature { args: &[Arg::Const(8), Arg::DType(Number::U16)], returns: Returns::Array(Number::U16) },
            Signature { args: &[Arg::Const(8), Arg::DType(Number::I32)], returns: Returns::Array(Number::I32) },
            Signature { args: &[Arg::Const(8), Arg::DType(Number::U32)], returns: Returns::Array(Number::U32) },
            Signature { args: &[Arg::Const(8), Arg::DType(Number::I64)], returns: Returns::Array(Number::I64) },
            Signature { args: &[Arg::Const(8), Arg::DType(Number::U64)], returns: Returns::Array(Number::U64) },
            Signature { args: &[Arg::Const(8), Arg::DType(Number::F32)], returns: Returns::Array(Number::F32) },
            Signature { args: &[Arg::Const(8), Arg::DType(Number::F64)], returns: Returns::Array(Number::F64) },
            Signature { args: &[Arg::Const(8), Arg::DType(Number::C64)], returns: Returns::Array(Number::C64) },
            Signature { args: &[Arg::Const(8), Arg::DType(Number::C128)], returns: Returns::Array(Number::C128) },
        ],
        lowering: Lowering::Custom(Custom::LocalArray),
        ptx: Ptx::Computed,
        doc: "An array in the local memory of the thread: `array(shape, dtype)`. The shape is a compile-time \
            constant. The contents are undefined at first.",
    },
    Intrinsic {
        path: "weft.carray",
        signatures: &[],
        lowering: Lowering::Custom(Custom::CArray),
        ptx: Ptx::Computed,
        doc: "An array in C order over the memory at a pointer: `carray(ptr, shape, dtype=None)`. A `voidptr` needs \
            the dtype. On the host it takes a pointer of `ctypes`.",
    },
    Intrinsic {
        path: "weft.farray",
        signatures: &[],
        lowering: Lowering::Custom(Custom::FArray),
        ptx: Ptx::Computed,
        doc: "The same in Fortran order: `farray(ptr, shape, dtype=None)`.",
    },
    Intrinsic {
        path: "weft.cuda.literal_unroll",
        signatures: &[],
        lowering: Lowering::Custom(Custom::LiteralUnroll),
        ptx: Ptx::Computed,
        doc: "Marks a tuple for unrolling: a `for` loop over it is compiled once for each item, whose types may \
            differ.",
    },
    Intrinsic {
        path: "weft.cuda.inline_ptx",
        signatures: &[],
        lowering: Lowering::Custom(Custom::InlinePtx),
        ptx: Ptx::Computed,
        doc: "Inline PTX, on GPUs: `inline_ptx(text, constraint, operand, …)`. `%0` is the first operand. The \
            constraints are those of CUDA C++'s `asm`: `=r` with the type of a result, `r` with a value that is read, \
            `+r` with a value that is read and written, `n` with a compile-time integer. Returns the results. \
            `pure=True` promises that it only computes.",
    },
    Intrinsic {
        path: "cffi.FFI.from_buffer",
        signatures: &[],
        lowering: Lowering::Custom(Custom::FromBuffer),
        ptx: Ptx::Computed,
        doc: "A pointer to the first element of a contiguous array, for code in other languages: `ffi.from_buffer(a)` \
            of a global `ffi = cffi.FFI()`. Its type is `CPointer` of the array's dtype.",
    },
    Intrinsic {
        path: "weft.cuda.stop_gradient",
        signatures: &[],
        lowering: Lowering::Custom(Custom::StopGradient),
        ptx: Ptx::Computed,
        doc: "Its argument, a number or a tuple of numbers, which is a constant in derivatives: `stop_gradient(x)`. In a \
            kernel that `cuda.vjp` and `cuda.jvp` do not derive, it has no effect.",
    },
    Intrinsic {
        path: "weft.cuda.const.array_like",
        signatures: &[],
        lowering: Lowering::Custom(Custom::ConstArrayLike),
        ptx: Ptx::Computed,
        doc: "A global NumPy array in constant memory: `array_like(a)` returns the array with the contents that it \
            had when the kernel was compiled. Returns any other array unchanged.",
    },
];
