//! Parses the first line of a test's Python file: `# weft: sig = "void(float32[:])", targets = ["sm_75"], show =
//! ["ir"]`.
//!
//! All keys are optional. `sig`: the signature to compile for; default: the decorator's. `targets`: the targets to
//! compile for; default: `sm_80`. `show`: the stages with a snapshot. `without`: a target that is skipped: `host`, or
//! `sm_80` for a kernel that is only for the targets that it names.
//! `assume`: the assumptions of the snapshots, as for `weft emit --assume`. `block`: the likely block of the plans, as
//! for `weft emit --block`. `abi`: the ABI for other programs: `c` or `numba` for a device function, and `kernel` for a
//! kernel. `adjoint`: compile the adjoint kernel, for these parameters.

/// The parsed line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Header {
    pub(crate) sig: Option<String>,
    pub(crate) targets: Vec<String>,
    pub(crate) show: Vec<String>,
    pub(crate) without: Vec<String>,
    pub(crate) assumptions: Vec<String>,
    pub(crate) block: Option<String>,
    pub(crate) abi: Option<String>,
    pub(crate) adjoint: Vec<String>,
}

impl Header {
    /// Parses the first line of a file. A missing header and an unknown key are errors.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let first = text.lines().next().unwrap_or("");
        let mut rest = first.strip_prefix("# weft:").ok_or("the first line is no `# weft:` header")?.trim();
        let mut header = Self::default();
        while !rest.is_empty() {
            let (key, value) = rest.split_once('=').ok_or_else(|| format!("no `=` in `{rest}`"))?;
            let (values, after) = values(value.trim_start())?;
            match key.trim() {
                "sig" => header.sig = values.into_iter().next(),
                "targets" => header.targets = values,
                "show" => header.show = values,
                "without" => header.without = values,
                "assume" => header.assumptions = values,
                "block" => header.block = values.into_iter().next(),
                "adjoint" => header.adjoint = values,
                "abi" => header.abi = values.into_iter().next(),
                other => return Err(format!("there is no key `{other}`")),
            }
            rest = after.trim_start().trim_start_matches(',').trim_start();
        }
        if header.targets.is_empty() {
            header.targets.push("sm_80".to_owned());
        }
        Ok(header)
    }

    /// Whether the kernel is only for the targets that it names.
    pub(crate) fn is_limited(&self) -> bool {
        self.needs_suffix() || self.without.iter().any(|target| target == "sm_80")
    }

    /// Whether the kernel is only for targets with a suffix, such as `sm_90a`.
    pub(crate) fn needs_suffix(&self) -> bool {
        self.targets.iter().all(|target| target.ends_with(['a', 'f']))
    }
}

/// Parses `"a"` or `["a", "b"]` at the start of a text. Returns the strings and the rest of the text.
fn values(text: &str) -> Result<(Vec<String>, &str), String> {
    let Some(mut rest) = text.strip_prefix('[') else {
        let (value, rest) = string(text)?;
        return Ok((vec![value], rest));
    };
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(after) = rest.strip_prefix(']') {
            return Ok((found, after));
        }
        let (value, after) = string(rest)?;
        found.push(value);
        rest = after;
    }
}

fn string(text: &str) -> Result<(String, &str), String> {
    let inside = text.strip_prefix('"').ok_or_else(|| format!("no string at `{text}`"))?;
    let (value, rest) = inside.split_once('"').ok_or_else(|| format!("no end of the string at `{text}`"))?;
    Ok((value.to_owned(), rest))
}

#[test]
fn a_header_is_read() {
    let text = "# weft: sig = \"void(float32[:], int32)\", targets = [\"sm_75\", \"host\"], show = [\"ir\"]\nrest";
    let header = Header::read(text).expect("it is a header");
    assert_eq!(header.sig.as_deref(), Some("void(float32[:], int32)"));
    assert_eq!(header.targets, ["sm_75", "host"]);
    assert_eq!(header.show, ["ir"]);
    assert_eq!(Header::read("# weft:\n").expect("keys may be missing").targets, ["sm_80"]);
    assert!(Header::read("from weft import cuda\n").is_err());
    assert!(Header::read("# weft: taget = \"sm_80\"\n").is_err());
    assert!(Header::read("# weft: sig = void()\n").is_err());
}
