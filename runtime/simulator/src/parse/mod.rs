//! Reads PTX as LLVM writes it, with the inline PTX of users, into a tree. A form that is not known is an error.

mod inlined;
mod lex;
mod tree;

pub use inlined::CallSite;
use lex::{Spanned, Token};
pub use tree::Space;
pub(crate) use tree::{FunctionTree, ModuleTree, Operand, Source, Statement, Type, Value, Variable};

use crate::error::Error;

/// Parses a module.
pub(crate) fn parse(text: &str) -> Result<ModuleTree, Error> {
    let tree = ModuleTree { calls: inlined::calls(text), ..ModuleTree::default() };
    let mut parser = Parser { tokens: lex::tokens(text)?, at: 0, tree };
    while parser.at < parser.tokens.len() {
        parser.item()?;
    }
    Ok(parser.tree)
}

struct Parser {
    tokens: Vec<Spanned>,
    at: usize,
    tree: ModuleTree,
}

impl Parser {
    fn line(&self) -> u32 {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(0, |token| token.line)
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|spanned| &spanned.token)
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T, Error> {
        Err(Error::at(self.line(), message))
    }

    fn word(&self) -> &str {
        if let Some(Token::Word(word)) = self.peek() { word } else { "" }
    }

    fn take_word(&mut self) -> Result<String, Error> {
        let Some(Token::Word(word)) = self.peek().cloned() else { return self.error("a name is missing") };
        self.at += 1;
        Ok(word)
    }

    fn is_mark(&self, mark: char) -> bool {
        self.peek() == Some(&Token::Mark(mark))
    }

    fn accept(&mut self, mark: char) -> bool {
        let found = self.is_mark(mark);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, mark: char) -> Result<(), Error> {
        if self.accept(mark) { Ok(()) } else { self.error(format!("`{mark}` is missing")) }
    }

    fn integer(&mut self) -> Result<u64, Error> {
        let negative = self.accept('-');
        let Some(Token::Integer(value)) = self.peek().cloned() else { return self.error("a number is missing") };
        self.at += 1;
        Ok(if negative { value.wrapping_neg() } else { value })
    }

    /// Skips the rest of a directive that ends with its line.
    fn skip_line(&mut self) {
        let line = self.line();
        while self.at < self.tokens.len() && self.tokens[self.at].line == line {
            self.at += 1;
        }
    }

    fn item(&mut self) -> Result<(), Error> {
        match self.word() {
            ".version" | ".address_size" => self.skip_line(),
            ".target" => self.target()?,
            ".file" => self.file()?,
            ".section" => self.section()?,
            ".visible" | ".extern" | ".weak" | ".common" => self.at += 1,
            ".entry" | ".func" => self.function()?,
            ".global" | ".const" | ".shared" => {
                let variables = self.variables()?;
                self.tree.variables.extend(variables);
            }
            ".pragma" | ".alias" => return self.error(format!("`{}` is not known here", self.word())),
            other => {
                let other = other.to_owned();
                return self.error(format!("`{other}` is not known at the level of a module"));
            }
        }
        Ok(())
    }

    /// `.target sm_90a, debug`: the compute capability.
    fn target(&mut self) -> Result<(), Error> {
        self.at += 1;
        let name = self.word().to_owned();
        let digits = name.strip_prefix("sm_").map(|digits| digits.trim_end_matches(|c: char| c.is_ascii_lowercase()));
        let Some(number) = digits.and_then(|digits| digits.parse::<u32>().ok()) else {
            return self.error(format!("`{name}` is not known as a target"));
        };
        self.tree.compute_capability = (number / 10, number % 10);
        self.skip_line();
        Ok(())
    }

    fn file(&mut self) -> Result<(), Error> {
        self.at += 1;
        let number = self.integer()? as u32;
        let Some(Token::Text(name)) = self.peek().cloned() else { return self.error("the file's name is missing") };
        self.tree.files.insert(number, name);
        self.skip_line();
        Ok(())
    }

    /// Skips a section of debug information.
    fn section(&mut self) -> Result<(), Error> {
        while !self.is_mark('{') {
            if self.at >= self.tokens.len() {
                return self.error("the section has no contents");
            }
            self.at += 1;
        }
        while !self.accept('}') {
            if self.at >= self.tokens.len() {
                return self.error("the section has no end");
            }
            self.at += 1;
        }
        Ok(())
    }

    fn align(&mut self) -> Result<Option<u32>, Error> {
        if self.word() != ".align" {
            return Ok(None);
        }
        self.at += 1;
        Ok(Some(self.integer()? as u32))
    }

    /// `.space [.align n] .type name[n] = {...}, ...;`
    fn variables(&mut self) -> Result<Vec<Variable>, Error> {
        let mut found = vec![self.variable()?];
        while self.accept(',') {
            let (space, ty, align) = (found[0].space, found[0].ty, found[0].align);
            found.push(self.declarator(space, ty, align)?);
        }
        self.expect(';')?;
        Ok(found)
    }

