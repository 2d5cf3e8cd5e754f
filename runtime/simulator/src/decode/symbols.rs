//! Addresses of the names of a module: variables in memory, shared variables, and functions.
//!
//! A shared variable's address is its offset in the block's shared memory. Those of different kernels overlap; dynamic
//! shared memory follows the largest of them.

use std::collections::HashMap;

use weft_artifact::MatrixRules;

use super::{defined, table::ModuleVariable};
use crate::{
    error::Error,
    parse::{FunctionTree, ModuleTree, Space, Statement, Value, Variable},
};

/// The first address of the window of shared memory in generic addresses.
pub(crate) const SHARED_BASE: u64 = 0x7e00_0000_0000;
/// The same for local memory.
pub(crate) const LOCAL_BASE: u64 = 0x7d00_0000_0000;
/// The size of a window.
pub(crate) const WINDOW: u64 = 1 << 32;
/// Addresses of `shared::cluster` have one more than the rank of the block from this bit on; those of the block itself may
/// have 0.
pub(crate) const RANK_SHIFT: u32 = 24;
/// The addresses of functions.
const FUNCTIONS: u64 = 0x7c00_0000_0000;
/// The addresses of variables of the module.
const VARIABLES: u64 = 0x7b00_0000_0000;

/// The names of a module.
pub(super) struct Symbols {
    /// The space and the address of each variable at the level of the module, and of each function.
    addresses: HashMap<String, (Space, u64)>,
    /// The numbers of functions with a body.
    functions: HashMap<String, usize>,
    /// The offsets of shared variables in bodies, by function and name.
    shared: HashMap<(String, String), u64>,
    pub(super) static_shared: u32,
    /// Those of the GPU that the module is for.
    pub(super) rules: MatrixRules,
}

fn shared_in(function: &FunctionTree) -> impl Iterator<Item = &Variable> {
    function.body.iter().flatten().filter_map(|statement| match statement {
        Statement::Variable(variable) if variable.space == Space::Shared => Some(variable),
        Statement::Variable(_)
        | Statement::Open
        | Statement::Close
        | Statement::Label(_)
        | Statement::Registers(..)
        | Statement::Location { .. }
        | Statement::Instruction(_) => None,
    })
}

fn allocate(at: &mut u64, variable: &Variable) -> u64 {
    let address = at.next_multiple_of(u64::from(variable.align.max(1)));
    *at = address + u64::from(variable.size());
    address
}

impl Symbols {
    pub(super) fn of(tree: &ModuleTree) -> Result<Self, Error> {
        let mut symbols = Self {
            addresses: HashMap::new(),
            functions: HashMap::new(),
            shared: HashMap::new(),
            static_shared: 0,
            rules: MatrixRules::of(tree.compute_capability),
        };
        let mut at = 0;
        for variable in tree.variables.iter().filter(|v| v.space == Space::Shared && v.count.is_some()) {
            symbols.addresses.insert(variable.name.clone(), (Space::Shared, allocate(&mut at, variable)));
        }
        for function in defined(tree).filter(|function| !function.is_kernel) {
            symbols.share(function, &mut at);
        }
        let mut end = at;
        for kernel in defined(tree).filter(|function| function.is_kernel) {
            let mut own = at;
            symbols.share(kernel, &mut own);
            end = end.max(own);
        }
        // Dynamic shared memory begins where it is aligned.
        let dynamic = tree.variables.iter().filter(|v| v.space == Space::Shared && v.count.is_none());
        end = end.next_multiple_of(dynamic.map(|v| u64::from(v.align)).max().unwrap_or(1).max(16));
        symbols.static_shared = end as u32;
        let mut next = VARIABLES;
        for variable in &tree.variables {
            let address = match (variable.space, variable.count) {
                (Space::Shared, Some(_)) => continue,
                (Space::Shared, None) => end.next_multiple_of(u64::from(variable.align.max(1))),
                (Space::Global | Space::Const, _) => {
                    next = next.next_multiple_of(256);
                    allocate(&mut next, variable)
                }
                (Space::Local | Space::Param | Space::Generic, _) => {
                    return Err(Error::at(variable.line, format!("`{}` is in no space of modules", variable.name)));
                }
            };
            symbols.addresses.insert(variable.name.clone(), (variable.space, address));
        }
        for (number, function) in defined(tree).enumerate() {
            symbols.functions.insert(function.name.clone(), number);
            symbols.addresses.insert(function.name.clone(), (Space::Global, FUNCTIONS + 16 * number as u64));
        }
        for function in &tree.functions {
            symbols.addresses.entry(function.name.clone()).or_insert((Space::Global, FUNCTIONS - 16));
        }
        Ok(symbols)
    }

    fn share(&mut self, function: &FunctionTree, at: &mut u64) {
        for variable in shared_in(function) {
            let address = allocate(at, variable);
            self.shared.insert((function.name.clone(), variable.name.clone()), address);
        }
    }

    /// The address of a name in a function.
    pub(super) fn address(&self, function: &str, name: &str) -> Option<u64> {
        let shared = self.shared.get(&(function.to_owned(), name.to_owned())).copied();
        shared.or_else(|| self.addresses.get(name).map(|(_, address)| *address))
    }

    /// The number of a function with a body.
    pub(super) fn function(&self, name: &str) -> Option<usize> {
        self.functions.get(name).copied()
    }

    /// The variables of the module in memory, with their bytes.
    pub(super) fn variables(&self, tree: &ModuleTree) -> Result<Vec<ModuleVariable>, Error> {
        let mut found = Vec::new();
        for variable in tree.variables.iter().filter(|v| matches!(v.space, Space::Global | Space::Const)) {
            let element = variable.ty.size() as usize;
            let mut bytes = vec![0; variable.size() as usize];
            for (index, value) in variable.values.iter().enumerate() {
                let bits = match value {
                    Value::Bits(bits) => *bits,
                    Value::Symbol(name, offset) => {
                        let address = self.address("", name).ok_or_else(|| {
                            Error::at(variable.line, format!("`{name}` in an initial value is not defined"))
                        })?;
                        address.wrapping_add_signed(*offset)
                    }
                };
                let Some(slot) = bytes.get_mut(index * element..(index + 1) * element) else {
                    return Err(Error::at(variable.line, format!("`{}` has too many initial values", variable.name)));
                };
                slot.copy_from_slice(&bits.to_le_bytes()[..element]);
            }
            let base = self.address("", &variable.name).unwrap_or(0);
            found.push(ModuleVariable { name: variable.name.clone(), base, bytes });
        }
        Ok(found)
    }
}
