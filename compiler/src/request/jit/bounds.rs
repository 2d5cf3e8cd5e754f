//! Parses the option `launch_bounds`.

use super::{OptionValue, Refusal};
use crate::request::LaunchBounds;

pub(super) fn launch_bounds(value: &OptionValue) -> Result<Option<LaunchBounds>, Refusal> {
    let values = match value {
        OptionValue::None => return Ok(None),
        OptionValue::Tuple(values) => values.as_slice(),
        OptionValue::Bool(_) | OptionValue::Int(_) | OptionValue::Str(_) | OptionValue::Other { .. } => {
            std::slice::from_ref(value)
        }
    };
    if !(1..=3).contains(&values.len()) {
        return Err(Refusal::Value(format!(
            "Got {} launch bounds: {value}. A maximum of three are supported: \
             (max_threads_per_block, min_blocks_per_sm, max_blocks_per_cluster)",
            values.len()
        )));
    }
    let message = || {
        format!(
            "launch_bounds must be the maximum threads per block (at least 1), or a tuple of that, the minimum blocks \
             per multiprocessor and the maximum blocks per cluster, not {value}"
        )
    };
    let mut bounds = [None; 3];
    for (place, (bound, value)) in bounds.iter_mut().zip(values).enumerate() {
        *bound = match value {
            OptionValue::Int(count @ 1..=0x7fff_ffff) => Some(*count as u32),
            OptionValue::Int(_) => return Err(Refusal::Value(message())),
            OptionValue::None if place > 0 => None,
            OptionValue::None
            | OptionValue::Bool(_)
            | OptionValue::Str(_)
            | OptionValue::Tuple(_)
            | OptionValue::Other { .. } => return Err(Refusal::Type(message())),
        };
    }
    let [threads, blocks, cluster] = bounds;
    Ok(threads.map(|threads| LaunchBounds { threads, blocks, cluster }))
}
