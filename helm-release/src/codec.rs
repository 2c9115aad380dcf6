//! `Release` ⇄ the text that Helm's Kubernetes drivers store: base64(gzip(json)).
//!
//! A Secret's `data` is base64 once more, which the Kubernetes API itself demands; that layer belongs to the driver.

use std::io::{Read, Write};
use std::num::NonZeroU64;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use thiserror::Error as ThisError;

use crate::release::{Release, go};

/// The most that one record may unpack to by default: 1 MiB of gzip holds far less in practice, a bomb far more.
pub const DEFAULT_CAP: usize = 256 << 20;

/// What the API server accepts in all `data` values of one Secret or ConfigMap together.
pub const MAX_STORED: usize = 1 << 20;

const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];

/// Why a stored text is not a record.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// Not standard base64 with padding. Line breaks are ignored, as Go does.
    #[error("is not base64")]
    Base64(#[source] base64::DecodeError),
    /// Broken gzip.
    #[error("is damaged gzip")]
    Gzip(#[source] std::io::Error),
    /// Bytes after the gzip stream.
    #[error("has {0} bytes after its gzip stream")]
    Trailing(usize),
    /// It unpacks to more than the cap.
    #[error("unpacks to more than {cap} bytes")]
    TooLarge {
        /// The cap in bytes.
        cap: usize,
    },
    /// The unpacked text is not a JSON object.
    #[error("holds no JSON object")]
    Json(#[source] serde_json::Error),
}

/// Reads the stored text, unpacking at most [`DEFAULT_CAP`] bytes.
///
/// # Errors
/// [`Error`] says which layer is damaged.
pub fn decode(text: &[u8]) -> Result<Release, Error> {
    decode_capped(text, DEFAULT_CAP)
}

/// Reads the stored text, unpacking at most `cap` bytes.
///
/// # Errors
/// [`Error`] says which layer is damaged.
pub fn decode_capped(text: &[u8], cap: usize) -> Result<Release, Error> {
    let json = unpack(text, cap)?;
    // Go too puts a replacement character where a byte is no UTF-8.
    let json = String::from_utf8(json).unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned());
    Release::parse(&json).map_err(Error::Json)
}

/// The text to store, compressed as Helm does (level 9); where that does not fit, at level 8 if it is denser.
///
/// # Errors
/// None in practice; see [`Release::to_json`].
pub fn encode(release: &Release) -> Result<String, Error> {
    let json = release.to_json().map_err(Error::Json)?;
    let best = STANDARD.encode(gzip(json.as_bytes(), Compression::best())?);
    if best.len() <= MAX_STORED {
        return Ok(best);
    }
    // An archive in the chart is noise to gzip. Our level 9 makes it 3 % larger than Go's does, our level 8 no larger.
    let other = STANDARD.encode(gzip(json.as_bytes(), Compression::new(8))?);
    Ok(if other.len() < best.len() { other } else { best })
}

/// The text to store, compressed some percent denser than by [`encode`], which takes two seconds for each MiB of JSON.
///
/// # Errors
/// None in practice; see [`Release::to_json`].
pub fn encode_densely(release: &Release) -> Result<String, Error> {
    let json = release.to_json().map_err(Error::Json)?;
    let mut packed = Vec::with_capacity(MAX_STORED);
    // Fifteen rounds, the default, take three times as long for half a percent.
    let options = zopfli::Options { iteration_count: NonZeroU64::MIN, ..zopfli::Options::default() };
    zopfli::compress(options, zopfli::Format::Gzip, json.as_bytes(), &mut packed).map_err(Error::Gzip)?;
    Ok(STANDARD.encode(packed))
}

/// What fills a record: its `count` largest parts and their sizes in bytes as they are stored, the largest first.
#[must_use]
pub fn largest_parts(release: &Release, count: usize) -> Vec<(String, usize)> {
    let stored =
        |text: &str| gzip(text.as_bytes(), Compression::fast()).map_or(0, |packed| packed.len().div_ceil(3) * 4);
    let mut parts: Vec<_> = release.parts().into_iter().map(|(name, text)| (name, stored(&text))).collect();
    parts.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    parts.truncate(count);
    parts
}

fn gzip(bytes: &[u8], level: Compression) -> Result<Vec<u8>, Error> {
    let mut gzip = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), level);
    gzip.write_all(bytes).map_err(Error::Gzip)?;
    gzip.finish().map_err(Error::Gzip)
}

