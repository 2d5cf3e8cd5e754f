//! Notebooks: joins the Python cells into one source text. IPython-only syntax is replaced by blanks byte for byte, so
//! offsets in the joined text map to offsets in the cells.

use std::{path::Path, sync::Arc};

use serde_json::Value;
use weft_compiler::{
    source::{SourceFile, Span},
    syntax::parse_module,
};

use crate::report::{Report, Stop};

/// A cell with Python code.
#[derive(Debug)]
pub(crate) struct Cell {
    /// Its number among all cells of the notebook, from 1.
    pub(crate) number: u32,
    /// Its source, as the user wrote it.
    pub(crate) text: String,
    /// The offset of its first byte in the joined text.
    pub(crate) start: usize,
}

/// A notebook's cells with Python.
#[derive(Debug)]
pub(crate) struct Notebook {
    /// The file's path for messages.
    pub(crate) name: String,
    pub(crate) cells: Vec<Cell>,
    /// The joined text: all cells, one after the other.
    pub(crate) text: String,
}

/// Whether a path names a notebook.
pub(crate) fn is_notebook(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "ipynb")
}

impl Notebook {
    /// Reads a notebook's bytes. Cells that are not valid Python are added to the report and blanked.
    ///
    /// # Errors
    ///
    /// The reason, if the file is not a notebook.
    pub(crate) fn read(path: &Path, bytes: &[u8], report: &mut Report) -> Result<Self, Stop> {
        let name = path.display().to_string();
        let no_notebook = |why: &str| Stop::Usage(format!("{name} is not a notebook that weft can read: {why}"));
        let json: Value = serde_json::from_slice(bytes).map_err(|error| no_notebook(&error.to_string()))?;
        let cells = json.get("cells").and_then(Value::as_array).ok_or_else(|| {
            let why = "it has no list `cells`: open it with Jupyter and save it in format 4";
            no_notebook(why)
        })?;
        let metadata = |keys: [&str; 2]| json.get("metadata")?.get(keys[0])?.get(keys[1])?.as_str();
        let language = metadata(["language_info", "name"]).or(metadata(["kernelspec", "language"])).unwrap_or("python");
        let mut notebook = Self { name, cells: Vec::new(), text: String::new() };
        if !matches!(language, "python" | "ipython" | "python3") {
            return Ok(notebook);
        }
        for (number, cell) in (1..).zip(cells) {
            if cell.get("cell_type").and_then(Value::as_str) == Some("code") {
                notebook.add(number, source_of(cell), report);
            }
        }
        Ok(notebook)
    }

    fn add(&mut self, number: u32, text: String, report: &mut Report) {
        let mut python = without_magics(&text);
        let source = SourceFile::new(self.shown(number), text.as_str());
        if let Err(fault) = parse_module(&SourceFile { text: python.clone(), ..source.clone() }, 0) {
            report.add_in(fault, source);
            python = blank(&python);
        }
        report.name_cell(self.shown(number), &self.name, number);
        self.cells.push(Cell { number, text, start: self.text.len() });
        self.text += &python;
        self.text.push('\n');
    }

    /// The display name of a cell.
    pub(crate) fn shown(&self, number: u32) -> String {
        format!("{}:cell {number}", self.name)
    }

    /// The cell that contains a span of the joined text, as a separate file, and the span within that cell.
    pub(crate) fn location(&self, span: Span) -> Option<(Arc<SourceFile>, Span)> {
        let after = self.cells.partition_point(|cell| cell.start <= span.start as usize);
        let cell = self.cells.get(after.checked_sub(1)?)?;
        let within = |offset: u32| (offset as usize).saturating_sub(cell.start).min(cell.text.len()) as u32;
        let file = SourceFile::new(self.shown(cell.number), cell.text.as_str());
        Some((file.into(), Span { start: within(span.start), end: within(span.end), ..span }))
    }
}

/// A cell's source. The format stores it as one string or as a list of lines.
fn source_of(cell: &Value) -> String {
    match cell.get("source") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => String::new(),
    }
}

/// Replaces every byte except line feeds with a blank.
fn blank(text: &str) -> String {
    text.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect()
}

/// Cell magics whose cell body is Python.
const PYTHON_CELLS: [&str; 4] = ["time", "timeit", "capture", "prun"];

/// Removes IPython-only syntax from a cell: magics (`%matplotlib inline`), shell commands (`!pip install x`), and help
/// requests (`cuda.grid?`). A removed statement becomes the expression statement `0`, so that an enclosing block is not
/// empty.
fn without_magics(text: &str) -> String {
    if let Some(magic) = text.trim_start().strip_prefix("%%") {
        let name = magic.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
        if !PYTHON_CELLS.contains(&name) {
            return blank(text);
        }
    }
    let mut scan = Scan::default();
    let mut lines = Vec::new();
    let mut continues = false;
    for line in text.split('\n') {
        let replaced = if continues {
            continues = line.ends_with('\\');
            Some(blank(line))
        } else if scan.is_between_statements() {
            magic(line).inspect(|_| continues = line.ends_with('\\'))
        } else {
            None
        };
        let line = replaced.unwrap_or_else(|| line.to_owned());
        scan.line(&line);
        lines.push(line);
    }
    lines.join("\n")
}

