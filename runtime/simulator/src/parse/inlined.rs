//! The calls through which code was inlined: weft writes a number as the column of such code, and its calls as a comment.

use std::collections::BTreeMap;

/// A call, by the file and the line of the source code.
pub type CallSite = (String, u32);

/// The chain of calls of each column that is a number, the inner call first. A comment that is written in another way is
/// none of these.
pub(super) fn calls(ptx: &str) -> BTreeMap<u32, Vec<CallSite>> {
    let comments = ptx.lines().filter_map(|line| line.trim().strip_prefix("// weft: column "));
    comments.filter_map(chain).collect()
}

fn chain(comment: &str) -> Option<(u32, Vec<CallSite>)> {
    let (column, mut rest) = comment.split_once(" is inlined at ")?;
    let mut chain = Vec::new();
    while let Some(named) = rest.strip_prefix('"') {
        let (file, after) = named.split_once("\" ")?;
        let (line, more) = after.split_once(", ").unwrap_or((after, ""));
        chain.push((file.to_owned(), line.trim().parse().ok()?));
        rest = more;
    }
    Some((column.parse().ok()?, chain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_read() {
        let ptx = "\n// weft: column 32768 is inlined at \"/a, b/k.py\" 12, \"l.py\" 30\n// weft: column x\n\t// weft: column 7 is inlined at \"\" 0\nret;";
        let expected =
            [(7, vec![(String::new(), 0)]), (32768, vec![("/a, b/k.py".to_owned(), 12), ("l.py".to_owned(), 30)])];
        assert_eq!(calls(ptx), BTreeMap::from(expected));
    }
}