    fn variable(&mut self) -> Result<Variable, Error> {
        let word = self.take_word()?;
        let Some(space) = Space::parse(word.trim_start_matches('.')) else {
            return self.error(format!("`{word}` is not a state space"));
        };
        let mut align = self.align()?;
        let word = self.take_word()?;
        let Some(ty) = Type::parse(word.trim_start_matches('.')) else {
            return self.error(format!("`{word}` is not a type of variables"));
        };
        let is_pointer = self.word() == ".ptr";
        if is_pointer {
            self.at += 1;
            if Space::parse(self.word().trim_start_matches('.')).is_some() {
                self.at += 1;
            }
            self.align()?;
        }
        align = align.or(self.align()?);
        let variable = self.declarator(space, ty, align.unwrap_or(ty.size()))?;
        Ok(Variable { is_pointer, ..variable })
    }

    fn declarator(&mut self, space: Space, ty: Type, align: u32) -> Result<Variable, Error> {
        let line = self.line();
        let name = self.take_word()?;
        let mut count = Some(1);
        if self.accept('[') {
            count = if self.is_mark(']') { None } else { Some(self.integer()? as u32) };
            self.expect(']')?;
        }
        let values = if self.accept('=') { self.values()? } else { Vec::new() };
        Ok(Variable { space, name, align, ty, count, values, is_pointer: false, line })
    }

    fn values(&mut self) -> Result<Vec<Value>, Error> {
        if self.accept('{') {
            let mut found = Vec::new();
            while !self.accept('}') {
                found.extend(self.values()?);
                if !self.is_mark('}') {
                    self.expect(',')?;
                }
            }
            return Ok(found);
        }
        let value = match self.operand()? {
            Operand::Integer(bits) | Operand::Double(bits) => Value::Bits(bits),
            Operand::Single(bits) => Value::Bits(u64::from(bits)),
            Operand::Name(name) => {
                if self.accept('(') {
                    let inner = self.take_word()?;
                    self.expect(')')?;
                    return self.error(format!("`{name}({inner})` as an initial value is not known"));
                }
                Value::Symbol(name, 0)
            }
            Operand::Offset(name, offset) => Value::Symbol(name, offset),
            other @ (Operand::Vector(_)
            | Operand::List(_)
            | Operand::Address(..)
            | Operand::Tensor(..)
            | Operand::Pair(..)
            | Operand::Not(_)) => return self.error(format!("`{other:?}` as an initial value is not known")),
        };
        Ok(vec![value])
    }

    fn params(&mut self) -> Result<Vec<Variable>, Error> {
        let mut found = Vec::new();
        if !self.accept('(') {
            return Ok(found);
        }
        while !self.accept(')') {
            found.push(self.variable()?);
            if !self.is_mark(')') {
                self.expect(',')?;
            }
        }
        Ok(found)
    }

    fn function(&mut self) -> Result<(), Error> {
        let line = self.line();
        let is_kernel = self.take_word()? == ".entry";
        let returns = if is_kernel { Vec::new() } else { self.params()? };
        let name = self.take_word()?;
        let params = self.params()?;
        loop {
            match self.word() {
                ".noreturn" => self.at += 1,
                ".maxntid" | ".reqntid" | ".minnctapersm" | ".maxnreg" | ".maxnctapersm" | ".explicitcluster"
                | ".reqnctapercluster" | ".maxclusterrank" => self.skip_line(),
                ".pragma" => {
                    self.at += 2;
                    self.expect(';')?;
                }
                _ => break,
            }
        }
        let body = if self.accept(';') { None } else { Some(self.body()?) };
        self.tree.functions.push(FunctionTree { name, is_kernel, returns, params, body, line });
        Ok(())
    }

    fn body(&mut self) -> Result<Vec<Statement>, Error> {
        self.expect('{')?;
        let (mut found, mut depth) = (Vec::new(), 1);
        while depth > 0 {
            if self.at >= self.tokens.len() {
                return self.error("the function has no end");
            }
            if self.accept('{') {
                depth += 1;
                found.push(Statement::Open);
            } else if self.accept('}') {
                depth -= 1;
                found.push(Statement::Close);
            } else if !self.accept(';') {
                self.statement(&mut found)?;
            }
        }
        found.pop();
        Ok(found)
    }

