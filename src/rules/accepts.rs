//! The limits of the providers on what a message contains, as data.
//!
//! Where two protocols differ, rebuild keeps the stricter limit, so that a session can change its provider at any time. What
//! only one model demands, such as ids of nine characters, is arranged by claw-call when it writes the body.

use crate::media::scale::Room;

/// The size that an image may have. Its type must be PNG, JPEG, GIF or WebP for all protocols (Anthropic, "Vision", and OpenAI,
/// "Images and vision", both read on 2026-11-27).
///
/// - Bytes: Anthropic refuses an image of more than 5 MB (`image exceeds 5 MB maximum: N bytes > 5242880 bytes`), and counts
///   its base64 (pi issue 224, claude-code issue 2104). OpenAI accepts 50 MB.
/// - Pixels: Anthropic refuses an edge of more than 8000 pixels, and of more than 2000 if there are more than 20 images
///   (crush issue 3810, claude-code issue 24630; platform.claude.com/docs/en/vision, read on 2026-11-27). The smaller limit always applies here,
///   because the 21st image would otherwise change all the earlier ones, and with them the cached prefix.
pub const IMAGE: Room = Room { edge: 2000, bytes: 5_242_880 / 4 * 3 };

/// The most pages of a PDF: Anthropic, "PDF support" (read on 2026-11-27). Models with a window of 200,000 tokens accept 100;
/// which model will read the document is not known here, so the guard leaves out a document of more pages after a refusal.
pub const PDF_PAGES: u64 = 600;

/// Parts of the names of Mistral's models. They refuse the id of a call that has not exactly nine letters or digits, also where
/// others serve them (vLLM with Mistral's tokenizer).
pub const MISTRAL_MODELS: [&str; 8] =
    ["mistral", "mixtral", "ministral", "codestral", "devstral", "magistral", "pixtral", "voxtral"];
