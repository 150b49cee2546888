//! The names of tools. A name that a provider refuses is replaced by one that depends on nothing but the name, so the
//! definition of a tool and all its calls, in any request, get the same one.

use crate::record::content::LONGEST_NAME;
use crate::record::digest;
use std::borrow::Cow;

/// The number of hex digits of a hash at the end of a replaced name, which keeps different names different.
const HASH: usize = 8;

/// Returns true if the name can be sent as it is.
#[must_use]
pub fn fits(name: &str) -> bool {
    name.len() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(is_allowed)
}

/// Returns the name to send: `name` itself, or its letters and digits, shortened, and a hash.
#[must_use]
pub fn fit(name: &str) -> Cow<'_, str> {
    if fits(name) {
        return Cow::Borrowed(name);
    }
    let mut fitted = String::new();
    for c in name.chars().take(LONGEST_NAME - HASH - 1) {
        let is_kept = u8::try_from(c).is_ok_and(is_allowed);
        fitted.push(if is_kept { c } else { '_' });
    }
    if !fitted.starts_with(|c: char| c.is_ascii_alphabetic()) {
        fitted.insert_str(0, "tool");
        fitted.truncate(LONGEST_NAME - HASH - 1);
    }
    Cow::Owned([&fitted, "_", &digest(name)[..HASH]].concat())
}

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_replaced_only_if_it_must_be() {
        for name in ["f", "_f", "mcp__server__tool", "a-b", &"x".repeat(64)] {
            assert_eq!(fit(name), name);
        }
        for (name, begin) in [
            ("mcp.server/tool name", "mcp_server_tool_name_"),
            ("", "tool_"),
            ("日本", "tool___"),
            ("1st", "tool1st_"),
            ("-a", "tool-a_"),
            (&"x".repeat(65), "xxxx"),
            (&"1".repeat(65), "tool1111"),
        ] {
            let fitted = fit(name);
            assert!(fitted.starts_with(begin) && fits(&fitted), "{name}: {fitted}");
            assert_eq!(fit(&fitted), fitted);
        }
        let close = ["a.b", "a/b", "a b", "a_b"].map(|name| fit(name).into_owned());
        let mut distinct = close.to_vec();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), close.len(), "{close:?}");
    }
}
