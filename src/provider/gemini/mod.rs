//! Gemini's API.

mod request;

pub(super) use request::contents;
