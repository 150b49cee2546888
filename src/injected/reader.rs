//! Separates the parts of a message.

use super::Part;
use super::forms::Shape::{Arguments, Inner, Typed};
use super::forms::{FORMS, Form};
use std::borrow::Cow;

/// Separates the text of a program from the words of the person. Blank parts are left out.
#[must_use]
pub fn parts(text: &str) -> Vec<Part<'_>> {
    let mut reader =
        Reader { text, parts: Vec::new(), unclosed: [false; FORMS.len()], command: None };
    reader.read();
    reader.parts
}

/// The reader of a message.
struct Reader<'a> {
    text: &'a str,
    parts: Vec<Part<'a>>,
    /// For each form, true after its tag was found without an end.
    unclosed: [bool; FORMS.len()],
    /// The index of the part with the newest command, whose arguments may follow.
    command: Option<usize>,
}

impl<'a> Reader<'a> {
    fn read(&mut self) {
        let (mut from, mut at) = (0, 0);
        let begin = self.text.len() - self.text.trim_start().len();
        if let Some(end) = self.beginning(begin) {
            (from, at) = (end, end);
        }
        while let Some(found) = memchr::memchr(b'<', &self.text.as_bytes()[at..]) {
            let place = at + found;
            at = place + 1;
            let line = self.text[from..place].rfind('\n').map_or(from, |feed| from + feed);
            if !self.text[line..place].trim().is_empty() {
                continue;
            }
            if let Some((index, inner, end)) = self.span(place) {
                self.typed(&self.text[from..place]);
                self.put(&FORMS[index], &self.text[place..end], inner);
                (from, at) = (end, end);
            }
        }
        self.typed(&self.text[from..]);
    }

    /// Adds a text of a program at the beginning that is not in a tag, and returns its end.
    fn beginning(&mut self, begin: usize) -> Option<usize> {
        let text = &self.text[begin..];
        let (form, length) = FORMS.iter().find_map(|form| Some((form, form.shape.end(text)?)))?;
        self.parts.push(Part::Program { name: form.name, text: &text[..length] });
        Some(begin + length)
    }

    /// Returns the form of the tag at `place`, its content, and the end of its closing tag.
    fn span(&mut self, place: usize) -> Option<(usize, &'a str, usize)> {
        let text = &self.text[place..];
        let opened = |tag: &str| {
            let rest = text[1..].strip_prefix(tag)?;
            let close = rest.find('>')?;
            let is_tag = close == 0 || rest.starts_with(char::is_whitespace);
            (is_tag && !rest[..close].contains('\n')).then(|| 1 + tag.len() + close + 1)
        };
        let (index, tag, open) = FORMS.iter().enumerate().find_map(|(index, form)| {
            let tag = form.shape.tag()?;
            Some((index, tag, opened(tag)?))
        })?;
        if self.unclosed[index] {
            return None;
        }
        let (open_again, close) = (format!("<{tag}>"), format!("</{tag}>"));
        let (mut depth, mut at) = (1, open);
        while let Some(found) = text[at..].find(&close) {
            depth += text[at..at + found].matches(&open_again).count();
            depth -= 1;
            at += found + close.len();
            if depth == 0 {
                return Some((index, &text[open..at - close.len()], place + at));
            }
        }
        if at > open {
            return Some((index, &text[open..at], place + at));
        }
        self.unclosed[index] = true;
        None
    }

    fn put(&mut self, form: &Form, text: &'a str, inner: &'a str) {
        match form.shape {
            Typed(tag, mark) => {
                self.typed_with(mark, inner);
                self.command = (tag == "command-name").then(|| self.parts.len() - 1);
            }
            Arguments(_) => self.arguments(inner),
            Inner(_, tag, mark) => {
                let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
                let own = inner.split_once(&open).and_then(|(_, rest)| rest.split_once(&close));
                own.into_iter().for_each(|(own, _)| self.typed_with(mark, own));
                self.parts.push(Part::Program { name: form.name, text });
            }
            _ => self.parts.push(Part::Program { name: form.name, text }),
        }
    }

