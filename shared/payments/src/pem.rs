//! Private keys in PEM (RFC 7468) as people paste them into a secret: with `\n` as two characters, indented, with CRLF,
//! or inside JSON.

use base64::{Engine, prelude::BASE64_STANDARD};
use rustls::pki_types::PrivateKeyDer;

/// Why a string is not a usable private key, as the end of a sentence that begins with the member. It reveals nothing
/// about the string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPrivateKey {
    #[error("must be a private key in PEM, which begins with `-----BEGIN`")]
    NotPem,
    #[error("is PEM, but not a private key in PKCS #8, PKCS #1 or SEC 1")]
    OtherFormat,
    #[error("is an encrypted private key; decrypt it with `openssl pkey -in FILE`, and use the result")]
    Encrypted,
    #[error("is cut off: the line `-----END` is missing")]
    CutOff,
    #[error("is damaged: its lines between `-----BEGIN` and `-----END` are not Base64")]
    NotBase64,
    #[error(
        "must be an RSA key of at least 2048 bits or a P-256 key; this key has another type or length, or is damaged"
    )]
    OtherKey,
}

/// Parses the first private key in a string. Everything around it is ignored, such as certificates, curve parameters,
/// or JSON quotes and members.
pub fn private_key(text: &str) -> Result<PrivateKeyDer<'static>, BadPrivateKey> {
    let mut blocks = text.split("-----BEGIN ").skip(1).filter_map(|block| block.split_once("-----")).peekable();
    if blocks.peek().is_none() {
        return Err(BadPrivateKey::NotPem);
    }
    let private = blocks.find(|(label, _)| label.ends_with("PRIVATE KEY"));
    let (label, rest) = private.ok_or(BadPrivateKey::OtherFormat)?;
    // The second is the header of RFC 1421, which old versions of OpenSSL write.
    if label.starts_with("ENCRYPTED") || rest.contains("Proc-Type:") {
        return Err(BadPrivateKey::Encrypted);
    }
    let (body, _) = rest.split_once("-----END ").ok_or(BadPrivateKey::CutOff)?;
    match label {
        "PRIVATE KEY" => Ok(PrivateKeyDer::Pkcs8(decode(body)?.into())),
        "RSA PRIVATE KEY" => Ok(PrivateKeyDer::Pkcs1(decode(body)?.into())),
        "EC PRIVATE KEY" => Ok(PrivateKeyDer::Sec1(decode(body)?.into())),
        _ => Err(BadPrivateKey::OtherFormat),
    }
}

/// Decodes the Base64 of a block, without white space and without the escapes that replace it in JSON. A key that was
/// escaped twice for JSON has several backslashes before each letter. PHP also escapes slashes.
fn decode(body: &str) -> Result<Vec<u8>, BadPrivateKey> {
    let mut base_64 = String::with_capacity(body.len());
    let mut characters = body.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.by_ref().find(|character| *character != '\\') {
                Some('n' | 'r' | 't') => {}
                Some('/') => base_64.push('/'),
                _ => return Err(BadPrivateKey::NotBase64),
            },
            space if space.is_whitespace() => {}
            other => base_64.push(other),
        }
    }
    BASE64_STANDARD.decode(base_64).map_err(|_| BadPrivateKey::NotBase64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn pem(label: &str, der: &[u8]) -> String {
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", BASE64_STANDARD.encode(der))
    }

    fn der(text: &str) -> Vec<u8> {
        private_key(text).unwrap_or_else(|error| panic!("{error}: {text}")).secret_der().to_vec()
    }

    #[test]
    fn a_key_is_read_however_it_was_pasted() {
        // Base 64 with slashes, in lines of 64 characters.
        let octets: Vec<u8> = (0..200u8).map(|octet| octet | 0x3f).collect();
        let base_64 = BASE64_STANDARD.encode(&octets);
        assert!(base_64.contains('/'));
        let lines: Vec<_> = base_64.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
        let plain = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"));
        let in_json = json!({ "type": "account", "private_key": plain }).to_string();
        for pasted in [
            plain.clone(),
            plain.replace('\n', "\\n"),
            plain.replace('\n', "\r\n"),
            plain.replace('\n', "\\r\\n"),
            plain.replace('\n', "\n    "),
            plain.replace('\n', "\n\t"),
            plain.replace('\n', " "),
            plain.replace('\n', ""),
            json!(plain).to_string(),
            in_json.replace('/', "\\/"),
            json!(in_json).to_string(),
            in_json,
            format!("-----BEGIN EC PARAMETERS-----\nBggq\n-----END EC PARAMETERS-----\n{plain}"),
            format!("Bag Attributes\n{plain}-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"),
        ] {
            assert_eq!(der(&pasted), octets, "{pasted}");
        }
    }

    #[test]
    fn the_label_says_the_format() {
        let read = |label: &str| private_key(&pem(label, b"x"));
        assert!(matches!(read("PRIVATE KEY"), Ok(PrivateKeyDer::Pkcs8(_))));
        assert!(matches!(read("RSA PRIVATE KEY"), Ok(PrivateKeyDer::Pkcs1(_))));
        assert!(matches!(read("EC PRIVATE KEY"), Ok(PrivateKeyDer::Sec1(_))));
    }

    #[test]
    fn an_encrypted_key_is_refused_with_the_remedy() {
        let old = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAA==\n\
                   -----END RSA PRIVATE KEY-----\n";
        for encrypted in [pem("ENCRYPTED PRIVATE KEY", b"x"), old.to_owned(), old.replace('\n', "\\n")] {
            let error = private_key(&encrypted).expect_err("encrypted");
            assert_eq!(error, BadPrivateKey::Encrypted);
            assert!(error.to_string().contains("`openssl pkey -in FILE`"), "{error}");
        }
    }

    #[test]
    fn each_other_fault_has_its_own_sentence() {
        let whole = pem("PRIVATE KEY", &[0x30; 100]);
        for (bad, fault) in [
            ("", BadPrivateKey::NotPem),
            ("sk_live_1", BadPrivateKey::NotPem),
            ("-----BEGIN PRIVATE KEY", BadPrivateKey::NotPem),
            (&pem("PUBLIC KEY", b"x"), BadPrivateKey::OtherFormat),
            (&pem("CERTIFICATE", b"x"), BadPrivateKey::OtherFormat),
            (&pem("OPENSSH PRIVATE KEY", b"x"), BadPrivateKey::OtherFormat),
            (&whole[..60], BadPrivateKey::CutOff),
            (&whole.replace('w', "!"), BadPrivateKey::NotBase64),
            (&whole.replace('\n', "\\x"), BadPrivateKey::NotBase64),
        ] {
            assert_eq!(private_key(bad).err(), Some(fault), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,80}", label in "[A-Z ]{0,12}") {
            let _ = private_key(&text);
            let _ = private_key(&format!("-----BEGIN {label}-----{text}-----END {label}-----"));
        }
    }
}
