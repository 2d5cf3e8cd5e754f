//! Decodes a function: its scopes, registers, parameters and operands.

use std::collections::HashMap;

use super::{
    arithmetic, asynchronous, calls, collectives, contract, convert, float, graph, matrix, memory,
    special::{Special, special},
    symbols::Symbols,
    table::{Bank, Function, Instruction, Location, Operation, Reg, Slot, Vote},
    uniform, warpgroup,
};
use crate::{
    count::Class,
    error::Error,
    parse::{FunctionTree, Operand, Source, Space, Statement, Type, Variable},
};

/// The state of the decoder in a function.
pub(super) struct Decoder<'a> {
    pub(super) symbols: &'a Symbols,
    pub(super) source: &'a FunctionTree,
    scopes: Vec<Scope>,
    /// The labels of every scope that was ever open, by the scope's number.
    labels: Vec<Labels>,
    /// The label and the scope of each branch.
    branches: Vec<(usize, String, usize)>,
    pub(super) function: Function,
    words: HashMap<u32, Reg>,
    longs: HashMap<u64, Reg>,
    truths: HashMap<bool, Reg>,
    specials: HashMap<Special, Reg>,
    locals: HashMap<u32, Reg>,
    /// Kernel parameters: offsets in the launch's parameters.
    launch_params: HashMap<String, u32>,
}

#[derive(Default)]
struct Scope {
    number: usize,
    registers: HashMap<String, (Bank, Reg, Type)>,
    params: HashMap<String, Slot>,
    locals: HashMap<String, u32>,
}

struct Labels {
    parent: Option<usize>,
    at: HashMap<String, usize>,
}

/// The bank of registers of a type.
pub(super) fn bank_of(ty: Type) -> Option<Bank> {
    match ty.size() {
        0 => Some(Bank::Predicate),
        1..=4 => Some(Bank::Word),
        8 => Some(Bank::Long),
        _ => None,
    }
}

/// Decodes a function with a body.
pub(super) fn decode(
    source: &FunctionTree,
    symbols: &Symbols,
    locations: &mut Vec<Location>,
) -> Result<Function, Error> {
    let mut decoder = Decoder::new(source, symbols);
    decoder.parameters();
    let mut location = 0;
    for statement in source.body.iter().flatten() {
        match statement {
            Statement::Open => decoder.open(),
            Statement::Close => drop(decoder.scopes.pop()),
            Statement::Label(name) => decoder.label(name),
            Statement::Registers(names, ty) => decoder.registers(names, *ty, source.line)?,
            Statement::Variable(variable) => decoder.variable(variable)?,
            Statement::Location { file, line, column } => {
                location = next_location(locations, location, (*file, *line, *column));
            }
            Statement::Instruction(instruction) => {
                let before = decoder.function.instructions.len();
                decoder.instruction(instruction)?;
                for made in &mut decoder.function.instructions[before..] {
                    made.location = location as u32;
                }
            }
        }
    }
    decoder.finish()
}

/// The index of a location. Line 0 inherits the line before.
fn next_location(locations: &mut Vec<Location>, before: usize, (file, line, column): (u32, u32, u32)) -> usize {
    let last = locations[before];
    let made = if line == 0 && last.line != 0 {
        Location { is_inherited: true, ..last }
    } else {
        Location { file, line, column, is_inherited: false }
    };
    if made != last {
        locations.push(made);
        return locations.len() - 1;
    }
    before
}

impl<'a> Decoder<'a> {
    fn new(source: &'a FunctionTree, symbols: &'a Symbols) -> Self {
        Self {
            symbols,
            source,
            scopes: vec![Scope::default()],
            labels: vec![Labels { parent: None, at: HashMap::new() }],
            branches: Vec::new(),
            function: Function {
                name: source.name.clone(),
                is_kernel: source.is_kernel,
                instructions: Vec::new(),
                blocks: Vec::new(),
                block_of: Vec::new(),
                words: 1,
                longs: 1,
                predicates: 2,
                word_constants: Vec::new(),
                long_constants: Vec::new(),
                predicate_constants: Vec::new(),
                specials: Vec::new(),
                local_addresses: Vec::new(),
                local_size: 0,
                params: Vec::new(),
                returns: Vec::new(),
                param_size: 0,
                first_counter: 0,
            },
            words: HashMap::new(),
            longs: HashMap::new(),
            truths: HashMap::new(),
            specials: HashMap::new(),
            locals: HashMap::new(),
            launch_params: HashMap::new(),
        }
    }

