//! Tests of how damaged transcripts and other kinds of files are recognised.

use super::*;

fn looks(bytes: &[u8]) -> Looks {
    of(&Input::memory("t", bytes.to_vec())).unwrap()
}

#[test]
fn audit_13_other_files_are_recognised_by_their_content() {
    let claude = r#"{"type":"file-history-snapshot","messageId":"m"}
{"parentUuid":null,"type":"user","message":{"role":"user","content":"x"},"uuid":"u","sessionId":"s"}"#;
    let codex = r#"{"timestamp":"t","type":"session_meta","payload":{"id":"x"}}
{"timestamp":"t","type":"response_item","payload":{"type":"message"}}"#;
    let pi = r#"{"type":"session","version":3,"id":"x","timestamp":"t","cwd":"/x"}
{"type":"user","content":"x"}"#;
    let pretty = "{\n  \"model\": \"m\",\n  \"messages\": [\n    {\"role\": \"user\"}\n  ]\n}\n";
    let record = "{\n  \"type\": \"user\",\n  \"content\": \"x\"\n}\n";
    for (bytes, expected) in [
        (&br#"{"role":"user","content":"x"}"#[..], Looks::Messages),
        (br#"{"role":"user","content":"x","_meta":{"id":"a"}}"#, Looks::Messages),
        (br#"{"role":"model","parts":[]}"#, Looks::Dialect(Dialect::Gemini)),
        (b"{\n\"role\":\"user\",\n\"content\":\"x\"\n}", Looks::Messages),
        (br#"{"model":"m","messages":[]}"#, Looks::Dialect(Dialect::Openai)),
        (br#"{"model":"m","input":"x"}"#, Looks::Request),
        (pretty.as_bytes(), Looks::Dialect(Dialect::Openai)),
        (br#"{"contents":[{"role":"user"}]}"#, Looks::Dialect(Dialect::Gemini)),
        (br#"{"id":"msg_1","type":"message","role":"assistant","content":[]}"#, Looks::Answer),
        (br#"{"id":"chatcmpl-1","choices":[]}"#, Looks::Answer),
        (br#"{"model":"m","message":{"role":"assistant"},"done":true}"#, Looks::Answer),
        (br#"[{"role":"user","content":"x"}]"#, Looks::Dialect(Dialect::Openai)),
        (b"[\n  {\"role\"", Looks::Dialect(Dialect::Openai)),
        (b"[\n  {\"name\"", Looks::Array),
        (b"[ ]", Looks::Array),
        (claude.as_bytes(), Looks::Dialect(Dialect::ClaudeCode)),
        (codex.as_bytes(), Looks::Dialect(Dialect::Codex)),
        (pi.as_bytes(), Looks::Dialect(Dialect::Pi)),
        (record.as_bytes(), Looks::Spread),
        (record.repeat(2).as_bytes(), Looks::Spread),
        (br#"{"a":1}"#, Looks::Objects),
        (b"{ text in braces }", Looks::Text),
        (b"# Notes\n\nSome words.\n", Looks::Text),
        ("日本語\n".as_bytes(), Looks::Text),
        (b"[1] a footnote", Looks::Text),
        (b"%PDF-1.7\n%\xE2\xE3", Looks::Binary("a PDF file")),
        (b"\x1F\x8B\x08\x00", Looks::Binary("compressed data")),
        (b"\x7FELF\x02\x01\x01\0\0", Looks::Binary("binary data")),
        (b"caf\xE9 au lait", Looks::Binary("binary data")),
    ] {
        assert_eq!(looks(bytes), expected, "{}", String::from_utf8_lossy(bytes));
    }
    let long = format!(r#"{{"id":"x","choices":["{}"]}}"#, "x".repeat(100_000));
    assert_eq!(looks(long.as_bytes()), Looks::Answer);
}

#[test]
fn audit_13_damaged_records_still_count_as_records() {
    let far = "garbage\n".repeat(20_000) + "{\"type\":\"user\",\"content\":\"x\"}\n";
    let long = format!("{{\"type\":\"user\",\"content\":\"{}\"}}", "x".repeat(100_000));
    for bytes in [
        br#"{"type":"user","content":"x"}"#,
        &br#"{"type":"user","content":"x","sessionId":"s","payload":1,"timestamp":1}"#[..],
        br#"{"type":"session","id":"81efc48888b7","created":"x"}"#,
        br#"{"type":"tool_result","tool_use_id":"c","output":"x"}"#,
        br#"{"type":"progress","x":1}"#,
        br#"{"type":"user"}"#,
        b"torn\n{\"type\":\"user\",\"content\":\"x\"}\n",
        br#"{"type":"us{"type":"user","content":"x"}"#,
        b"\0\0\0\n{\"type\":\"user\",\"content\":\"x\"}\n",
        b"{\"a\":1}\n{\"type\":\"user\",\"content\":\"x\"}",
        far.as_bytes(),
        long.as_bytes(),
    ] {
        assert_eq!(looks(bytes), Looks::Records, "{}", String::from_utf8_lossy(bytes));
    }
    for bytes in [
        &b""[..],
        b" \n\r\n",
        b"\0\0\0\0",
        b"\xEF\xBB\xBF",
        br#"{"id":"0123456789abcdef","type":"us"#,
        b"{\"type\":\"user\",\"content\":\"\xFF\"}\n",
        b"{",
        &long.as_bytes()[..90_000],
    ] {
        assert_eq!(looks(bytes), Looks::Empty, "{}", String::from_utf8_lossy(bytes));
    }
}
