//! How Go's own decoders read what a record is made of, where Rust's differ.

use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, PAD};
use base64::{DecodeError, Engine};

/// Standard and padded; what the last character has too many of is ignored.
const BASE64: GeneralPurpose = GeneralPurpose::new(&STANDARD, PAD.with_decode_allow_trailing_bits(true));

/// Decodes base64, passing over line breaks.
pub(crate) fn base64(text: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let is_break = |b: &u8| matches!(b, b'\r' | b'\n');
    // Hardly any text has them, and to look for them takes as long as to decode it.
    match BASE64.decode(text) {
        Err(_) if text.iter().any(is_break) => {
            BASE64.decode(text.iter().copied().filter(|b| !is_break(b)).collect::<Vec<u8>>())
        }
        decoded => decoded,
    }
}

/// Whether a member of an object is the one that Go calls `name`: letter case does not count, and two letters beyond
/// ASCII are cases of ASCII ones. `name` is lower-case or camel-case ASCII.
pub(super) fn is_named(member: &str, name: &str) -> bool {
    let fold = |letter: char| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        letter => letter.to_ascii_lowercase(),
    };
    member.chars().map(fold).eq(name.chars().map(fold))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_found_in_any_case() {
        for member in ["status", "STATUS", "Status", "\u{17f}tatus"] {
            assert!(is_named(member, "status"), "{member}");
        }
        assert!(is_named("hoo\u{212a}s", "hooks") && is_named("APPVERSION", "appVersion"));
        assert!(!is_named("statu", "status") && !is_named("statuss", "status") && !is_named("", "status"));
    }

    #[test]
    fn line_breaks_and_loose_ends_are_passed_over_and_nothing_else() {
        assert_eq!(base64(b"eH\r\nh4\n").unwrap(), b"xxx");
        assert_eq!(base64(b"eB==").unwrap(), b"x");
        for bad in ["eA", "eA=", "e A==", "-_-_"] {
            assert!(base64(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
