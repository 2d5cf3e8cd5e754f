//! `weft emit --emit html`: a page with the Python source and, beside each line, its PTX.

use std::{collections::BTreeMap, fmt::Write as _, fs};

const STYLE: &str = "
:root { color-scheme: light dark; --back: #fff; --text: #1b1b1b; --soft: #5b5b5b; --rule: #d8d8d8; --link: #0b57a4 }
@media (prefers-color-scheme: dark) {
  :root { --back: #161616; --text: #eaeaea; --soft: #a9a9a9; --rule: #3a3a3a; --link: #8ab8f0 }
}
body { background: var(--back); color: var(--text); font: 15px/1.45 system-ui, sans-serif; margin: 1.5rem; overflow-wrap: anywhere }
h1 { font-size: 1.4rem } h2 { font-size: 1rem }
:focus-visible { outline: 3px solid var(--link) }
.scroll { overflow-x: auto }
table { border-collapse: collapse; font: .85rem/1.4 ui-monospace, monospace; width: 100% }
th { font-weight: 600; text-align: left }
th, td { border-bottom: 1px solid var(--rule); overflow-wrap: normal; padding: .1rem .6rem; vertical-align: top; white-space: pre }
td:first-child { color: var(--soft); text-align: right }";

/// The lines of one source file that have code, with their instructions in order.
type Code<'a> = BTreeMap<u32, Vec<&'a str>>;

/// The page of a module with line tables.
pub(crate) fn page(title: &str, ptx: &str) -> String {
    let title = escape(title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><title>{title}</title><style>{STYLE}</style></head><body>\n\
         <h1>{title}</h1>\n"
    );
    for (file, code) in by_file(ptx) {
        let source = fs::read_to_string(file).unwrap_or_default();
        let lines: Vec<&str> = source.lines().collect();
        let file = escape(file);
        let _ = write!(
            page,
            "<h2>{file}</h2>\n<div class=\"scroll\" role=\"region\" aria-label=\"{file}\" tabindex=\"0\"><table>\n\
             <thead><tr><th>line</th><th>Python</th><th>PTX</th></tr></thead><tbody>\n"
        );
        let (Some(first), Some(last)) = (code.keys().next(), code.keys().next_back()) else { continue };
        for line in *first..=*last {
            let text = lines.get((line as usize).wrapping_sub(1)).copied().unwrap_or_default();
            let instructions = code.get(&line).map(|found| found.join("\n")).unwrap_or_default();
            let (text, instructions) = (escape(text), escape(&instructions));
            let _ = writeln!(page, "<tr id=\"line{line}\"><td>{line}</td><td>{text}</td><td>{instructions}</td></tr>");
        }
        page.push_str("</tbody></table></div>\n");
    }
    page.push_str("</body></html>\n");
    page
}

/// The instructions of each line of each file, the file of the first instruction first.
fn by_file(ptx: &str) -> Vec<(&str, Code<'_>)> {
    let files: BTreeMap<u32, &str> = ptx.lines().filter_map(file).collect();
    let mut found: Vec<(&str, Code<'_>)> = Vec::new();
    let mut location = None;
    for line in ptx.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix(".loc") {
            let mut numbers = rest.split_whitespace().map_while(|word| word.parse::<u32>().ok());
            // Line 0 is code of no line.
            location = numbers.next().zip(numbers.next()).filter(|(_, line)| *line != 0);
        } else if line.starts_with(".visible") || line.starts_with(".func") || line == "}" {
            location = None;
        } else if let Some((file, number)) = location
            && line.ends_with(';')
            && !line.starts_with('.')
            && let Some(file) = files.get(&file)
        {
            let at = found.iter().position(|(known, _)| known == file).unwrap_or_else(|| {
                found.push((file, Code::new()));
                found.len() - 1
            });
            found[at].1.entry(number).or_default().push(line);
        }
    }
    found
}

/// The number and the path of a `.file` directive.
fn file(line: &str) -> Option<(u32, &str)> {
    let (number, path) = line.trim().strip_prefix(".file")?.trim_start().split_once(char::is_whitespace)?;
    let path = path.trim_start().strip_prefix('"')?;
    Some((number.parse().ok()?, path.split_once('"')?.0))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = r#"
.visible .entry f(
	.param .u64 f_param_0
)
{
	.reg .b32 %r<3>;
	.loc	1 7 0
	mov.u32 	%r1, %tid.x;
	.loc	2 3 9
	add.s32 	%r2, %r1, 1;
	.loc	1 5 0
	@%p1 bra 	$L1;
	.loc	1 0 0
	ret;
}
	.file	1 "a<b>.py"
	.file	2 "lib.py"
"#;

    #[test]
    fn instructions_are_at_their_lines() {
        let found = by_file(PTX);
        let [(first, code), (second, other)] = found.as_slice() else { panic!("two files: {found:?}") };
        assert_eq!((*first, *second), ("a<b>.py", "lib.py"));
        assert_eq!(code.keys().copied().collect::<Vec<_>>(), [5, 7]);
        assert_eq!(code[&7], ["mov.u32 \t%r1, %tid.x;"]);
        assert_eq!(other[&3], ["add.s32 \t%r2, %r1, 1;"]);
    }

    #[test]
    fn a_page_escapes_what_it_shows() {
        let page = page("f(int32) <for> sm_90", PTX);
        assert!(page.contains("<h1>f(int32) &lt;for&gt; sm_90</h1>"));
        assert!(page.contains("<h2>a&lt;b&gt;.py</h2>"));
        assert!(page.contains("<tr id=\"line5\"><td>5</td><td></td><td>@%p1 bra \t$L1;</td></tr>"));
        assert!(!page.contains("ret;"));
    }
}
