//! Images and documents: their type, their size and their structure, and how an image is made smaller.
//!
//! A file arrives as base64 in JSON. [`encoded`] reads single bytes of it without decoding the rest, so a check by
//! structure ([`check`]) takes time that hardly grows with the picture: the type comes from the first bytes ([`kind`]),
//! the size from the header ([`size`]), and a file that ends too early is found by following the lengths of its parts.
//! [`scale`] is the one place that decodes a picture, and [`pdf`] reads a document.

pub mod encoded;
pub mod kind;
pub mod pdf;
pub mod scale;
pub mod size;
mod structure;

pub use encoded::Encoded;
pub use kind::Kind;
pub use structure::{Picture, TORN, check};
