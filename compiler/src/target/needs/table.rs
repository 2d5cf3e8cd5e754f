//! The table of instructions (`table.txt`, which describes its format).

use std::sync::LazyLock;

use super::{
    super::{SMS, Sm},
    ptx::{self, Instruction},
};

/// A version: major and minor.
pub(super) type Version = (u32, u32);

/// All rows.
pub(super) static TABLE: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let lines = include_str!("table.txt").lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    lines.filter(|line| *line != "#").map(|line| Row::read(line).expect("a test reads the table")).collect()
});

/// The requirements of some instructions.
#[derive(Debug)]
pub(super) struct Row {
    /// Alternatives for the first token.
    first: Vec<&'static str>,
    conditions: Vec<Condition>,
    /// The targets, each with the lowest ISA that has the instruction there. If empty, no target has it.
    on: Vec<(Has, Version)>,
}

/// A condition on an instruction besides its first token.
#[derive(Debug)]
enum Condition {
    /// It has one of these sequences of modifiers.
    With(Vec<Vec<&'static str>>),
    /// It has none of them.
    Without(Vec<Vec<&'static str>>),
    /// The instruction has at least this number of operands.
    Operands(usize),
    /// At least one operand is in the list.
    Operand(Vec<&'static str>),
    /// Its last operand is a number.
    LastIsNumber,
}

/// The SMs that have an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Has {
    /// This one and all newer ones.
    From(u32),
    /// Only this one, in code for it alone.
    Only(u32),
    /// This one and newer ones of its family, in code that is for the SM or the family alone.
    Family(u32),
}

/// The current number of an SM: `sm_101` was renamed to `sm_110`.
fn renamed(number: u32) -> u32 {
    if number == 101 { 110 } else { number }
}

/// The oldest SM of a family, whose code with the suffix `f` the others run.
fn family(number: u32) -> u32 {
    match number {
        103 => 100,
        101 => 110,
        121 => 120,
        other => other,
    }
}

impl Has {
    fn read(text: &str) -> Option<Self> {
        let text = text.strip_prefix("sm_")?;
        let number = text.trim_end_matches(['a', 'f']);
        let value = number.parse().ok()?;
        match &text[number.len()..] {
            "" => Some(Self::From(value)),
            "a" => Some(Self::Only(value)),
            "f" => Some(Self::Family(value)),
            _ => None,
        }
    }

    fn is_met_by(self, number: u32, suffix: &str) -> bool {
        match self {
            Self::From(oldest) => number >= oldest,
            Self::Only(one) => suffix == "a" && renamed(number) == renamed(one),
            Self::Family(oldest) => {
                !suffix.is_empty() && family(number) == family(oldest) && renamed(number) >= renamed(oldest)
            }
        }
    }
}

/// Whether a token matches a pattern, which may end in `*`.
fn is(pattern: &str, word: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == word, |begin| word.starts_with(begin))
}

/// Whether an instruction has the modifiers of one of the alternatives, adjacent and in order.
fn has_modifiers(alternatives: &[Vec<&'static str>], words: &[String]) -> bool {
    let modifiers = words.get(1..).unwrap_or_default();
    alternatives.iter().any(|wanted| {
        modifiers.windows(wanted.len()).any(|found| wanted.iter().zip(found).all(|(pattern, word)| is(pattern, word)))
    })
}

fn sequences(text: &'static str) -> Option<Vec<Vec<&'static str>>> {
    text.split('|').map(|one| Some(one.strip_prefix('.')?.split('.').collect())).collect()
}

fn version(text: &str) -> Option<Version> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

impl Row {
    fn read(line: &'static str) -> Option<Self> {
        let mut words = line.split_whitespace().peekable();
        let first = words.next()?.split('|').collect();
        let mut conditions = Vec::new();
        while let Some(word) = words.next_if(|word| !word.starts_with("sm_") && *word != "never") {
            conditions.push(match word.as_bytes().first()? {
                b'.' => Condition::With(sequences(word)?),
                b'!' => Condition::Without(sequences(&word[1..])?),
                b'#' => Condition::Operands(word[1..].parse().ok()?),
                b'=' if word == "=last-number" => Condition::LastIsNumber,
                b'=' => Condition::Operand(word[1..].split('|').collect()),
                _ => return None,
            });
        }
        let mut on = Vec::new();
        let mut targets = Vec::new();
        for word in words {
            if word == "never" {
                continue;
            }
            match Has::read(word) {
                Some(has) => targets.push(has),
                None => {
                    let isa = version(word.trim_end_matches(','))?;
                    on.extend(targets.drain(..).map(|has| (has, isa)));
                }
            }
        }
        targets.is_empty().then_some(Self { first, conditions, on })
    }

    /// The part of an instruction that the row describes, as written in the program; `None` if the row does not apply.
    fn describes<'a>(&self, instruction: &'a Instruction) -> Option<&'a str> {
        if self.first.iter().any(|first| first.starts_with('%')) {
            let mut registers = instruction.operands.iter().flat_map(|operand| ptx::registers(operand));
            return registers.find(|register| self.first.iter().any(|first| is(first, register)));
        }
        let word = instruction.words.first()?;
        let is_it = self.first.iter().any(|first| is(first, word))
            && self.conditions.iter().all(|condition| condition.is_true_of(instruction));
        is_it.then_some(&instruction.name)
    }

    /// The lowest ISA that has it on an SM; `None` if the SM lacks it.
    fn isa(&self, number: u32, suffix: &str) -> Option<Version> {
        self.on.iter().filter(|(has, _)| has.is_met_by(number, suffix)).map(|(_, isa)| *isa).min()
    }
}

impl Condition {
    fn is_true_of(&self, instruction: &Instruction) -> bool {
        let operands = &instruction.operands;
        match self {
            Self::With(alternatives) => has_modifiers(alternatives, &instruction.words),
            Self::Without(alternatives) => !has_modifiers(alternatives, &instruction.words),
            Self::Operands(count) => operands.len() >= *count,
            Self::Operand(values) => operands.iter().any(|operand| values.contains(&operand.as_str())),
            Self::LastIsNumber => operands.last().is_some_and(|last| last.starts_with(|c: char| c.is_ascii_digit())),
        }
    }
}

/// The lowest ISA with which an SM has an instruction.
///
/// # Errors
///
/// The part of the instruction that the SM lacks.
pub(super) fn isa<'a>(instruction: &'a Instruction, number: u32, suffix: &str) -> Result<Version, &'a str> {
    let mut isa = (0, 0);
    for row in TABLE.iter() {
        if let Some(what) = row.describes(instruction) {
            isa = isa.max(row.isa(number, suffix).ok_or(what)?);
        }
    }
    Ok(isa)
}

