//! Sizes in words, for messages.

/// `139.8 GiB (150109880320 bytes)`, or just `96 bytes`.
pub(crate) fn show_bytes(bytes: u64) -> String {
    let mut size = bytes as f64;
    let mut unit = "";
    for next in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        unit = next;
    }
    if unit.is_empty() { format!("{bytes} bytes") } else { format!("{size:.1} {unit} ({bytes} bytes)") }
}

#[cfg(test)]
mod tests {
    use super::show_bytes;

    #[test]
    fn sizes_have_a_unit() {
        assert_eq!(show_bytes(1023), "1023 bytes");
        assert_eq!(show_bytes(1536), "1.5 KiB (1536 bytes)");
        assert_eq!(show_bytes(150_109_880_320), "139.8 GiB (150109880320 bytes)");
    }
}
