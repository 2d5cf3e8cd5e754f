//! Parses the option `shared_memory_carveout`: the part of the L1 cache's memory that a kernel prefers as shared
//! memory.

use super::{OptionValue, Refusal};

/// Parses `shared_memory_carveout`: a percentage or a name.
pub(super) fn carveout(value: &OptionValue) -> Result<Option<i8>, Refusal> {
    const NAMES: [(&str, i8); 3] = [("default", -1), ("maxl1", 0), ("maxshared", 100)];
    match value {
        OptionValue::None => Ok(None),
        OptionValue::Int(percent @ -1..=100) => Ok(Some(*percent as i8)),
        OptionValue::Str(name) => match NAMES.iter().find(|(known, _)| *known == name.to_lowercase()) {
            Some((_, percent)) => Ok(Some(*percent)),
            None => {
                let message = format!("Invalid carveout value: {value}; must be 'default', 'MaxL1' or 'MaxShared'");
                Err(Refusal::Value(message))
            }
        },
        OptionValue::Int(_) => Err(Refusal::Value(format!("Carveout value must be between -1 and 100, got {value}"))),
        OptionValue::Bool(_) | OptionValue::Tuple(_) | OptionValue::Other { .. } => {
            Err(Refusal::Type(format!("shared_memory_carveout must be a str or an int, not {value}")))
        }
    }
}
