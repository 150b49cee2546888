//! The value of a setting as text and as JSON, and its path.

use clawutils::json::{self, Object, quote};
use clawutils::provider::address;
use clawutils::settings::{Setting, SettingValue, ValueKind};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Returns the values in effect, in a form that is safe to show: those that are set, else the default.
pub fn in_effect(setting: &Setting, value: &SettingValue) -> Vec<OsString> {
    let texts = if value.texts.is_empty() { setting.defaults() } else { value.texts.clone() };
    texts.into_iter().map(|text| shown(setting, text)).collect()
}

/// Returns a value in a form that is safe to show: passwords and possible keys in addresses are hidden.
fn shown(setting: &Setting, text: OsString) -> OsString {
    match setting.key.ends_with("url") {
        true => address::shown(&text.to_string_lossy()).into(),
        false => text,
    }
}

/// Returns true if the value of a setting is an object, not the path of a file.
pub fn is_object(text: &OsStr) -> bool {
    text.to_string_lossy().trim_start().starts_with('{')
}

/// Makes the value of a setting absolute if it is a path.
pub fn absolute(setting: &Setting, text: OsString) -> OsString {
    let can_be_path = matches!(setting.kind, ValueKind::Path | ValueKind::Object);
    if !can_be_path || text.is_empty() || is_object(&text) {
        return text;
    }
    std::path::absolute(&text).map_or(text, PathBuf::into_os_string)
}

/// Returns values as JSON: an array for a list, null for no value.
pub fn to_json(setting: &Setting, texts: &[OsString]) -> String {
    let elements: Vec<String> = texts.iter().map(|text| element(setting.kind, text)).collect();
    match elements.as_slice() {
        elements if setting.is_list && !elements.is_empty() => format!("[{}]", elements.join(", ")),
        [one] => one.clone(),
        _ => "null".to_owned(),
    }
}

fn element(kind: ValueKind, text: &OsString) -> String {
    let text = text.to_string_lossy();
    match kind {
        ValueKind::Switch => text.into_owned(),
        ValueKind::Number => number(&text),
        ValueKind::Object if Object::parse(text.trim()).is_ok() => json::on_one_line(text.trim()),
        ValueKind::Object | ValueKind::Path | ValueKind::Text => quote(&text),
    }
}

/// Returns a number in JSON's syntax, which does not allow `+5` or `007`.
fn number(text: &str) -> String {
    let whole = text.parse::<u64>().map(|number| number.to_string());
    let number = whole.or_else(|_| text.parse::<f64>().map(|number| number.to_string()));
    number.unwrap_or_else(|_| quote(text))
}