    fn statement(&mut self, found: &mut Vec<Statement>) -> Result<(), Error> {
        match self.word() {
            ".reg" => found.push(self.registers()?),
            ".param" | ".shared" | ".local" | ".global" | ".const" => {
                let variables = self.variables()?;
                found.extend(variables.into_iter().map(Statement::Variable));
            }
            ".loc" => {
                self.at += 1;
                let [file, line, column] = [self.integer()?, self.integer()?, self.integer()?].map(|n| n as u32);
                self.skip_line_of_previous();
                found.push(Statement::Location { file, line, column });
            }
            ".file" => self.file()?,
            ".pragma" => {
                self.at += 2;
                self.expect(';')?;
            }
            word if word.starts_with('.') => {
                let word = word.to_owned();
                return self.error(format!("`{word}` is not known in a function"));
            }
            _ => {
                let is_label = matches!(self.tokens.get(self.at + 1).map(|s| &s.token), Some(Token::Mark(':')));
                if is_label {
                    let name = self.take_word()?;
                    self.expect(':')?;
                    found.push(Statement::Label(name));
                } else {
                    found.push(Statement::Instruction(self.instruction()?));
                }
            }
        }
        Ok(())
    }

    /// Skips what else is on the line of the last token.
    fn skip_line_of_previous(&mut self) {
        let line = self.tokens[self.at - 1].line;
        while self.at < self.tokens.len() && self.tokens[self.at].line == line {
            self.at += 1;
        }
    }

    /// `.reg .type name, name<n>;`
    fn registers(&mut self) -> Result<Statement, Error> {
        self.at += 1;
        let word = self.take_word()?;
        let Some(ty) = Type::parse(word.trim_start_matches('.')) else {
            return self.error(format!("registers of type `{word}` are not known"));
        };
        let mut names = Vec::new();
        loop {
            let name = self.take_word()?;
            if self.accept('<') {
                let count = self.integer()?;
                self.expect('>')?;
                names.extend((0..count).map(|number| format!("{name}{number}")));
            } else {
                names.push(name);
            }
            if self.accept(';') {
                return Ok(Statement::Registers(names, ty));
            }
            self.expect(',')?;
        }
    }

    fn instruction(&mut self) -> Result<Source, Error> {
        let line = self.line();
        let mut guard = None;
        if self.accept('@') {
            let negated = self.accept('!');
            guard = Some((self.take_word()?, negated));
        }
        let opcode: Vec<_> = self.take_word()?.split('.').map(str::to_owned).collect();
        let mut operands = Vec::new();
        while !self.accept(';') {
            // The last instruction of a block of inline PTX may lack its semicolon.
            operands.push(self.operand()?);
            if !self.is_mark(';') {
                self.expect(',')?;
            }
        }
        Ok(Source { guard, opcode, operands, line })
    }

    fn operand(&mut self) -> Result<Operand, Error> {
        if self.accept('{') {
            return Ok(Operand::Vector(self.operands('}')?));
        }
        if self.accept('(') {
            return Ok(Operand::List(self.operands(')')?));
        }
        if self.accept('[') {
            let base = self.operand()?;
            let (base, offset) =
                if let Operand::Offset(name, offset) = base { (Operand::Name(name), offset) } else { (base, 0) };
            if self.accept(',') {
                let Operand::Vector(indices) = self.operand()? else {
                    return self.error("the indices of a tensor are missing");
                };
                self.expect(']')?;
                return Ok(Operand::Tensor(Box::new(Operand::Address(Box::new(base), offset)), indices));
            }
            self.expect(']')?;
            return Ok(Operand::Address(Box::new(base), offset));
        }
        if self.accept('!') {
            return Ok(Operand::Not(Box::new(self.operand()?)));
        }
        if self.accept('-') {
            let operand = self.operand()?;
            return if let Operand::Integer(value) = operand {
                Ok(Operand::Integer(value.wrapping_neg()))
            } else if let Operand::Double(bits) = operand {
                Ok(Operand::Double(bits ^ 1 << 63))
            } else {
                self.error("`-` is not before a number")
            };
        }
        let Some(token) = self.peek().cloned() else { return self.error("an operand is missing") };
        self.at += 1;
        Ok(match token {
            Token::Integer(value) => Operand::Integer(value),
            Token::Single(bits) => Operand::Single(bits),
            Token::Double(bits) => Operand::Double(bits),
            Token::Word(name) => {
                if self.accept('|') {
                    let other = self.operand()?;
                    Operand::Pair(Box::new(Operand::Name(name)), Box::new(other))
                } else if self.accept('+') || self.is_mark('-') {
                    Operand::Offset(name, self.integer()? as i64)
                } else {
                    Operand::Name(name)
                }
            }
            Token::Text(text) => return self.error(format!("the string {text:?} is no operand")),
            Token::Mark(mark) => return self.error(format!("unexpected `{mark}`")),
        })
    }

    fn operands(&mut self, end: char) -> Result<Vec<Operand>, Error> {
        let mut found = Vec::new();
        while !self.accept(end) {
            found.push(self.operand()?);
            if !self.is_mark(end) {
                self.expect(',')?;
            }
        }
        Ok(found)
    }
}
