//! Files of images and documents, written by hand: their structure is right, and the picture is grey.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use serde_json::{Value, json};

/// Returns a PNG of this size in pixels.
pub fn png(width: u32, height: u32) -> Vec<u8> {
    png_with(width, height, 0)
}

/// Returns a PNG of 8 x 8 pixels whose base64 has about `bytes` characters.
pub fn png_of(bytes: usize) -> Vec<u8> {
    png_with(8, 8, bytes / 4 * 3)
}

fn png_with(width: u32, height: u32, extra: usize) -> Vec<u8> {
    let mut head = [width.to_be_bytes(), height.to_be_bytes()].concat();
    head.extend([8, 0, 0, 0, 0]);
    let rows = vec![0; (width as usize + 1) * height as usize];
    let mut data = ZlibEncoder::new(Vec::new(), Compression::fast());
    data.write_all(&rows).expect("compressed rows");
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let around = file.len() + 100;
    chunk(&mut file, b"IHDR", &head);
    if extra > around {
        // A private chunk, which readers skip.
        chunk(&mut file, b"fiLl", &vec![7; extra - around]);
    }
    chunk(&mut file, b"IDAT", &data.finish().expect("compressed rows"));
    chunk(&mut file, b"IEND", b"");
    file
}

fn chunk(file: &mut Vec<u8>, name: &[u8; 4], data: &[u8]) {
    file.extend(u32::try_from(data.len()).expect("a length").to_be_bytes());
    let mut sum = Crc::new();
    sum.update(name);
    sum.update(data);
    file.extend(name);
    file.extend(data);
    file.extend(sum.sum().to_be_bytes());
}

/// Returns a PDF with this number of empty pages.
pub fn pdf(pages: usize) -> Vec<u8> {
    let kids: Vec<String> = (0..pages).map(|page| format!("{} 0 R", page + 3)).collect();
    let mut file = format!(
        "%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Kids [{}] /Count {pages} >>\nendobj\n",
        kids.join(" ")
    );
    for page in 0..pages {
        let number = page + 3;
        file += &format!(
            "{number} 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>\nendobj\n"
        );
    }
    file += &format!("trailer\n<< /Root 1 0 R /Size {} >>\nstartxref\n0\n%%EOF\n", pages + 3);
    file.into_bytes()
}

/// Returns bytes as base64.
pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Returns the block of an image.
pub fn image(media_type: &str, file: &[u8]) -> Value {
    let source = json!({"type": "base64", "media_type": media_type, "data": base64(file)});
    json!({"type": "image", "source": source})
}

/// Returns the block of a document.
pub fn document(file: &[u8]) -> Value {
    let data = base64(file);
    let source = json!({"type": "base64", "media_type": "application/pdf", "data": data});
    json!({"type": "document", "source": source})
}