    fn typed(&mut self, text: &'a str) {
        let text = text.trim_matches(['\n', '\r']);
        if !text.trim().is_empty() {
            self.parts.push(Part::Typed(Cow::Borrowed(text)));
        }
    }

    fn typed_with(&mut self, mark: &str, text: &'a str) {
        let text = text.trim();
        let text = if mark.is_empty() { text.into() } else { Cow::Owned(format!("{mark}{text}")) };
        self.parts.push(Part::Typed(text));
    }

    fn arguments(&mut self, text: &'a str) {
        let text = text.trim();
        match self.command.take().and_then(|index| self.parts.get_mut(index)) {
            _ if text.is_empty() => {}
            Some(Part::Typed(command)) => command.to_mut().push_str(&format!(" {text}")),
            _ => self.parts.push(Part::Typed(Cow::Borrowed(text))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the parts on one line each, those of a program after its name.
    fn shown(text: &str) -> Vec<String> {
        let line = |part| match part {
            Part::Typed(text) => text.into_owned(),
            Part::Program { name, text } => format!("[{name}] {}", text.len()),
        };
        parts(text).into_iter().map(line).collect()
    }

    #[test]
    fn the_words_of_the_person_are_separated() {
        for (text, expected) in [
            ("Fix the bug", &["Fix the bug"][..]),
            ("<system-reminder>\nx\n</system-reminder>", &["[system reminder] 38"]),
            (
                "a\n<system-reminder>x</system-reminder>\n直して",
                &["a", "[system reminder] 36", "直して"],
            ),
            ("<ide_opened_file>x</ide_opened_file>Refactor", &["[open file] 36", "Refactor"]),
            (
                "<command-message>init is running…</command-message>\n<command-name>/init</command-name>\n  <command-args>now</command-args>",
                &["[command] 53", "/init now"],
            ),
            ("<command-name>/clear</command-name><command-args></command-args>", &["/clear"]),
            ("<bash-input>ls -l</bash-input>", &["!ls -l"]),
            (
                "<user_shell_command>\n<command>\nls\n</command>\n<result>x</result></user_shell_command>",
                &["!ls", "[command output] 84"],
            ),
            (
                "# Context from my IDE setup:\n\n## Active file: a\n\n## My request for Codex:\n修复\n",
                &["[editor] 73", "修复"],
            ),
            (
                "# AGENTS.md instructions for /a\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>\n",
                &["[instructions] 65"],
            ),
            ("[Request interrupted by user for tool use]", &["[interruption] 42"]),
            // Words about a form are the person's.
            ("What does `<system-reminder>` mean?", &["What does `<system-reminder>` mean?"]),
            ("see\n<system-reminder>\nno end", &["see\n<system-reminder>\nno end"]),
            ("<div>\nWhy?\n</div>", &["<div>\nWhy?\n</div>"]),
            ("<system-reminders>x", &["<system-reminders>x"]),
            ("<system-reminder>\nno end", &["<system-reminder>\nno end"]),
            ("# AGENTS.md instructions are long", &["# AGENTS.md instructions are long"]),
            ("System: Please continue. And test", &["System: Please continue. And test"]),
            ("[Image: source: what is it?", &["[Image: source: what is it?"]),
            ("Stop hook feedback: why?", &["Stop hook feedback: why?"]),
            ("<environment_details> is in it", &["<environment_details> is in it"]),
            (
                "<system-reminder>a<system-reminder>b</system-reminder>c</system-reminder>d",
                &["[system reminder] 73", "d"],
            ),
            ("", &[]),
            (" \n ", &[]),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn many_openings_without_an_end_are_read_in_one_pass() {
        let text = format!("x\n{}", "<system-reminder>\n<ide_selection>\n".repeat(50_000));
        assert_eq!(parts(&text).len(), 1);
    }
}
