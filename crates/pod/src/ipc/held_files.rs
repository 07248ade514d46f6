//! Files that clients send before the input that shows them: in memory, the newest up to a bound.

use crate::control::NewFile;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use llm_worker::attachment::MAX_DOCUMENT;
use protocol::MAX_PIECE;
use protocol::method::SentFile;
use session_store::Digest;
use std::collections::VecDeque;
use std::sync::Arc;

/// The most bytes of all files that are held.
const MAX_HELD: usize = 32 << 20;

/// The most of them: one without bytes takes space, too.
const MAX_COUNT: usize = 64;

/// What clients sent, newest last, each by the digest of its bytes so far.
#[derive(Default)]
pub(super) struct HeldFiles(VecDeque<(Digest, Arc<[u8]>)>);

impl HeldFiles {
    /// Adds a piece to the file with this digest, or begins one. Returns the digest with the piece.
    ///
    /// # Errors
    /// It is not base 64, too long, or there is no such file.
    pub(super) fn add(&mut self, data: &str, after: Option<&str>) -> Result<Digest, String> {
        let piece = STANDARD
            .decode(data)
            .map_err(|error| format!("`data` is not base64: {error}"))?;
        if piece.len() > MAX_PIECE {
            return Err(format!("a piece has at most {MAX_PIECE} bytes"));
        }
        let before = after.map(|digest| self.find(digest)).transpose()?;
        let mut bytes = before.as_deref().unwrap_or_default().to_vec();
        bytes.extend(piece);
        if bytes.len() > MAX_DOCUMENT {
            return Err(format!("a file has at most {MAX_DOCUMENT} bytes"));
        }
        let digest = Digest::of(&bytes);
        self.0.retain(|(held, _)| {
            *held != digest && after.is_none_or(|after| held.to_string() != after)
        });
        self.0.push_back((digest, bytes.into()));
        while self.0.len() > MAX_COUNT || self.bytes() > MAX_HELD {
            self.0.pop_front();
        }
        Ok(digest)
    }

    /// The file of an input. It stays held: the client may send the input again.
    ///
    /// # Errors
    /// There is no such file.
    pub(super) fn file(&self, sent: SentFile) -> Result<NewFile, String> {
        Ok(NewFile {
            bytes: self.find(&sent.digest)?,
            name: sent.name,
        })
    }

    fn find(&self, digest: &str) -> Result<Arc<[u8]>, String> {
        let held = self.0.iter().find(|(held, _)| held.to_string() == digest);
        held.map(|(_, bytes)| Arc::clone(bytes))
            .ok_or_else(|| format!("no file with the digest `{digest}` is held; send it again"))
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|(_, bytes)| bytes.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_become_a_file_and_the_oldest_files_leave() {
        let mut held = HeldFiles::default();
        let one = held.add(&STANDARD.encode(b"ab"), None).unwrap();
        let both = held
            .add(&STANDARD.encode(b"cd"), Some(&one.to_string()))
            .unwrap();
        let sent = |digest: Digest| SentFile {
            digest: digest.to_string(),
            name: "x".to_owned(),
        };
        assert_eq!(*held.file(sent(both)).unwrap().bytes, *b"abcd");
        assert!(
            held.file(sent(one)).is_err(),
            "it has another digest by now"
        );
        assert!(held.add("?", None).is_err());
        assert!(held.add("", Some("0")).is_err());
        let long = STANDARD.encode(vec![0; MAX_PIECE + 1]);
        assert!(held.add(&long, None).is_err());
        let piece = STANDARD.encode(vec![7; MAX_PIECE]);
        let mut digest = held.add(&piece, None).unwrap();
        for _ in 1..MAX_DOCUMENT / MAX_PIECE {
            digest = held.add(&piece, Some(&digest.to_string())).unwrap();
        }
        assert!(held.add(&piece, Some(&digest.to_string())).is_err());
        for at in 0..MAX_COUNT {
            held.add(&STANDARD.encode(at.to_string()), None).unwrap();
        }
        assert!(held.file(sent(both)).is_err() && held.bytes() <= MAX_HELD);
    }
}
