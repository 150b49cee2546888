//! The structure of a PDF: whether it is whole and can be read without a password, and its number of pages.
//!
//! This is a bounded reading, not a parser. Pages and the trailer are found by their names, also in compressed object
//! streams, which are inflated up to a limit. A number of pages that cannot be found is no fault.

use flate2::read::ZlibDecoder;
use memchr::memmem;
use std::io::Read;

/// The number of last bytes in which the end marker must be.
const TAIL: usize = 2048;
/// The most bytes that all object streams of a file are inflated to.
const MOST_INFLATED: u64 = 32 << 20;
/// The most bytes of a dictionary.
const DICTIONARY: usize = 4096;

/// Returns the number of pages, if it can be found.
///
/// # Errors
/// Returns the reason, phrased to follow "it", if the file is no PDF, ends too early, or is encrypted.
pub fn check(file: &[u8]) -> Result<Option<u64>, String> {
    let head = &file[..file.len().min(super::kind::HEAD)];
    if memmem::find(head, b"%PDF-").is_none() {
        return Err("is no PDF".to_owned());
    }
    let tail = &file[file.len().saturating_sub(TAIL)..];
    if memmem::rfind(tail, b"%%EOF").is_none() && memmem::rfind(tail, b"startxref").is_none() {
        return Err(super::TORN.to_owned());
    }
    if is_encrypted(file) {
        return Err("is encrypted".to_owned());
    }
    let mut count = Count::default();
    count.take(file);
    let mut left = MOST_INFLATED;
    for stream in object_streams(file) {
        let mut objects = Vec::new();
        // A damaged stream gives what could be read of it.
        let _ = ZlibDecoder::new(stream).take(left).read_to_end(&mut objects);
        left = left.saturating_sub(objects.len() as u64);
        count.take(&objects);
    }
    Ok(count.pages())
}

/// Returns true if a trailer, or a stream that stands for one, names an encryption dictionary.
fn is_encrypted(file: &[u8]) -> bool {
    memmem::find_iter(file, b"/Encrypt").any(|at| {
        let rest = &file[at + b"/Encrypt".len()..];
        let next = rest.iter().find(|byte| !byte.is_ascii_whitespace());
        // A reference or a dictionary follows; /EncryptMetadata is another name.
        matches!(next, Some(b'0'..=b'9' | b'<'))
    })
}

/// Returns the data of each compressed object stream.
fn object_streams(file: &[u8]) -> impl Iterator<Item = &[u8]> {
    memmem::find_iter(file, b"/ObjStm").filter_map(|at| {
        let dictionary = &file[at..file.len().min(at + DICTIONARY)];
        let begin = memmem::find(dictionary, b"stream")? + b"stream".len();
        let data = &file[at + begin..];
        let skip = data.iter().take_while(|byte| matches!(**byte, b'\r' | b'\n')).count();
        Some(&data[skip..])
    })
}

/// The pages that were found.
#[derive(Default)]
struct Count {
    /// The number of page objects.
    objects: u64,
    /// The largest number that a node of the page tree states.
    stated: u64,
}

impl Count {
    fn take(&mut self, text: &[u8]) {
        for at in memmem::find_iter(text, b"/Type") {
            let rest = text[at + b"/Type".len()..].trim_ascii_start();
            match rest.strip_prefix(b"/Page") {
                Some([b's', ..]) => self.stated = self.stated.max(stated(text, at)),
                Some(after) if !after.first().is_some_and(u8::is_ascii_alphanumeric) => {
                    self.objects += 1;
                }
                _ => {}
            }
        }
    }

    /// Returns the number of pages: the one that the tree states, unless that is a lie.
    fn pages(&self) -> Option<u64> {
        let pages = if self.objects == 0 { self.stated } else { self.objects };
        Some(pages).filter(|pages| *pages > 0)
    }
}

/// Returns the number of pages in a node of the page tree, whose type is at `at`.
fn stated(text: &[u8], at: usize) -> u64 {
    let begin = memmem::rfind(&text[at.saturating_sub(DICTIONARY)..at], b"<<")
        .map_or(at, |begin| at.saturating_sub(DICTIONARY) + begin);
    let end = text.len().min(at + DICTIONARY);
    let end = memmem::find(&text[at..end], b">>").map_or(end, |length| at + length);
    let count = memmem::find(&text[begin..end], b"/Count").map(|found| begin + found);
    let digits = count.map(|count| text[count + b"/Count".len()..end].trim_ascii_start());
    let digits = digits.unwrap_or_default();
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&digits[..length]).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use std::io::Write;

    fn file(body: &str, trailer: &str) -> Vec<u8> {
        format!("%PDF-1.4\n{body}\ntrailer\n<<{trailer}>>\nstartxref\n9\n%%EOF\n").into_bytes()
    }

    #[test]
    fn pages_are_counted_also_in_object_streams() {
        let page = "4 0 obj <</Type /Page /Parent 2 0 R>> endobj\n";
        let tree = "2 0 obj <</Kids [4 0 R] /Count 3 /Type /Pages>> endobj\n";
        assert_eq!(check(&file(&[tree, &page.repeat(3)].concat(), "/Root 1 0 R")), Ok(Some(3)));
        assert_eq!(check(&file(tree, "/Root 1 0 R")), Ok(Some(3)));
        assert_eq!(check(&file("", "/Root 1 0 R")), Ok(None));
        // Other objects have a count, or a name that begins in the same way.
        let outlines = "3 0 obj <</Type /Outlines /Count 9>> endobj\n";
        let label = "5 0 obj <</Type /PageLabel /S /D>> endobj\n";
        assert_eq!(check(&file(&[outlines, tree, label].concat(), "/Root 1 0 R")), Ok(Some(3)));
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(page.repeat(120).as_bytes()).unwrap();
        let mut whole =
            b"%PDF-1.5\n5 0 obj <</Type /ObjStm /N 120 /Filter /FlateDecode>>\nstream\r\n".to_vec();
        whole.extend(encoder.finish().unwrap());
        whole.extend(b"\nendstream\nendobj\nstartxref\n9\n%%EOF");
        assert_eq!(check(&whole), Ok(Some(120)));
    }

    #[test]
    fn a_damaged_or_encrypted_file_has_a_reason() {
        let whole = file("1 0 obj <</EncryptMetadata false>> endobj", "/Root 1 0 R");
        assert_eq!(check(&whole), Ok(None));
        assert_eq!(check(b"hello"), Err("is no PDF".to_owned()));
        assert_eq!(check(&whole[..60]), Err("ends too early".to_owned()));
        // One of the two words at the end is enough.
        for end in ["startxref\n9\n", "%%EOF\n"] {
            assert_eq!(check(format!("%PDF-1.4\n{end}").as_bytes()), Ok(None), "{end}");
        }
        let secret = file("", "/Encrypt 9 0 R");
        assert_eq!(check(&secret), Err("is encrypted".to_owned()));
    }
}
