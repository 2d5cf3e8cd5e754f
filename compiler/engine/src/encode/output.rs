//! Encodes the result of a request: the code with its listings, warnings, and the source files that they show; or
//! queries.

use std::sync::Arc;

use weft_compiler::{
    diagnostic::{Code, Diagnostic, Severity},
    pipeline::Output,
    request::{Outcome, OverloadArgument, OverloadQuery},
    source::{Origin, SourceFile, SourceMap, Span},
};

use super::{Encode, Malformed, Reader, fields, variants};

variants!(Outcome<Arc<Output>> { 0 => Made(output), 1 => Queries(queries) });
fields!(OverloadQuery { function, args });
variants!(OverloadArgument { 0 => Type(ty), 1 => Str(text) });

fields!(Output { artifact, returns, ir, llvm, asm, warnings, sources });
fields!(Diagnostic { code, severity, message, span, label, labels, notes, numba, help });
fields!(Span { file, start, end });
fields!(SourceFile { name, text, first_line, cut_columns, origin });
variants!(Severity { 0 => Error, 1 => Warning, 2 => Note });
variants!(Origin { 0 => User, 1 => Prelude });

/// Encodes a code as its number.
impl Encode for Code {
    fn write(&self, out: &mut Vec<u8>) {
        self.number().to_owned().write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::from_number(&String::read(from)?).ok_or(Malformed)
    }
}

impl Encode for SourceMap {
    fn write(&self, out: &mut Vec<u8>) {
        self.files().to_vec().write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let files = Vec::<Arc<SourceFile>>::read(from)?;
        let mut sources = Self::default();
        for (index, file) in files.iter().enumerate() {
            if sources.add(file) as usize != index {
                return Err(Malformed); // a duplicate, which would change the numbers of the others
            }
        }
        Ok(sources)
    }
}
