//! `weft settings`: lists the settings with their current values, the origins of the values, and their meaning.

use std::io::Write;

use serde_json::{Value, json};
use weft_compiler::diagnostic::closest;
use weft_runtime::{InForce, Settings};

use crate::{
    Surroundings,
    args::{DataFormat, SettingsArgs},
    report::Stop,
};

/// The width of the description below a setting, in columns.
const WIDTH: usize = 96;

/// Lists the settings. The exit code is 1 if a value is invalid.
pub(crate) fn settings(args: &SettingsArgs, surroundings: &Surroundings, stdout: &mut dyn Write) -> Result<u8, Stop> {
    let rows = select(Settings::in_force(surroundings.variable), &args.names)?;
    let rows: Vec<InForce> = rows.into_iter().filter(|row| !args.changed || row.changes != Ok(false)).collect();
    match args.format {
        DataFormat::Text => stdout.write_all(text(&rows).as_bytes())?,
        DataFormat::Json => writeln!(stdout, "{:#}", rows.iter().map(value).collect::<Value>())?,
    }
    Ok(u8::from(rows.iter().any(|row| row.changes.is_err())))
}

/// The rows with these names, with or without the prefix `WEFT_`. Without names, all rows.
fn select(rows: Vec<InForce>, names: &[String]) -> Result<Vec<InForce>, Stop> {
    let mut wanted = Vec::new();
    for name in names {
        let upper = name.to_uppercase();
        let full = if upper.starts_with("WEFT_") { upper } else { format!("WEFT_{upper}") };
        let known = || rows.iter().map(|row| row.setting.name);
        if !known().any(|known| known == full) {
            return Err(Stop::Usage(match closest(&full, known()) {
                Some(near) => format!("weft has no setting `{name}`: did you mean {near}?"),
                None => format!("weft has no setting `{name}`: `weft settings` lists them"),
            }));
        }
        wanted.push(full);
    }
    Ok(rows.into_iter().filter(|row| wanted.is_empty() || wanted.iter().any(|name| name == row.setting.name)).collect())
}

fn value(row: &InForce) -> Value {
    let InForce { setting, value, from, changes } = row;
    json!({
        "name": setting.name,
        "value": value,
        "default": setting.default,
        "from": from,
        "changed": changes.as_ref().ok(),
        "error": changes.as_ref().err().map(|error| &error.message),
        "allowed": setting.allowed,
        "doc": setting.doc,
    })
}

fn text(rows: &[InForce]) -> String {
    let mut lines = Vec::new();
    for InForce { setting, value, from, changes } in rows {
        let origin = match (from, changes) {
            (None, _) => "by default".to_owned(),
            (Some(from), _) if *from == setting.name => "from the environment".to_owned(),
            (Some(from), _) => format!("from {from} in the environment"),
        };
        let default = if setting.default.is_empty() { "nothing" } else { setting.default };
        let default = if from.is_some() { format!("; default: {default}") } else { String::new() };
        let mark = if changes.is_err() { ", which is invalid" } else { "" };
        lines.push(format!("{}={value}  ({origin}{default}{mark})", setting.name));
        lines.extend(wrapped(&format!("{} It can be {}.", setting.doc, setting.allowed)));
        lines.push(String::new());
    }
    lines.pop();
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).chain([""]).collect();
    lines.join("\n")
}

/// Wraps a text at [`WIDTH`] columns.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => *line = format!("{line} {word}"),
            Some(_) | None => lines.push(format!("    {word}")),
        }
    }
    lines
}
