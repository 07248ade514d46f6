//! Who signed an archive, in the form of minisign: a file beside it, checked against a key that a person named.

use authority::text::{Lines, escape_within};
use minisign_verify::{Error, PublicKey, Signature};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Most bytes of a signature or of a file with a key.
pub const MAX_SIGNATURE: u64 = 8 << 10;

/// Most bytes of a comment that are shown.
const MAX_COMMENT: usize = 200;

/// A public key, which serializes as minisign prints it: 56 characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SigningKey {
    text: String,
    key: PublicKey,
}

impl SigningKey {
    /// Checks the signature of an archive; gives its comment, which is signed, too, as a line.
    ///
    /// # Errors
    /// The signature is damaged, of another key, or of other bytes.
    pub fn check(&self, archive: &[u8], signature: &[u8]) -> Result<String, &'static str> {
        let text = std::str::from_utf8(signature).map_err(|_| DAMAGED)?;
        let signature = Signature::decode(text).map_err(|_| DAMAGED)?;
        let checked = self.key.verify(archive, &signature, true);
        checked.map_err(|error| match error {
            Error::UnexpectedKeyId => "it is of another key",
            Error::InvalidSignature => "it is not of these bytes",
            _ => DAMAGED,
        })?;
        // Only of a checked signature: its form is part of the check.
        let comment = signature.trusted_comment();
        Ok(escape_within(comment, Lines::One, MAX_COMMENT))
    }
}

const DAMAGED: &str = "it is not a signature of minisign";

/// A key, or the text of a file of minisign with one.
impl FromStr for SigningKey {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let of_file = text.lines().nth(1).unwrap_or(text);
        let text = of_file.trim();
        let key = PublicKey::from_base64(text).map_err(|_| "it is not a public key of minisign")?;
        let text = text.to_owned();
        Ok(Self { text, key })
    }
}

impl TryFrom<String> for SigningKey {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<SigningKey> for String {
    fn from(key: SigningKey) -> Self {
        key.text
    }
}

impl fmt::Display for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "RWQBAQEBAQEBAYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c";
    const OTHER: &str = "RWQCAgICAgICAoE5dw6ofRdfVqNUZsNMfszLjYqRtO43ol32D1uPybOU";
    /// Another key with the number of the first.
    const FORGED: &str = "RWQBAQEBAQEBAe1JKMYo0cLG6ukDOJBZlWEpWSc6XGP5NjbBRhSshzfR";
    const ARCHIVE: &[u8] = b"the archive";
    const SIGNED: [&str; 2] = [
        "RUQBAQEBAQEBARS1L18dicUpfTDZ7koXsNTNVS90eiNcWcFSNZBdN4IHqFeelkJQ1YDw28gM5Be2mZRTIptUmUnLVmA+W6l1Vws=",
        "VeRyMOxTNBOHcCGfhhpiULzBgcV+XRzmFuTbhEmx6bbaGDpoMZCaMflsRRj/+52mHd9wTG1oId0bV5DEM/y0Dw==",
    ];

    fn signature(comment: &str) -> String {
        let [of_archive, of_comment] = SIGNED;
        format!("untrusted comment: any\n{of_archive}\ntrusted comment: {comment}\n{of_comment}\n")
    }

    #[test]
    fn only_the_key_signs_and_only_these_bytes() {
        let check = |key: &str, archive: &[u8], signature: &str| {
            let key: SigningKey = key.parse().unwrap();
            key.check(archive, signature.as_bytes())
        };
        let good = signature("acme 1.0.0");
        assert_eq!(check(KEY, ARCHIVE, &good).unwrap(), "acme 1.0.0");
        let of_file = format!("untrusted comment: minisign public key\n{KEY}\n");
        assert!(check(&of_file, ARCHIVE, &good).is_ok());
        for (key, archive, signature, why) in [
            (OTHER, ARCHIVE, good.clone(), "it is of another key"),
            (FORGED, ARCHIVE, good.clone(), "it is not of these bytes"),
            (
                KEY,
                b"the archivf".as_slice(),
                good.clone(),
                "it is not of these bytes",
            ),
            (
                KEY,
                ARCHIVE,
                signature("acme 2.0.0"),
                "it is not of these bytes",
            ),
            (
                KEY,
                ARCHIVE,
                good.replace("trusted comment: acme", "acme"),
                DAMAGED,
            ),
            (
                KEY,
                ARCHIVE,
                good.lines().take(3).collect::<Vec<_>>().join("\n"),
                DAMAGED,
            ),
            (KEY, ARCHIVE, String::new(), DAMAGED),
        ] {
            assert_eq!(check(key, archive, &signature).unwrap_err(), why);
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for text in [
            "",
            "RW",
            "untrusted comment: a\n",
            &KEY[..55],
            &format!("X{KEY}"),
        ] {
            assert!(text.parse::<SigningKey>().is_err(), "{text}");
        }
        let kept = serde_json::to_string(&KEY.parse::<SigningKey>().unwrap()).unwrap();
        assert_eq!(kept, format!("\"{KEY}\""));
        assert!(serde_json::from_str::<SigningKey>("\"x\"").is_err());
    }
}