/// The replacement for a line of IPython-only syntax. `None` for a line of Python.
fn magic(line: &str) -> Option<String> {
    let code = line.trim_start();
    let indent = line.len() - code.len();
    let trimmed = code.trim_end();
    let is_help = trimmed.starts_with('?') || (trimmed.ends_with('?') && !trimmed.contains(['#', '"', '\'']));
    let (at, word) = if code.starts_with(['%', '!']) || is_help {
        (indent, '0')
    } else {
        // `files = !ls`, `out = %time f()`: the value depends on running the cell, so it becomes the undefined name
        // `_`.
        let equals = line.find('=')?;
        let target = line.get(..equals)?.trim();
        let is_target = target.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ',' | ' ' | '.'));
        let rest = line.get(equals + 1..)?;
        let value = rest.trim_start();
        if !is_target || target.is_empty() || !value.starts_with(['%', '!']) || value.starts_with("!=") {
            return None;
        }
        (line.len() - value.len(), '_')
    };
    let (kept, gone) = line.split_at_checked(at)?;
    Some(format!("{kept}{word}{}", " ".repeat(gone.len().saturating_sub(1))))
}

/// Tracks whether the next line begins a statement: no open bracket, open string literal or backslash continues onto
/// it.
#[derive(Debug, Default)]
struct Scan {
    brackets: usize,
    /// The quote of an open triple-quoted string.
    quote: Option<[u8; 3]>,
    backslash: bool,
}

impl Scan {
    fn is_between_statements(&self) -> bool {
        self.brackets == 0 && self.quote.is_none() && !self.backslash
    }

    /// Reads one line.
    fn line(&mut self, line: &str) {
        let bytes = line.as_bytes();
        let mut at = 0;
        self.backslash = false;
        while let Some(&byte) = bytes.get(at) {
            let rest = bytes.get(at..).unwrap_or_default();
            if let Some(quote) = self.quote {
                if byte == b'\\' {
                    at += 1;
                } else if rest.starts_with(&quote) {
                    self.quote = None;
                    at += 2;
                }
                at += 1;
                continue;
            }
            match byte {
                b'#' => return,
                b'(' | b'[' | b'{' => self.brackets += 1,
                b')' | b']' | b'}' => self.brackets = self.brackets.saturating_sub(1),
                b'\\' if at + 1 == bytes.len() => self.backslash = true,
                b'"' | b'\'' if rest.starts_with(&[byte; 3]) => {
                    self.quote = Some([byte; 3]);
                    at += 2;
                }
                b'"' | b'\'' => at += end_of_text(rest, byte),
                _ => {}
            }
            at += 1;
        }
    }
}

/// The offset of the closing quote of a single-line string literal that begins at `text[0]`.
fn end_of_text(text: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' => at += 1,
            _ if byte == quote => return at,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::{Scan, without_magics};

    #[test]
    fn what_only_ipython_understands_is_blanked_in_place() {
        for (text, expected) in [
            ("%matplotlib inline\nx = 1", "0                 \nx = 1"),
            ("if x:\n    !pip install é\ny = 1", "if x:\n    0              \ny = 1"),
            ("files = !ls\nt = %time f()", "files = _  \nt = _        "),
            ("cuda.grid?\n?cuda", "0         \n0    "),
            ("!a \\\n  b\nx = 1", "0   \n   \nx = 1"),
            ("%%time\nx = 1", "0     \nx = 1"),
            ("%%bash\nls\nx", "      \n  \n "),
        ] {
            assert_eq!(without_magics(text), expected);
            assert_eq!(expected.len(), text.len());
        }
    }

    #[test]
    fn python_stays_as_it_is() {
        for text in [
            "x = (a\n     % b)\n",
            "t = \"\"\"\n%magic\n!x\n\"\"\"\n",
            "y = a \\\n    % b\n",
            "s = 'what?'\n# is it?\nz = x != y\n",
            "d = {'a': \"(\",\n     'b': '%'}\n",
        ] {
            assert_eq!(without_magics(text), text);
        }
    }

    #[test]
    fn a_scan_knows_where_statements_begin() {
        let mut scan = Scan::default();
        for (line, between) in [("f(", false), ("'(' \"\\\"\" # )", false), (")", true), ("'''a", false), ("'''", true)]
        {
            scan.line(line);
            assert_eq!(scan.is_between_statements(), between, "{line}");
        }
    }
}
