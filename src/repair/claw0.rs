//! Transcripts of claw0 and of clawutils. claw0 stops at a line that is not JSON, so its lines are repaired; what its
//! messages lack is arranged by claw-rebuild, which reads both of its formats. The records of clawutils are not changed.

use super::program::{Context, Mended, Part, Program, Said};
use super::sheet::Sheet;
use crate::json::Object;

/// A file of records.
pub(super) struct Records {
    /// True if records have ids, as those of clawutils do.
    has_ids: bool,
}

impl Records {
    /// Returns the format of a file.
    pub(super) fn of(bytes: &[u8]) -> Records {
        let has_id = |(_, record): (usize, Object<'_>)| record.get("id").is_some();
        let is_session =
            |(_, record): &(usize, Object<'_>)| record.string("type").as_deref() == Some("session");
        let sheet = Sheet::new(bytes, |_, _| None);
        Records { has_ids: sheet.records().filter(|it| !is_session(it)).any(has_id) }
    }
}

impl Program for Records {
    fn is_own(&self) -> bool {
        self.has_ids
    }

    fn sent(&self, _sheet: &Sheet<'_>, _path: &[usize]) -> Vec<usize> {
        Vec::new()
    }

    fn said<'a>(&self, _text: &'a str) -> Option<Said<'a>> {
        None
    }

    fn judge(&self, _part: &Part<'_>, _context: Context<'_>) -> Mended {
        Mended::Fine
    }

    fn with_parts(&self, text: &str, _parts: &[String]) -> String {
        text.to_owned()
    }

    fn silent(&self, _text: &str) -> Option<String> {
        None
    }

    fn with_call_id(&self, part: &Part<'_>, _id: &str) -> String {
        part.raw.to_owned()
    }

    fn no_result(&self, call: &Part<'_>, _id: &str) -> String {
        call.raw.to_owned()
    }

    fn record_of(&self, near: &str, _result: &str, _id: &str, _parent: &str) -> String {
        near.to_owned()
    }
}
