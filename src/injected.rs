//! Text in the messages of the user that a program wrote, not a person.
//!
//! Programs put reminders, the environment, instructions, the output of hooks and commands, and the messages of other
//! agents into user messages. One table has the forms that are known, and where each is documented or was observed.
//! [`parts`] separates such text from the words of the person.
//!
//! Where a session says itself that a program wrote a message, the reader of its dialect notes that in the record, as the
//! member `injected`; [`name_of_kind`] gives the name. Then the form of the text does not matter.

mod forms;
mod kinds;
mod reader;

use forms::FORMS;
pub use kinds::name_of_kind;
pub use reader::parts;
use std::borrow::Cow;

/// A part of a user message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// The words of the person.
    Typed(Cow<'a, str>),
    /// Text of a program.
    Program {
        /// Its name, such as `system reminder`.
        name: &'static str,
        /// The text.
        text: &'a str,
    },
}

/// Returns the words of the person in a message.
#[must_use]
pub fn typed(text: &str) -> Cow<'_, str> {
    let mut typed: Option<Cow<'_, str>> = None;
    for part in parts(text) {
        let Part::Typed(own) = part else { continue };
        typed = Some(typed.map_or(own.clone(), |before| Cow::Owned(format!("{before}\n{own}"))));
    }
    typed.unwrap_or_default()
}

/// Returns the first line of the words of the person in a message, which stands for the message in a list.
#[must_use]
pub fn first_line(text: &str) -> Option<String> {
    let typed = typed(text);
    let line = typed.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.to_owned())
}

/// Returns true for the line of a command such as `/model opus`, which says little about a session.
#[must_use]
pub fn is_command(line: &str) -> bool {
    let name = line.strip_prefix('/').and_then(|rest| rest.split_whitespace().next());
    name.is_some_and(|name| !name.contains('/'))
}

/// Returns a tool result without the reminders that a program added to it; `None` if there are none.
#[must_use]
pub fn without_reminders(result: &str) -> Option<String> {
    let (open, close) = ("<system-reminder>", "</system-reminder>");
    let (mut kept, mut rest, mut has_any) = (String::new(), result, false);
    while let Some((before, after)) = rest.split_once(open) {
        let is_line = before.is_empty() && !has_any || before.ends_with('\n');
        let end = after.split_once(close).filter(|_| is_line);
        has_any |= end.is_some();
        kept.push_str(before);
        match end {
            Some((_, after)) => rest = after,
            None => {
                kept.push_str(open);
                rest = after;
            }
        }
    }
    has_any.then(|| kept + rest).map(|text| text.trim_end_matches('\n').to_owned())
}

/// Returns true if a program wrote all of a message, which is not blank.
#[must_use]
pub fn is_all(text: &str) -> bool {
    let parts = parts(text);
    !parts.is_empty() && parts.iter().all(|part| matches!(part, Part::Program { .. }))
}

/// Returns false if a JSON string certainly has words of a person, without decoding it.
#[must_use]
pub fn may_be_all(quoted: &str) -> bool {
    let mut text = quoted.trim_start_matches('"');
    loop {
        let rest = text.trim_start_matches(' ');
        let rest =
            ["\\n", "\\r", "\\t"].iter().find_map(|it| rest.strip_prefix(it)).unwrap_or(rest);
        if rest.len() == text.len() {
            break;
        }
        text = rest;
    }
    text.starts_with(['<', '\\']) || FORMS.iter().any(|form| form.shape.may_begin(text))
}

#[cfg(test)]
mod tests {
    use super::forms::Shape::{Arguments, Begins, Inner, Line, Tag, Typed, Until};
    use super::*;

    #[test]
    fn every_form_is_read_and_every_language_is_kept() {
        let typed_text =
            ["Fix it", "直してください", "请修复", "고쳐 주세요", "исправь это", "corrige ça"];
        for form in &FORMS {
            let text = match form.shape {
                Tag(tag) | Typed(tag, _) | Arguments(tag) => format!("<{tag}>own</{tag}>"),
                Inner(tag, inner, _) => format!("<{tag}><{inner}>own</{inner}></{tag}>"),
                Begins(begin) => begin.to_owned(),
                Line(begin, end) => format!("{begin}{end}"),
                Until(begin, end) => format!("{begin}\nx\n{end}"),
            };
            let is_typed = matches!(form.shape, Typed(..) | Inner(..) | Arguments(..));
            assert_eq!(is_all(&text), !is_typed, "{text}");
            assert!(is_typed || may_be_all(&crate::json::quote(&text)), "{text}");
            if matches!(form.shape, Begins(_) | Line(..)) || is_typed {
                continue;
            }
            for own in typed_text {
                assert_eq!(typed(&format!("{text}\n{own}")), own, "{text}");
            }
        }
        assert!(typed_text.iter().all(|own| !may_be_all(&crate::json::quote(own))));
    }

    #[test]
    fn reminders_are_removed_from_results() {
        for (result, expected) in [
            ("1\tx\n\n<system-reminder>\nBe careful\n</system-reminder>\n", Some("1\tx")),
            ("<system-reminder>a</system-reminder>\nb", Some("\nb")),
            ("a `<system-reminder>` b</system-reminder>", None),
            ("<system-reminder>a", None),
            ("a", None),
        ] {
            assert_eq!(without_reminders(result).as_deref(), expected, "{result}");
        }
    }
}
