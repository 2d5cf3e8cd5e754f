//! State that the functions of one LLVM module share: declarations, constants, the math library's functions.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
};

use inkwell::{
    intrinsics::Intrinsic,
    module::{Linkage, Module},
    types::{BasicTypeEnum, FunctionType},
    values::{CallSiteValue, FunctionValue, PointerValue},
};

use super::{DebugInfo, Library, Result, Types, internal};
use crate::{
    inline::copies,
    ir::{self, Circles, ConstantId, FuncId},
    request::{Entry, Options},
};

/// State that the functions of one LLVM module share.
pub(crate) struct ModuleContext<'a, 'ctx> {
    /// LLVM's types.
    pub types: Types<'ctx>,
    /// LLVM's module.
    pub module: &'a Module<'ctx>,
    /// weft's module.
    pub ir: &'a ir::Module,
    /// Options of the request.
    pub options: &'a Options,
    /// The library that provides the math functions.
    pub library: Library,
    /// The target is PTX: conversions to integers and rounding use its instructions.
    pub ptx: bool,
    /// Line tables, if they are requested.
    pub debug: Option<DebugInfo<'ctx>>,
    /// By function index: whether its calls are inlined.
    inlined: Vec<bool>,
    functions: RefCell<HashMap<FuncId, FunctionValue<'ctx>>>,
    constants: RefCell<HashMap<ConstantId, PointerValue<'ctx>>>,
    library_symbols: RefCell<BTreeSet<String>>,
}

impl<'a, 'ctx> ModuleContext<'a, 'ctx> {
    /// An empty context.
    pub(crate) fn new(
        types: Types<'ctx>,
        module: &'a Module<'ctx>,
        ir: &'a ir::Module,
        options: &'a Options,
        library: Library,
        debug: Option<DebugInfo<'ctx>>,
    ) -> Self {
        Self {
            types,
            module,
            ir,
            options,
            library,
            ptx: false,
            inlined: copies::inlined(ir),
            constants: RefCell::default(),
            debug,
            functions: RefCell::default(),
            library_symbols: RefCell::default(),
        }
    }

    /// Declares the recursive functions, which may be called before they are emitted.
    pub(crate) fn declare_circles(&self, hidden: &[BasicTypeEnum<'ctx>]) -> Result<()> {
        let circles = Circles::of(self.ir);
        for (id, _) in self.ir.functions.iter().filter(|(id, _)| circles.contains(*id)) {
            let function = self.declare_device(id, hidden)?;
            if self.ptx {
                // See `nvptx::keep`. With external linkage from the start, LLVM's passes preserve the ABI.
                function.set_linkage(Linkage::External);
                if let (Entry::Foreign(foreign), Some(entry)) = (&self.options.entry, self.ir.kernel()) {
                    // A symbol that is linked with other code must not collide with the symbols of that code.
                    let owner = foreign.symbol.clone().unwrap_or_else(|| crate::backend::symbol(&entry.name));
                    let own = function.get_name().to_string_lossy().into_owned();
                    function.as_global_value().set_name(&format!("{owner}${own}"));
                }
            }
        }
        Ok(())
    }

    /// Declares a device function once, internal to the module, and records it for calls.
    pub(crate) fn declare_device(&self, id: FuncId, hidden: &[BasicTypeEnum<'ctx>]) -> Result<FunctionValue<'ctx>> {
        if let Some(known) = self.functions.borrow().get(&id) {
            return Ok(*known);
        }
        let function = &self.ir.functions[id];
        let params = function.params.iter().map(|&local| function.locals[local].ty);
        let ty = self.types.function(hidden, params, &function.results)?;
        let value = self.module.add_function(&crate::backend::symbol(&function.name), ty, Some(Linkage::Internal));
        self.attribute(value, if self.inlined[id.index()] { "alwaysinline" } else { "nounwind" });
        self.functions.borrow_mut().insert(id, value);
        Ok(value)
    }

    /// The LLVM function of a device function, which must be declared before any call of it.
    pub(crate) fn function(&self, id: FuncId) -> Result<FunctionValue<'ctx>> {
        let known = self.functions.borrow().get(&id).copied();
        known.map_or_else(|| internal(format!("@{} is called before it is declared", self.ir.functions[id].name)), Ok)
    }

    /// The address of a constant array. The first use declares the array.
    pub(crate) fn constant(&self, id: ConstantId) -> Result<PointerValue<'ctx>> {
        if let Some(known) = self.constants.borrow().get(&id) {
            return Ok(*known);
        }
        let Some(array) = self.ir.constants.get(id) else { return internal("a constant that is not declared") };
        let value = self.types.context.const_string(&array.bytes, false);
        let space = self.types.pointer(array.space).get_address_space();
        let name = format!("{}.{}", crate::backend::symbol(&array.name), id.index());
        let global = self.module.add_global(value.get_type(), Some(space), &name);
        global.set_initializer(&value);
        global.set_constant(true);
        global.set_linkage(Linkage::Internal);
        global.set_alignment(array.align as u32);
        let pointer = global.as_pointer_value();
        self.constants.borrow_mut().insert(id, pointer);
        Ok(pointer)
    }

    /// Adds an enum attribute without a value, such as `convergent`, to a function.
    pub(crate) fn attribute(&self, function: FunctionValue<'ctx>, name: &str) {
        let kind = inkwell::attributes::Attribute::get_named_enum_kind_id(name);
        let attribute = self.types.context.create_enum_attribute(kind, 0);
        function.add_attribute(inkwell::attributes::AttributeLoc::Function, attribute);
    }

    /// Makes a call convergent: LLVM must not add control dependences to it, because converged threads execute it.
    pub(crate) fn make_convergent(&self, call: CallSiteValue<'ctx>) {
        let kind = inkwell::attributes::Attribute::get_named_enum_kind_id("convergent");
        let attribute = self.types.context.create_enum_attribute(kind, 0);
        call.add_attribute(inkwell::attributes::AttributeLoc::Function, attribute);
    }

    /// Adds a string attribute to a function.
    pub(crate) fn string_attribute(&self, function: FunctionValue<'ctx>, key: &str, value: &str) {
        let attribute = self.types.context.create_string_attribute(key, value);
        function.add_attribute(inkwell::attributes::AttributeLoc::Function, attribute);
    }

    /// Declares a function of the math library, which is linked at the end.
    pub(crate) fn library_function(&self, symbol: String, ty: FunctionType<'ctx>) -> Result<FunctionValue<'ctx>> {
        let function = match self.module.get_function(&symbol) {
            Some(known) if self.library_symbols.borrow().contains(&symbol) => known,
            Some(_) => {
                return internal(format!("a function of the program has the symbol {symbol} of the math library"));
            }
            None => self.module.add_function(&symbol, ty, Some(Linkage::External)),
        };
        self.library_symbols.borrow_mut().insert(symbol);
        Ok(function)
    }

    /// The symbols of all functions of the math library that were declared.
    pub(crate) fn library_symbols(&self) -> BTreeSet<String> {
        self.library_symbols.borrow().clone()
    }

    /// The declaration of an LLVM intrinsic.
    pub(crate) fn intrinsic(&self, name: &str, types: &[BasicTypeEnum<'ctx>]) -> Result<FunctionValue<'ctx>> {
        let declared = Intrinsic::find(name).and_then(|intrinsic| intrinsic.get_declaration(self.module, types));
        declared.map_or_else(|| internal(format!("LLVM has no intrinsic {name}")), Ok)
    }
}
