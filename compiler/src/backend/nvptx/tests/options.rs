//! The effect of a request's options, symbol names, and LLVM's fatal errors.

use std::{env, fs, sync::Arc};

use inkwell::{
    OptimizationLevel,
    targets::{CodeModel, RelocMode},
};
use weft_artifact::{Scalar, SlotType};

use super::{ptx_for, saxpy};
use crate::{
    backend::{
        emit,
        llvm::{
            Error,
            shim::{self, Machine, MachineSpec},
        },
        symbol,
        testing::{KernelBuilder, SPAN, request},
    },
    ir::{BinaryOp, MathFn, Module, Type},
    request::{LaunchBounds, Options, Target},
};

/// `out[i] = sin(x[i]) / sqrt(x[i])`
fn wave() -> Module {
    let mut k = KernelBuilder::new("wave");
    let x = k.array("x", Scalar::F32);
    let out = k.array("out", Scalar::F32);
    let i = k.index();
    let ty = Type::Scalar(Scalar::F32);
    let (first, second) = (k.load(x, i), k.load(x, i));
    let (sin, sqrt) = (k.b.math(MathFn::Sin, vec![first], ty, SPAN), k.b.math(MathFn::Sqrt, vec![second], ty, SPAN));
    let value = k.b.binary(BinaryOp::Div, sin, sqrt, SPAN);
    k.store(out, i, value);
    k.finish()
}

#[test]
fn precise_by_default() {
    let text = ptx_for(&wave(), 90, Options::default());
    assert!(text.contains("sqrt.rn.f32") && text.contains("div.rn.f32"), "{text}");
    assert!(!text.contains("approx") && !text.contains(".ftz"), "{text}");
}

#[test]
fn fastmath_takes_approximations() {
    let text = ptx_for(&wave(), 90, Options { fastmath: true, ..Options::default() });
    assert!(text.contains("sin.approx.ftz.f32"), "{text}");
    assert!(text.contains("rsqrt.approx.ftz.f32") || text.contains("sqrt.approx.ftz.f32"), "{text}");
    assert!(!text.contains(".rn.f32"), "{text}");
}

#[test]
fn launch_bounds() {
    let bounds = LaunchBounds { threads: 256, blocks: Some(2), cluster: None };
    let text = ptx_for(&saxpy(), 90, Options { launch_bounds: Some(bounds), ..Options::default() });
    assert!(text.contains(".maxntid 256, 1, 1\n.minnctapersm 2\n"), "{text}");
    let bounds = LaunchBounds { threads: 128, blocks: None, cluster: Some(4) };
    let text = ptx_for(&saxpy(), 90, Options { launch_bounds: Some(bounds), ..Options::default() });
    assert!(text.contains(".maxntid 128, 1, 1\n.maxclusterrank 4\n"), "{text}");
}

#[test]
fn max_registers() {
    let text = ptx_for(&saxpy(), 90, Options { max_registers: Some(32), ..Options::default() });
    assert!(text.contains(".maxnreg 32"), "{text}");
}

#[test]
fn line_tables() {
    let text = ptx_for(&saxpy(), 90, Options { lineinfo: true, ..Options::default() });
    assert!(text.contains(".file\t1 \"kernel.py\""), "{text}");
    assert!(text.contains(".loc\t1 1 1"), "{text}");
    // With `debug` in the target line, ptxas would not optimize.
    assert!(text.contains(".target sm_90\n"), "{text}");
    let plain = ptx_for(&saxpy(), 90, Options::default());
    assert!(!plain.contains(".loc"), "{plain}");
}

#[test]
fn unoptimised_code_keeps_its_locals() {
    let text = ptx_for(&saxpy(), 90, Options { opt: false, ..Options::default() });
    assert!(text.contains(".local"), "{text}");
}

/// `WEFT_LIBDEVICE` names a libdevice.10.bc.
#[test]
fn libdevice_is_taken_where_it_is_given() {
    let Some(path) = env::var_os("WEFT_LIBDEVICE") else { return };
    let bytes = Some(Arc::new(fs::read(path).expect("WEFT_LIBDEVICE can be read")));
    for fastmath in [false, true] {
        let text = ptx_for(&wave(), 90, Options { libdevice: bytes.clone(), fastmath, ..Options::default() });
        assert!(!text.contains(".extern"), "{text}");
    }
    for &function in MathFn::ALL.iter().filter(|f| f.is_usual() && !matches!(f, MathFn::Bits | MathFn::OfBits)) {
        for scalar in [Scalar::F32, Scalar::F64] {
            let module = super::operators::math_kernel(function, scalar);
            for fastmath in [false, true] {
                ptx_for(&module, 75, Options { libdevice: bytes.clone(), fastmath, ..Options::default() });
            }
        }
    }
}

#[test]
fn the_artifact_describes_the_kernel() {
    let emitted = emit(&saxpy(), &request("saxpy", Target::Sm(90, ""), Options::default())).expect("it compiles");
    assert_eq!(emitted.artifact.target, "sm_90");
    let kernel = &emitted.artifact.kernels[0];
    assert_eq!((kernel.name.as_str(), kernel.symbol.as_str()), ("saxpy", "saxpy"));
    let types: Vec<_> = kernel.slots.iter().map(|slot| slot.ty).collect();
    assert_eq!(
        types,
        [SlotType::Scalar(Scalar::I64), SlotType::Scalar(Scalar::F32), SlotType::Pointer, SlotType::Pointer,]
    );
    assert!(emitted.llvm.expect("it was requested").contains("ptx_kernel"));
}

/// Names that are keywords of PTX, and characters that PTX does not allow in identifiers.
#[test]
fn any_python_name_is_a_symbol() {
    let names =
        ["add", "bar", "f32", "ntid", "reg", "entry", "shared", "param", "_", "__", "μ_Q", "ρ", "名前", "WARP_SZ"];
    for name in names {
        let mut k = KernelBuilder::new(name);
        let out = k.array("out", Scalar::I64);
        let i = k.index();
        let value = k.read(i);
        k.store(out, i, value);
        let text = ptx_for(&k.finish(), 75, Options::default());
        assert!(text.contains(&format!(".entry {}(", symbol(name))), "{text}");
    }
    assert_eq!(symbol("μ_Q"), "$3bc$_Q");
}

/// An ISA that is older than the SM is a fatal error in LLVM. The process continues, and the next compilation succeeds.
#[test]
fn fatal_errors_are_values() {
    for _ in 0..3 {
        let result = shim::with_context(|_| {
            Machine::new(&MachineSpec {
                triple: "nvptx64-nvidia-cuda",
                cpu: "sm_90",
                features: "+ptx32",
                level: OptimizationLevel::Aggressive,
                reloc: RelocMode::Default,
                model: CodeModel::Default,
            })
        });
        match result {
            Err(Error::Fatal(text)) => assert!(text.contains("PTX version"), "{text}"),
            other => panic!("{other:?}"),
        }
        ptx_for(&saxpy(), 90, Options::default());
    }
}
