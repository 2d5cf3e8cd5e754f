//! Images of GPU code: checks that one is complete. The driver gets no size, and would read beyond a truncated image.

use crate::error::{Error, ErrorKind};

/// The start of a cubin, an ELF file of 64 bits.
const ELF: &[u8] = b"\x7fELF\x02";
/// The start of a fatbin.
const FATBIN: &[u8] = &[0x50, 0xed, 0x55, 0xba];
/// A section that has no bytes in the file.
const NOBITS: u64 = 8;

/// Refuses an image that is neither PTX as text, nor a cubin, nor a fatbin, or is shorter than its header says.
pub(super) fn check(image: &[u8]) -> Result<(), Error> {
    let refused = |message: String| Err(Error::new(ErrorKind::Value, message));
    if image.iter().all(|byte| *byte == 0 || byte.is_ascii_whitespace()) {
        return refused("the image is empty".to_owned());
    }
    let end = if image.starts_with(ELF) {
        elf_end(image)
    } else if image.starts_with(FATBIN) {
        fatbin_end(image)
    } else {
        // A C string may end with its NUL.
        let text = image.strip_suffix(&[0]).unwrap_or(image);
        if text.contains(&0) {
            return refused("the image is neither PTX, nor a cubin, nor a fatbin: it has NUL bytes".to_owned());
        }
        return Ok(());
    };
    match end {
        Some(end) if end <= image.len() as u64 => Ok(()),
        Some(_) | None => {
            refused(format!("the image is truncated: it has {} bytes, and its header says more", image.len()))
        }
    }
}

/// A little-endian number.
fn number(image: &[u8], at: u64, bytes: usize) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let found = image.get(at..at.checked_add(bytes)?)?;
    Some(found.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Where a fatbin ends; `None` if its header is not all there.
fn fatbin_end(image: &[u8]) -> Option<u64> {
    number(image, 6, 2)?.checked_add(number(image, 8, 8)?)
}

/// Where the tables and the sections of an ELF file end; `None` if one of the tables is not all there.
fn elf_end(image: &[u8]) -> Option<u64> {
    let programs = (number(image, 32, 8)?, number(image, 54, 2)?, number(image, 56, 2)?);
    let (sections, size, count) = (number(image, 40, 8)?, number(image, 58, 2)?, number(image, 60, 2)?);
    let mut end = programs.0.checked_add(programs.1 * programs.2)?.max(sections.checked_add(size * count)?);
    for section in 0..count {
        let at = sections.checked_add(section * size)?;
        if number(image, at.checked_add(4)?, 4)? != NOBITS {
            let (offset, bytes) = (number(image, at.checked_add(24)?, 8)?, number(image, at.checked_add(32)?, 8)?);
            end = end.max(offset.checked_add(bytes)?);
        }
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::{ELF, FATBIN, check};

    fn error(image: &[u8]) -> String {
        check(image).err().map_or_else(String::new, |error| error.message)
    }

    fn put(image: &mut [u8], at: usize, value: u64, bytes: usize) {
        image[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
    }

    /// A file with one section of 16 bytes at its end.
    fn elf() -> Vec<u8> {
        let mut image = vec![0; 64 + 64 + 16];
        image[..ELF.len()].copy_from_slice(ELF);
        put(&mut image, 40, 64, 8);
        put(&mut image, 58, 64, 2);
        put(&mut image, 60, 1, 2);
        put(&mut image, 64 + 24, 128, 8);
        put(&mut image, 64 + 32, 16, 8);
        image
    }

    #[test]
    fn whole_images_are_good() {
        assert_eq!(error(b".version 8.0"), "");
        assert_eq!(error(b".version 8.0\n\0"), "");
        assert_eq!(error(&elf()), "");
        let mut fatbin = FATBIN.to_vec();
        fatbin.extend([1, 0, 16, 0, 4, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9]);
        assert_eq!(error(&fatbin), "");
        assert!(error(&fatbin[..19]).starts_with("the image is truncated: it has 19 bytes"));
        assert!(error(&fatbin[..8]).contains("truncated"));
    }

    #[test]
    fn a_truncated_cubin_is_refused_wherever_it_ends() {
        let image = elf();
        for end in ELF.len()..image.len() {
            assert!(error(&image[..end]).contains("truncated"), "{end}");
        }
        let mut endless = elf();
        put(&mut endless, 40, u64::MAX, 8);
        assert!(error(&endless).contains("truncated"));
        // Memory that the file has no bytes for.
        let mut nobits = elf();
        put(&mut nobits, 64 + 4, 8, 4);
        put(&mut nobits, 64 + 32, 1 << 40, 8);
        assert_eq!(error(&nobits), "");
    }

    #[test]
    fn other_bytes_are_refused() {
        assert_eq!(error(b""), "the image is empty");
        assert_eq!(error(b"\n \0"), "the image is empty");
        assert!(error(b"BC\xc0\xde\0\x14").contains("neither PTX"));
    }
}