/// The targets that have an instruction, as text; `None` if none has.
pub(super) fn targets(instruction: &Instruction) -> Option<String> {
    let with: Vec<&Sm> = SMS.iter().filter(|sm| isa(instruction, sm.number, sm.suffix).is_ok()).collect();
    if let Some(oldest) = with.iter().find(|sm| sm.suffix.is_empty()) {
        return Some(format!("`{}` or newer", oldest.name));
    }
    // For each family, the target whose code runs on most of its SMs.
    let mut families: Vec<&Sm> = Vec::new();
    for sm in with.into_iter().filter(|sm| renamed(sm.number) == sm.number) {
        match families.iter_mut().find(|other| family(other.number) == family(sm.number)) {
            None => families.push(sm),
            Some(other) if other.number == sm.number && sm.suffix == "f" => *other = sm,
            Some(_) => {}
        }
    }
    let names: Vec<_> = families.iter().map(|sm| format!("`{}`", sm.name)).collect();
    let (last, others) = names.split_last()?;
    Some(if others.is_empty() { last.clone() } else { format!("{} or {last}", others.join(", ")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Instruction {
        ptx::instructions(text).pop().expect("there is an instruction")
    }

    #[test]
    fn all_rows_are_read() {
        assert!(TABLE.len() > 100);
        assert_eq!(Row::read("add .x sm_90").map(|_| ()), None);
        assert_eq!(Row::read("add x sm_90 7.8").map(|_| ()), None);
    }

    #[test]
    fn types_shapes_and_operands_count() {
        let on_75 = |text: &str| isa(&one(text), 75, "").ok();
        assert_eq!(on_75("fma.rn.f16x2 $0, $1, $2, $3;"), Some((0, 0)));
        assert_eq!(on_75("fma.rn.bf16x2 $0, $1, $2, $3;"), None);
        assert_eq!(on_75("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {$0}, $1, $2, $3;"), Some((6, 5)));
        assert_eq!(on_75("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {$0}, $1, $2, $3;"), None);
        let three = one("min.f32 $0, $1, $2, $3;");
        assert_eq!((isa(&three, 90, ""), isa(&three, 100, "")), (Err("min.f32"), Ok((8, 8))));
        assert_eq!(isa(&one("min.f32 $0, $1, $2;"), 75, ""), Ok((0, 0)));
    }

    #[test]
    fn families_have_what_is_theirs() {
        let mma = one("tcgen05.mma.cta_group::1.kind::i8 [$0], $1, $2, $3, p;");
        let on = |number, suffix| isa(&mma, number, suffix).is_ok();
        assert!(on(100, "a") && on(110, "a") && on(101, "a") && !on(100, "f") && !on(103, "a") && !on(120, "a"));
        assert_eq!(targets(&mma).as_deref(), Some("`sm_100a` or `sm_110a`"));
        let fence = one("tcgen05.fence::before_thread_sync;");
        assert!(isa(&fence, 103, "f").is_ok() && isa(&fence, 101, "f").is_ok() && isa(&fence, 100, "").is_err());
        assert_eq!(targets(&fence).as_deref(), Some("`sm_100f` or `sm_110f`"));
        assert_eq!(targets(&one("wgmma.fence.sync.aligned;")).as_deref(), Some("`sm_90a`"));
        assert_eq!(targets(&one("mapa.u32 $0, $1, $2;")).as_deref(), Some("`sm_90` or newer"));
        assert_eq!(targets(&one("vote.all.pred p, q;")), None);
    }
}