/// Undoes base64 and gzip; a payload without the gzip magic is plain JSON from before Helm compressed.
fn unpack(text: &[u8], cap: usize) -> Result<Vec<u8>, Error> {
    let packed = go::base64(text).map_err(Error::Base64)?;
    if packed.starts_with(&GZIP_MAGIC) { gunzip(&packed, cap) } else { Ok(packed) }
}

/// Several members are one stream, as Go's reader takes them; anything else behind a member is corruption.
fn gunzip(mut rest: &[u8], cap: usize) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(rest.len().saturating_mul(4).min(cap));
    while !rest.is_empty() {
        if !rest.starts_with(&GZIP_MAGIC) {
            return Err(Error::Trailing(rest.len()));
        }
        let mut member = GzDecoder::new(rest);
        let room = cap - out.len();
        // One byte over the room tells a full record from one that is too large.
        let read = member.by_ref().take(room as u64 + 1).read_to_end(&mut out).map_err(Error::Gzip)?;
        if read > room {
            return Err(Error::TooLarge { cap });
        }
        rest = member.into_inner();
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{"name":"r","info":{"status":"deployed"},"version":1}"#;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        super::gzip(bytes, Compression::best()).unwrap()
    }

    #[test]
    fn a_record_survives_encode_and_decode() {
        let stored = encode(&Release::parse(JSON).unwrap()).unwrap();
        assert_eq!(decode(stored.as_bytes()).unwrap().to_json().unwrap(), JSON);
    }

    #[test]
    fn base64_may_be_wrapped_but_neither_url_safe_nor_unpadded() {
        let packed = gzip(JSON.as_bytes());
        let text = STANDARD.encode(&packed);
        let wrapped: String =
            text.as_bytes().chunks(20).map(|c| format!("{}\r\n", std::str::from_utf8(c).unwrap())).collect();
        assert!(decode(wrapped.as_bytes()).is_ok());
        let unpadded = STANDARD.encode([&packed[..], &gzip(b" ")].concat().as_slice());
        assert!(
            matches!(decode(unpadded.trim_end_matches('=').as_bytes()), Err(Error::Base64(_)))
                || !unpadded.ends_with('=')
        );
        assert!(matches!(decode(b"-_-_"), Err(Error::Base64(_))));
    }

    #[test]
    fn plain_json_from_before_compression_is_read() {
        assert!(decode(STANDARD.encode(JSON).as_bytes()).is_ok());
    }

    #[test]
    fn several_members_are_one_stream_and_a_tail_is_corruption() {
        let (front, back) = JSON.split_at(10);
        let two = [gzip(front.as_bytes()), gzip(back.as_bytes())].concat();
        assert_eq!(decode(STANDARD.encode(&two).as_bytes()).unwrap().to_json().unwrap(), JSON);
        let tail = [gzip(JSON.as_bytes()), b"xyz".to_vec()].concat();
        assert!(matches!(decode(STANDARD.encode(tail).as_bytes()), Err(Error::Trailing(3))));
    }

    #[test]
    fn a_bomb_stops_at_the_cap() {
        let bomb = STANDARD.encode(gzip(&vec![b' '; 1 << 20]));
        assert!(matches!(decode_capped(bomb.as_bytes(), 1 << 16), Err(Error::TooLarge { cap: 65536 })));
    }

    #[test]
    fn each_damaged_layer_is_named() {
        let mut cut = gzip(JSON.as_bytes());
        cut.truncate(cut.len() - 6);
        assert!(matches!(decode(STANDARD.encode(cut).as_bytes()), Err(Error::Gzip(_))));
        assert!(matches!(decode(b"%%%"), Err(Error::Base64(_))));
        assert!(matches!(decode(b""), Err(Error::Json(_))));
        assert!(matches!(decode(STANDARD.encode(b"[]").as_bytes()), Err(Error::Json(_))));
    }
}
