//! Small modules and requests for the back ends' tests, built by hand.

use std::{collections::BTreeMap, sync::Arc};

use weft_artifact::{Access, ArgType, ArrayType, Layout, Param, Scalar, SlotField, SlotSource};

use crate::{
    ir::{BinaryOp, Builder, Function, FunctionKind, LocalId, Module, Space, Type, verify},
    request::{FunctionDef, HostCpu, Keep, Options, Overloads, Request, Target},
    source::{SourceFile, Span},
    syntax::ast,
};

/// The span of all code that is built here.
pub(crate) const SPAN: Span = Span { file: 0, start: 0, end: 8 };

/// The CPU on which tests run code: as for the runtime, the one that the settings name, else this machine's.
#[expect(clippy::disallowed_methods, reason = "a test, unlike the compiler, may read its CPU from a setting")]
pub(crate) fn cpu() -> Arc<HostCpu> {
    let set = |variable| std::env::var(variable).ok().filter(|name| !matches!(name.as_str(), "" | "auto"));
    let (name, planned) = (set("WEFT_HOST_CPU"), set("WEFT_HOST_PLAN"));
    crate::host_cpu_set(name.as_deref(), planned.as_deref(), 3).unwrap_or_else(|message| panic!("{message}"))
}

/// This machine's CPU, with the plans of another one.
pub(crate) fn cpu_planned_as(name: &str) -> Arc<HostCpu> {
    crate::host_cpu_set(None, Some(name), 3).expect("LLVM knows the CPU")
}

/// Any CPU, for tests that only inspect code.
pub(crate) fn cpu_for_code(name: &str) -> Arc<HostCpu> {
    Arc::new(super::host::cpu::known(name).expect("LLVM knows the CPU"))
}

/// The binary operators of integers.
pub(crate) const INTEGER_OPS: [BinaryOp; 18] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::AddExact,
    BinaryOp::SubExact,
    BinaryOp::MulExact,
    BinaryOp::FloorDiv,
    BinaryOp::FloorMod,
    BinaryOp::DivNonneg,
    BinaryOp::ModNonneg,
    BinaryOp::Pow,
    BinaryOp::Shl,
    BinaryOp::Shr,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::Xor,
    BinaryOp::Min,
    BinaryOp::Max,
];

/// A request in which only the target, the options and the kernel's name are set. A back end reads nothing else.
pub(crate) fn request(name: &str, target: Target, options: Options) -> Request {
    let ast = ast::Function {
        name: name.to_owned(),
        params: Vec::new(),
        body: Vec::new(),
        decorators: Vec::new(),
        returns: None,
        name_span: SPAN,
        span: SPAN,
    };
    let function = FunctionDef {
        ast,
        source: Arc::new(SourceFile::new("kernel.py", "def kernel(): pass\n")),
        globals: BTreeMap::new(),
        defaults: BTreeMap::new(),
        signatures: Vec::new(),
        inline: false,
        typing: None,
        gpu: None,
        backward: None,
        number: 0,
    };
    let keep = Keep { ir: true, llvm: true, asm: true, ..Keep::default() };
    Request { function: Arc::new(function), overloads: Overloads::default(), args: Vec::new(), target, options, keep }
}

/// Builds a module with one kernel.
pub(crate) struct KernelBuilder {
    /// Builds the kernel's body.
    pub b: Builder,
    /// The module of the kernel.
    pub module: Module,
}

impl KernelBuilder {
    /// A kernel without parameters or statements.
    pub(crate) fn new(name: &str) -> Self {
        let mut module = Module::default();
        module.sources.add(&Arc::new(SourceFile::new("kernel.py", "def kernel(): pass\n")));
        Self { b: Builder::new(Function::new(name, FunctionKind::Kernel, SPAN)), module }
    }

    fn slot(&mut self, name: &str, ty: ArgType, local: Type, field: SlotField) -> LocalId {
        let access = Access { reads: true, writes: true, accumulates: false };
        self.module.params.push(Param { name: name.to_owned(), ty, access });
        let param = self.module.params.len() as u32 - 1;
        let id = self.b.local(name, local);
        self.b.function.params.push(id);
        self.b.function.slots.push(SlotSource::Argument { param, path: Vec::new(), field });
        id
    }

    /// A scalar parameter.
    pub(crate) fn scalar(&mut self, name: &str, scalar: Scalar) -> LocalId {
        self.slot(name, ArgType::from(scalar), Type::Scalar(scalar), SlotField::Value)
    }

    /// An array parameter, of which only the data pointer is live.
    pub(crate) fn array(&mut self, name: &str, dtype: Scalar) -> LocalId {
        let ty = ArrayType { dtype: dtype.into(), ndim: 1, layout: Layout::C, readonly: false };
        self.slot(name, ArgType::Array(ty), Type::Ptr(dtype, Space::Global), SlotField::Data)
    }

    /// The verified module.
    pub(crate) fn finish(mut self) -> Module {
        let kernel = self.module.functions.push(self.b.finish());
        self.module.kernel = Some(kernel);
        verify(&self.module).expect("the test builds a valid module");
        self.module
    }
}
