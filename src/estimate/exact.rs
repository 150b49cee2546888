//! Exact token counts, for the families whose vocabularies are compiled in with the feature `exact`.

use super::{Family, Method, Model};

/// Counts the tokens of `text`; `None` if the tokenizer of the family is not compiled in. The first call loads the
/// vocabulary, which takes about a tenth of a second.
#[cfg(feature = "exact")]
pub(super) fn count(text: &str, family: Family) -> Option<u64> {
    let tokenizer = match family {
        Family::O200k => bpe_openai::o200k_base(),
        Family::Cl100k => bpe_openai::cl100k_base(),
        _ => return None,
    };
    Some(tokenizer.count(text) as u64)
}

#[cfg(not(feature = "exact"))]
pub(super) fn count(_: &str, _: Family) -> Option<u64> {
    None
}

/// Returns the reason why a method cannot be used for a model, or `None` if it can.
#[must_use]
pub fn why_not(method: Method, model: Option<Model<'_>>) -> Option<String> {
    let has_vocabulary =
        model.is_some_and(|model| matches!(model.family, Family::O200k | Family::Cl100k));
    let text = match method {
        Method::Script | Method::Chars4 => return None,
        Method::Exact if !has_vocabulary => {
            let model = model
                .map_or("an unknown model".to_owned(), |model| format!("'{}'", model.name));
            format!("cannot count the tokens of {model} exactly: only the tokenizers of GPT models are included; use --method script or --count api")
        }
        Method::Exact if cfg!(feature = "exact") => return None,
        Method::Exact => "cannot count exactly: this program was built without vocabularies; build it with 'make install EXACT=1'".to_owned(),
    };
    Some(text)
}

#[cfg(all(test, feature = "exact"))]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn counts_are_those_of_tiktoken() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/estimate");
        let table = fs::read_to_string(format!("{directory}/counts.tsv")).unwrap();
        for row in table.lines().filter(|line| !line.starts_with('#')).skip(1) {
            let mut columns = row.split('\t');
            let name = columns.next().unwrap();
            let text = fs::read_to_string(format!("{directory}/{name}.txt")).unwrap();
            for family in [Family::O200k, Family::Cl100k] {
                let counted = columns.next().unwrap().parse().ok();
                assert_eq!(count(&text, family), counted, "{name} {family:?}");
            }
        }
        // Long runs take time in proportion to their length, and special tokens are text.
        for (text, tokens) in [(" ", 7813), ("a", 125_000), (".", 15_625)] {
            assert_eq!(count(&text.repeat(1_000_000), Family::O200k), Some(tokens), "{text}");
        }
        assert!(count("<|endoftext|>", Family::O200k) > Some(3));
    }
}