    fn parameters(&mut self) {
        if self.source.is_kernel {
            let mut at = 0;
            for param in &self.source.params {
                let slot = layout_param(&mut at, param);
                self.launch_params.insert(param.name.clone(), slot.offset);
                self.function.params.push(slot);
            }
            return;
        }
        for param in &self.source.params {
            let slot = self.param(param);
            self.function.params.push(slot);
        }
        for result in &self.source.returns {
            let slot = self.param(result);
            self.function.returns.push(slot);
        }
    }

    /// A parameter of the frame: of the function, or of a call.
    fn param(&mut self, variable: &Variable) -> Slot {
        let slot = layout_param(&mut self.function.param_size, variable);
        self.scope().params.insert(variable.name.clone(), slot);
        slot
    }

    fn scope(&mut self) -> &mut Scope {
        if self.scopes.is_empty() {
            self.scopes.push(Scope::default());
        }
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    fn open(&mut self) {
        let parent = self.scope().number;
        self.labels.push(Labels { parent: Some(parent), at: HashMap::new() });
        self.scopes.push(Scope { number: self.labels.len() - 1, ..Scope::default() });
    }

    fn label(&mut self, name: &str) {
        let (number, at) = (self.scope().number, self.function.instructions.len());
        self.labels[number].at.insert(name.to_owned(), at);
    }

    fn registers(&mut self, names: &[String], ty: Type, line: u32) -> Result<(), Error> {
        let bank = bank_of(ty).ok_or_else(|| Error::at(line, "registers of 128 bits are not supported"))?;
        for name in names {
            let register = self.fresh(bank);
            self.scope().registers.insert(name.clone(), (bank, register, ty));
        }
        Ok(())
    }

    /// A register that nothing uses yet.
    pub(super) fn fresh(&mut self, bank: Bank) -> Reg {
        let count = match bank {
            Bank::Word => &mut self.function.words,
            Bank::Long => &mut self.function.longs,
            Bank::Predicate => &mut self.function.predicates,
        };
        *count += 1;
        *count - 1
    }

    fn variable(&mut self, variable: &Variable) -> Result<(), Error> {
        match variable.space {
            Space::Param => {
                self.param(variable);
            }
            Space::Local => {
                let at = self.function.local_size.next_multiple_of(variable.align.max(1));
                self.function.local_size = at + variable.size();
                self.scope().locals.insert(variable.name.clone(), at);
            }
            Space::Shared => {}
            Space::Global | Space::Const | Space::Generic => {
                return Err(Error::at(variable.line, format!("`{}` cannot be in a function", variable.name)));
            }
        }
        Ok(())
    }

    /// The bank, the number and the type of a declared register.
    pub(super) fn declared(&self, name: &str) -> Option<(Bank, Reg, Type)> {
        self.scopes.iter().rev().find_map(|scope| scope.registers.get(name)).copied()
    }

    /// The slot of a parameter, and whether it is a parameter of the launch.
    pub(super) fn find_param(&self, name: &str) -> Option<(u32, bool)> {
        let slot = self.scopes.iter().rev().find_map(|scope| scope.params.get(name));
        let own = slot.map(|slot| (slot.offset, false));
        own.or_else(|| self.launch_params.get(name).map(|offset| (*offset, true)))
    }

    /// The slot of a parameter of a call.
    pub(super) fn param_slot(&self, name: &str) -> Option<Slot> {
        self.scopes.iter().rev().find_map(|scope| scope.params.get(name)).copied()
    }

    /// A register that holds a constant word.
    pub(super) fn word_constant(&mut self, value: u32) -> Reg {
        if let Some(register) = self.words.get(&value) {
            return *register;
        }
        let register = self.fresh(Bank::Word);
        self.words.insert(value, register);
        self.function.word_constants.push((register, value));
        register
    }

    fn long_constant(&mut self, value: u64) -> Reg {
        if let Some(register) = self.longs.get(&value) {
            return *register;
        }
        let register = self.fresh(Bank::Long);
        self.longs.insert(value, register);
        self.function.long_constants.push((register, value));
        register
    }

    /// A predicate that is constant.
    pub(super) fn truth(&mut self, value: bool) -> Reg {
        if let Some(register) = self.truths.get(&value) {
            return *register;
        }
        let register = self.fresh(Bank::Predicate);
        self.truths.insert(value, register);
        self.function.predicate_constants.push((register, value));
        register
    }

    fn special(&mut self, name: &str, line: u32) -> Result<Reg, Error> {
        let Some(special) = special(name) else {
            return Err(Error::at(line, format!("the register `{name}` is not supported")));
        };
        if let Some(register) = self.specials.get(&special) {
            return Ok(*register);
        }
        let register = self.fresh(Bank::Word);
        self.specials.insert(special, register);
        self.function.specials.push((register, special));
        Ok(register)
    }

    /// A register that holds a number as an operand of a type.
    pub(super) fn number(&mut self, operand: &Operand, ty: Type, line: u32) -> Result<Option<Reg>, Error> {
        let bits = match operand {
            Operand::Integer(value) => *value,
            Operand::Single(bits) if ty.size() == 8 => f64::from(f32::from_bits(*bits)).to_bits(),
            Operand::Single(bits) => u64::from(*bits),
            Operand::Double(bits) if ty.size() == 4 => u64::from((f64::from_bits(*bits) as f32).to_bits()),
            Operand::Double(bits) => *bits,
            Operand::Name(_)
            | Operand::Offset(..)
            | Operand::Vector(_)
            | Operand::List(_)
            | Operand::Address(..)
            | Operand::Tensor(..)
            | Operand::Pair(..)
            | Operand::Not(_) => return Ok(None),
        };
        Ok(Some(match ty.size() {
            0 => self.truth(bits != 0),
            1 => self.word_constant(bits as u8 as u32),
            2 => self.word_constant(bits as u16 as u32),
            4 => self.word_constant(bits as u32),
            8 => self.long_constant(bits),
            _ => return Err(Error::at(line, "operands of 128 bits are not supported")),
        }))
    }

    /// The bank and register of an operand that is read, whose register may be wider than the type.
    pub(super) fn read_any(&mut self, operand: &Operand, ty: Type, line: u32) -> Result<(Bank, Reg), Error> {
        if let Some(register) = self.number(operand, ty, line)? {
            return Ok((bank_of(ty).unwrap_or(Bank::Long), register));
        }
        match operand {
            Operand::Name(name) => {
                if let Some((bank, register, _)) = self.declared(name) {
                    return Ok((bank, register));
                }
                if name.starts_with('%') {
                    return Ok((Bank::Word, self.special(name, line)?));
                }
                Ok((Bank::Long, self.symbol(name, 0, line)?))
            }
            Operand::Offset(name, offset) => Ok((Bank::Long, self.symbol(name, *offset, line)?)),
            Operand::Integer(_)
            | Operand::Single(_)
            | Operand::Double(_)
            | Operand::Vector(_)
            | Operand::List(_)
            | Operand::Address(..)
            | Operand::Tensor(..)
            | Operand::Pair(..)
            | Operand::Not(_) => Err(Error::at(line, format!("the operand {operand:?} is not supported here"))),
        }
    }

    /// A register that holds the address of a name.
    fn symbol(&mut self, name: &str, offset: i64, line: u32) -> Result<Reg, Error> {
        if let Some(at) = self.scopes.iter().rev().find_map(|scope| scope.locals.get(name)).copied() {
            let at = at.wrapping_add_signed(offset as i32);
            if let Some(register) = self.locals.get(&at) {
                return Ok(*register);
            }
            let register = self.fresh(Bank::Long);
            self.locals.insert(at, register);
            self.function.local_addresses.push((register, at));
            return Ok(register);
        }
        let Some(address) = self.symbols.address(&self.source.name, name) else {
            return Err(Error::at(line, format!("`{name}` is not defined")));
        };
        Ok(self.long_constant(address.wrapping_add_signed(offset)))
    }

    /// The register of an operand that is read, in the bank of its type. A word is also read as a long operand, such
    /// as a special register, and the low half of a long register as a word.
    pub(super) fn read(&mut self, operand: &Operand, ty: Type, line: u32) -> Result<Reg, Error> {
        let (bank, register) = self.read_any(operand, ty, line)?;
        let wanted = bank_of(ty).ok_or_else(|| Error::at(line, "operands of 128 bits are not supported"))?;
        if bank == wanted {
            return Ok(register);
        }
        Err(Error::at(line, format!("the register of {operand:?} has another size than the instruction")))
    }

    /// The bank and register of a result. `_` is the sink.
    pub(super) fn write_any(&mut self, operand: &Operand, ty: Type, line: u32) -> Result<(Bank, Reg), Error> {
        let Operand::Name(name) = operand else {
            return Err(Error::at(line, format!("{operand:?} is no register")));
        };
        if name == "_" {
            return Ok((bank_of(ty).unwrap_or(Bank::Long), super::table::SINK));
        }
        let found = self.declared(name).map(|(bank, register, _)| (bank, register));
        found.ok_or_else(|| Error::at(line, format!("the register `{name}` is not declared")))
    }

    /// The register of a result in the bank of its type.
    pub(super) fn write(&mut self, operand: &Operand, ty: Type, line: u32) -> Result<Reg, Error> {
        let (bank, register) = self.write_any(operand, ty, line)?;
        if Some(bank) == bank_of(ty) {
            return Ok(register);
        }
        Err(Error::at(line, format!("the register of {operand:?} has another size than the instruction")))
    }

    /// A predicate operand, which may be negated.
    pub(super) fn predicate(&mut self, operand: &Operand, line: u32) -> Result<Vote, Error> {
        let (operand, negated) = if let Operand::Not(inner) = operand { (&**inner, true) } else { (operand, false) };
        Ok(Vote { p: self.read(operand, Type::Pred, line)?, negated })
    }

    /// Appends an instruction.
    pub(super) fn push(&mut self, source: &Source, operation: Operation, class: Class) -> Result<(), Error> {
        let guard = match &source.guard {
            Some((name, negated)) => {
                Some(Vote { p: self.read(&Operand::Name(name.clone()), Type::Pred, source.line)?, negated: *negated })
            }
            None => None,
        };
        self.function.instructions.push(Instruction { operation, guard, line: source.line, location: 0, class });
        Ok(())
    }

    /// Appends a branch.
    pub(super) fn push_branch(&mut self, source: &Source, label: &str) -> Result<(), Error> {
        let scope = self.scope().number;
        self.branches.push((self.function.instructions.len(), label.to_owned(), scope));
        self.push(source, Operation::Branch(0), Class::Control)
    }

    fn instruction(&mut self, source: &Source) -> Result<(), Error> {
        let known = arithmetic::decode(self, source)?
            || float::decode(self, source)?
            || convert::decode(self, source)?
            || asynchronous::decode(self, source)?
            || memory::decode(self, source)?
            || matrix::decode(self, source)?
            || warpgroup::decode(self, source)?
            || calls::decode(self, source)?
            || collectives::decode(self, source)?;
        if known { Ok(()) } else { Err(unsupported(source)) }
    }

    fn finish(mut self) -> Result<Function, Error> {
        for (at, label, scope) in &self.branches {
            let mut next = Some(*scope);
            let mut target = None;
            while let (Some(number), None) = (next, target) {
                target = self.labels[number].at.get(label);
                next = self.labels[number].parent;
            }
            let Some(target) = target else {
                return Err(Error::at(self.function.instructions[*at].line, format!("there is no label `{label}`")));
            };
            self.function.instructions[*at].operation = Operation::Branch(*target as u32);
        }
        let line = self.source.line;
        let last = Instruction {
            operation: Operation::Return,
            guard: None,
            line,
            location: self.function.instructions.last().map_or(0, |last| last.location),
            class: Class::Control,
        };
        // A label may be after the last instruction.
        self.function.instructions.push(last);
        self.function.local_size = self.function.local_size.next_multiple_of(16);
        contract::contract(&mut self.function);
        uniform::mark(&mut self.function);
        graph::blocks(&mut self.function);
        Ok(self.function)
    }
}

fn layout_param(at: &mut u32, variable: &Variable) -> Slot {
    let offset = at.next_multiple_of(variable.align.max(variable.ty.size()).max(1));
    *at = offset + variable.size();
    Slot { offset, size: variable.size(), is_pointer: variable.is_pointer }
}

/// The error for a form that the simulator lacks.
pub(super) fn unsupported(source: &Source) -> Error {
    Error::at(source.line, format!("`{}` is not supported", source.form()))
}
