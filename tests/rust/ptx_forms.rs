//! Checks the table of PTX instructions against ptxas: every form of `tests/ptx/forms.txt`, for every target and every
//! PTX ISA version that weft emits. ptxas must accept the instructions that weft accepts, and reject those that weft
//! rejects.

use std::{
    collections::BTreeSet,
    env,
    fmt::Write as _,
    fs,
    path::Path,
    process::{self, Command},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use weft_compiler::target::{SMS, Sm, needs};

use crate::{ptxas, support::read};

/// The PTX ISA versions that weft emits.
const ISAS: [(u32, u32); 22] = [
    (6, 3),
    (6, 4),
    (6, 5),
    (7, 0),
    (7, 1),
    (7, 2),
    (7, 3),
    (7, 4),
    (7, 5),
    (7, 6),
    (7, 7),
    (7, 8),
    (8, 0),
    (8, 1),
    (8, 2),
    (8, 3),
    (8, 4),
    (8, 5),
    (8, 6),
    (8, 7),
    (8, 8),
    (9, 0),
];

/// Forms for which weft requires a newer ISA version than ptxas 13.5 does.
const STRICTER: &[(&str, &str)] = &[
    // A register that contains a size looks like a predicate, which a later ISA allows here.
    ("cp.async.ca.shared.global [r0], [d0], 4, r1;", "the fourth operand"),
    // No SM supports them since ISA 6.4.
    ("shfl.bfly.b32 r0, r1, 2, 3;", "no `.sync`"),
    ("vote.all.pred p0, p1;", "no `.sync`"),
    ("vote.ballot.b32 r0, p1;", "no `.sync`"),
    // ptxas 12.9 accepts them since this ISA version.
    ("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [r0], d0, d1, r1, [r2], [r3], p0;", "`.block32` is meant"),
    ("tcgen05.mma.cta_group::1.kind::mxf4.block_scale [r0], d0, d1, r1, [r2], [r3], p0;", "`.block32` is meant"),
];

/// Expands a line to all its forms: `<a|b>` is an alternative, and `r*2` means `{r0, r1}`.
fn expand(line: &str) -> Vec<String> {
    let Some(end) = line.find('>') else { return vec![with_vectors(line)] };
    let start = line[..end].rfind('<').expect("`<` is before `>`");
    let parts = line[start + 1..end].split('|');
    parts.flat_map(|part| expand(&format!("{}{part}{}", &line[..start], &line[end + 1..]))).collect()
}

fn with_vectors(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(star) = rest.find('*') {
        let (letter, before) = (&rest[star - 1..star], &rest[..star - 1]);
        let after = &rest[star + 1..];
        let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let count: usize = after[..end].parse().expect("a number is after `*`");
        let registers: Vec<_> = (0..count).map(|index| format!("{letter}{index}")).collect();
        let _ = write!(out, "{before}{{{}}}", registers.join(", "));
        rest = &after[end..];
    }
    out + rest
}

fn forms() -> Vec<String> {
    let text = read("tests/ptx/forms.txt");
    let mut seen = BTreeSet::new();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.flat_map(expand).filter(|form| seen.insert(form.clone())).collect()
}

/// The forms that ptxas rejects for a target and an ISA version. Each is in its own kernel.
fn refused(
    ptxas: &Path,
    folder: &Path,
    sm: &Sm,
    isa: (u32, u32),
    forms: &[String],
) -> Result<BTreeSet<String>, String> {
    let mut refused = BTreeSet::new();
    let input = folder.join(format!("{}.{}.{}.ptx", sm.name, isa.0, isa.1));
    let arch = sm.name.replace("sm_", "compute_");
    let mut asked: Vec<&String> = forms.iter().collect();
    loop {
        let mut text = format!(".version {}.{}\n.target {}\n.address_size 64\n", isa.0, isa.1, sm.name);
        let n_before = text.lines().count();
        for (index, form) in asked.iter().enumerate() {
            let wide = if form.contains("q0") { ".reg .b128 q<4>; " } else { "" };
            let _ = writeln!(
                text,
                ".visible .entry k{index}() {{ .reg .b16 h<16>; .reg .b32 r<20>; .reg .b64 d<16>; .reg .pred p<4>; \
                 .reg .b8 b<4>; {wide}{form} ret; }}"
            );
        }
        // The error prevents code generation: the test needs only the diagnostics of each line.
        text.push_str("this_is_no_instruction;\n");
        fs::write(&input, &text).map_err(|error| error.to_string())?;
        let result = Command::new(ptxas)
            .arg(format!("-arch={arch}"))
            .arg(&input)
            .args(["-o", "/dev/null"])
            .output()
            .map_err(|error| format!("{}: {error}", ptxas.display()))?;
        let said = String::from_utf8_lossy(&result.stderr).into_owned() + &String::from_utf8_lossy(&result.stdout);
        // Some errors end ptxas's parser, which then reports nothing about later lines.
        let mut ended = None;
        for line in said.lines() {
            let Some((place, message)) = line.split_once(", line ").and_then(|(_, rest)| rest.split_once(';')) else {
                continue;
            };
            let message = message.trim();
            if !message.starts_with("error") && !message.starts_with("fatal") {
                continue;
            }
            let number: usize = place.parse().map_err(|_| format!("{}: {line}", sm.name))?;
            let index = number.checked_sub(n_before + 1).ok_or_else(|| format!("{}: {line}", sm.name))?;
            let Some(form) = asked.get(index) else { continue };
            refused.insert((*form).clone());
            if message.starts_with("fatal") || message.contains("Parsing error") {
                ended = Some(index);
            }
        }
        match ended {
            Some(index) => drop(asked.remove(index)),
            None if said.contains("this_is_no_instruction") => return Ok(refused),
            None => return Err(format!("{}: ptxas did not read all forms: {said}", sm.name)),
        }
    }
}

/// The lowest ISA version with which weft emits a form for a target.
fn known(form: &str, sm: &Sm) -> Option<(u32, u32)> {
    needs::lowest_isa(form, sm.number, sm.suffix)
        .map(|isa| isa.max(sm.lowest_isa))
        .filter(|isa| *isa <= needs::HIGHEST_ISA)
}

#[test]
fn the_table_of_instructions_is_that_of_ptxas() {
    let Some(ptxas) = ptxas::ptxas_or_skip() else { return };
    let folder = env::temp_dir().join(format!("weft-ptx-forms-{}", process::id()));
    fs::create_dir_all(&folder).expect("the system has a folder for such files");
    let forms = forms();
    assert!(forms.len() > 2000, "{} forms", forms.len());
    let help = Command::new(&ptxas).arg("--help").output().expect("ptxas runs");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    // ptxas 13 knows `sm_101` only under its new name, `sm_110`.
    let sms: Vec<&Sm> = SMS.iter().filter(|sm| help.contains(&format!("'{}'", sm.name))).collect();
    assert!(sms.len() + 3 >= SMS.len(), "ptxas has only {} of {} targets", sms.len(), SMS.len());
    let jobs: Vec<_> =
        sms.iter().flat_map(|sm| ISAS.iter().filter(|isa| **isa >= sm.lowest_isa).map(|isa| (*sm, *isa))).collect();
    let (faults, next) = (Mutex::new(BTreeSet::new()), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((sm, isa)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = match refused(&ptxas, &folder, sm, *isa, &forms) {
                        Ok(refused) => disagreements(sm, *isa, &forms, &refused),
                        Err(fault) => vec![fault],
                    };
                    faults.lock().expect("no thread panicked").extend(found);
                }
            });
        }
    });
    fs::remove_dir_all(&folder).expect("the folder is this test's own");
    let faults = faults.into_inner().expect("no thread panicked");
    let shown: Vec<_> = faults.iter().take(40).map(String::as_str).collect();
    assert!(faults.is_empty(), "{} disagreements:\n{}", faults.len(), shown.join("\n"));
}

fn disagreements(sm: &Sm, isa: (u32, u32), forms: &[String], refused: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    for form in forms {
        let takes = known(form, sm).is_some_and(|needed| needed <= isa);
        let (major, minor) = isa;
        match (takes, refused.contains(form)) {
            (true, true) => found.push(format!("{form} on {} with PTX {major}.{minor}: weft takes it", sm.name)),
            (false, false) if STRICTER.iter().any(|(stricter, _)| stricter == form) => {}
            (false, false) => found.push(format!("{form} on {} with PTX {major}.{minor}: weft refuses it", sm.name)),
            (true, false) | (false, true) => {}
        }
    }
    found
}

#[test]
fn lines_of_forms_are_expanded() {
    assert_eq!(
        expand("a<.x|>.b<1|2> r*2;"),
        ["a.x.b1 {r0, r1};", "a.x.b2 {r0, r1};", "a.b1 {r0, r1};", "a.b2 {r0, r1};"]
    );
}
