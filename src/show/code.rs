//! Syntax highlighting of code.
//!
//! The highlighter splits code into tokens in linear time; it does not parse the grammar. The colours of a
//! line can depend on the lines after it, so only complete code is highlighted.

use super::edit::{self, DiffKind};
use super::inline::Style;
use hl_lite::{Kind as Token, Lang, highlight};

/// The length in bytes above which code is shown without colours.
const MAX_LENGTH: usize = 64 * 1024;

/// How a piece of code is shown, which depends on its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodePart {
    /// The HTML class; `None` if it needs none.
    pub class: Option<&'static str>,
    /// The terminal style.
    pub style: Style,
}

/// Code without a special role.
const PLAIN: CodePart = CodePart { class: None, style: Style::PLAIN };

const fn part(class: &'static str, style: Style) -> CodePart {
    CodePart { class: Some(class), style }
}

impl From<Token> for CodePart {
    fn from(token: Token) -> CodePart {
        match token {
            Token::Plain | Token::Operator | Token::Punctuation => PLAIN,
            Token::Keyword => part("keyword", Style::KEYWORD),
            Token::String => part("string", Style::GREEN),
            Token::Comment => part("comment", Style::DIM),
            Token::Number | Token::Constant => part("value", Style::VALUE),
            Token::Type
            | Token::Function
            | Token::Attribute
            | Token::Property
            | Token::Tag
            | Token::Variable => part("name", Style::CODE),
        }
    }
}

impl From<DiffKind> for CodePart {
    fn from(kind: DiffKind) -> CodePart {
        match kind {
            DiffKind::Same => PLAIN,
            DiffKind::Added => part("added", Style::GREEN),
            DiffKind::Removed => part("removed", Style::RED),
            DiffKind::Place => part("place", Style::CODE),
        }
    }
}

/// Splits the code in a fence with this info string into the parts to colour. Concatenated, they give `text`.
/// Returns `None` if the language is unknown or the code is too long.
pub fn pieces<'t>(info: &str, text: &'t str) -> Option<Vec<(CodePart, &'t str)>> {
    let is_end = |c: char| c.is_whitespace() || matches!(c, ',' | '{' | ':');
    let name = info.trim_start().split(is_end).next().unwrap_or_default();
    if text.len() > MAX_LENGTH {
        return None;
    }
    if ["diff", "patch"].contains(&name) {
        let lines = text.split_inclusive('\n');
        return Some(lines.map(|line| (CodePart::from(edit::kind(line)), line)).collect());
    }
    let tokens = highlight(Lang::from_slug(name)?, text).into_iter();
    Some(tokens.map(|token| (CodePart::from(token.kind), token.text)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(info: &str, text: &str) -> String {
        let Some(pieces) = pieces(info, text) else { return "unknown".to_owned() };
        let piece = |(part, text): (CodePart, &str)| match part.class {
            Some(class) => format!("<{class} {text}>"),
            None => text.to_owned(),
        };
        pieces.into_iter().map(piece).collect()
    }

    #[test]
    fn audit_30_code_is_highlighted_by_its_language() {
        for (info, text, expected) in [
            ("rust,ignore", "let x = 1; // c", "<keyword let> x = <value 1>; <comment // c>"),
            ("python", "if 'a': pass", "<keyword if> <string 'a'>: <keyword pass>"),
            ("sh title=x", "if true", "<keyword if> true"),
            ("json", "{\"a\": null}", "{<name \"a\">: <value null>}"),
            ("diff", "@@ 1 @@\n-a\n+b\n c", "<place @@ 1 @@\n><removed -a\n><added +b\n> c"),
            ("brainfuck", "+", "unknown"),
            ("", "let x", "unknown"),
        ] {
            assert_eq!(shown(info, text), expected, "{info}");
        }
        assert_eq!(pieces("rust", &" ".repeat(MAX_LENGTH + 1)), None);
    }

    #[test]
    fn audit_30_highlighting_keeps_the_text_and_is_fast() {
        let languages = [
            "rust",
            "sh",
            "css",
            "dockerfile",
            "html",
            "js",
            "ts",
            "json",
            "md",
            "py",
            "toml",
            "yaml",
            "diff",
        ];
        let units = [
            "\"",
            "'",
            "`",
            "${",
            "$(",
            "/*",
            "<!--",
            "<a ",
            "{",
            "(",
            "[",
            "'''",
            "\"\"\"",
            "<<E\n",
            "\\",
            "r#\"",
            "/",
            "- ",
            "&a *b",
            "日「\u{301}",
            "\n",
            " ",
            "a:",
            "#",
            "@",
            "!",
            "<![CDATA[",
            "|\n ",
            "b'",
            "0x",
            "=",
            "\r",
            "\0",
        ];
        let long = |unit: &str| unit.repeat(16 * 1024 / unit.len());
        let pairs =
            units.iter().flat_map(|a| units.iter().map(move |b| [*a, b].concat().repeat(9)));
        let texts: Vec<String> = units.iter().map(|unit| long(unit)).chain(pairs).collect();
        let start = std::time::Instant::now();
        for language in languages {
            for text in &texts {
                let pieces = pieces(language, text).unwrap_or_default();
                assert_eq!(pieces.iter().map(|(_, piece)| *piece).collect::<String>(), *text);
            }
        }
        assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
    }
}
