//! Parses the option `sanitize`.

use weft_artifact::Tools;

use super::{OptionValue, Refusal};

pub(super) fn sanitize(value: &OptionValue) -> Result<Tools, Refusal> {
    let message = || {
        let names = Tools::NAMES.map(|(name, _)| format!("'{name}'")).join(", ");
        format!("sanitize must be 'all', a bool, or some of {names}, not {value}")
    };
    match value {
        OptionValue::None | OptionValue::Bool(false) => Ok(Tools::NONE),
        OptionValue::Bool(true) => Ok(Tools::ALL),
        OptionValue::Str(text) => Tools::parse(text).ok_or_else(|| Refusal::Value(message())),
        OptionValue::Tuple(items) => items.iter().try_fold(Tools::NONE, |tools, item| match item {
            OptionValue::Str(text) => {
                let more = Tools::parse(text).ok_or_else(|| Refusal::Value(message()))?;
                Ok(Tools(tools.0 | more.0))
            }
            OptionValue::None
            | OptionValue::Bool(_)
            | OptionValue::Int(_)
            | OptionValue::Tuple(_)
            | OptionValue::Other { .. } => Err(Refusal::Type(message())),
        }),
        OptionValue::Int(_) | OptionValue::Other { .. } => Err(Refusal::Type(message())),
    }
}
