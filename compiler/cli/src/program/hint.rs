//! Comments that give a kernel's signature to the command: `# weft: sig = "void(float32[:], int32)"` directly above the
//! decorator. Several comments give several signatures. They do not affect launches, because Python ignores comments.

use weft_compiler::{
    diagnostic::{Code, Diagnostic},
    request::Signature,
    signature::parse_signature,
    source::{SourceFile, Span},
    syntax::ast,
};

/// The prefix of such a comment.
const MARK: &str = "# weft:";

/// The signatures of the comments above a function.
///
/// # Errors
///
/// `E0301` at a comment without a valid signature.
pub(super) fn signatures(
    source: &SourceFile,
    file: u32,
    function: &ast::Function,
) -> Result<Vec<Signature>, Diagnostic> {
    let starts = function.decorators.iter().map(|decorator| decorator.span.start).chain([function.span.start]);
    let above = source.text.get(..starts.min().unwrap_or_default() as usize).unwrap_or_default();
    let mut end = above.rfind('\n').unwrap_or_default();
    let mut found = Vec::new();
    while let Some(rest) = above.get(..end) {
        let start = rest.rfind('\n').map_or(0, |at| at + 1);
        let line = rest.get(start..).unwrap_or_default();
        let comment = line.trim();
        if !comment.starts_with('#') {
            break;
        }
        if let Some(hint) = comment.strip_prefix(MARK) {
            found.push(signature(hint).map_err(|reason| {
                let indent = line.len() - line.trim_start().len();
                let span = Span { file, start: (start + indent) as u32, end: (start + indent + comment.len()) as u32 };
                Diagnostic::error(Code::BadSignature, span, format!("this comment names no signature: {reason}"))
                    .help("write `# weft: sig = \"void(float32[:], int32)\"`")
            })?);
        }
        if start == 0 {
            break;
        }
        end = start - 1;
    }
    found.reverse();
    Ok(found)
}

/// Parses ` sig = "…"`.
fn signature(hint: &str) -> Result<Signature, String> {
    let text = hint.trim().strip_prefix("sig").and_then(|rest| rest.trim_start().strip_prefix('='));
    let text = text.ok_or("it must begin with `sig =`")?.trim();
    let quoted = ['"', '\''].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote));
    parse_signature(quoted.ok_or("the signature must be in quotes")?).map_err(|fault| fault.message)
}
