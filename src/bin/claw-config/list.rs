//! list, get and path: print settings with their values and origins, and the path of the configuration file.

use crate::all;
use crate::value::{in_effect, to_json};
use clap::ArgMatches;
use clawutils::cli::{ENVIRONMENT, Output};
use clawutils::estimate::windows::Window;
use clawutils::exit::Exit;
use clawutils::json::write::Members;
use clawutils::printable::{printable, printable_json, printable_lines};
use clawutils::settings::place;
use clawutils::settings::{Origin, Setting, SettingValue, ValueKind};
use unicode_width::UnicodeWidthStr;

/// The maximum width of a column of the table, in terminal cells. Wider text overflows its column.
const MAX_COLUMNS: usize = 40;

/// List settings: key, value, and the place that the value comes from
#[derive(Clone, Debug, Default, clap::Args)]
pub struct List {
    /// Keys of the settings to list (default: all)
    #[arg(value_name = "KEY")]
    keys: Vec<String>,
    /// List only settings whose value is not the default
    #[arg(long)]
    changed: bool,
    /// Write one JSON object per setting
    #[arg(long)]
    json: bool,
}

/// Print the value of a setting
#[derive(Clone, Debug, clap::Args)]
pub struct Get {
    /// Key of the setting
    key: String,
    /// Write the value as JSON
    #[arg(long)]
    json: bool,
}

impl List {
    pub fn run(&self) -> anyhow::Result<Exit> {
        for key in &self.keys {
            all::definition(key)?;
        }
        let mut all = all::decided()?;
        let window = all::window(&all);
        all.retain(|(setting, value)| {
            let is_wanted = self.keys.is_empty() || self.keys.contains(&setting.key);
            let is_hidden = self.changed && value.origin == Origin::Default;
            all::is_listed(setting) && is_wanted && !is_hidden
        });
        all.sort_by(|(one, _), (other, _)| one.key.cmp(&other.key));
        let lines: Vec<String> = match self.json {
            true => all.iter().map(|(setting, value)| object(setting, value, window)).collect(),
            false => table(&all, window),
        };
        Output::lines(lines)
    }
}

impl Get {
    pub fn run(&self) -> anyhow::Result<Exit> {
        let wanted = all::definition(&self.key)?;
        let all = all::decided()?;
        let found = all.into_iter().find(|(setting, _)| setting.key == wanted.key);
        let texts = found.map(|(setting, value)| in_effect(&setting, &value)).unwrap_or_default();
        if texts.is_empty() {
            return Ok(Exit::Failed);
        }
        match self.json {
            true => Output::lines([printable_json(&to_json(&wanted, &texts))]),
            false => Output::lines(
                texts.iter().map(|text| printable_lines(&text.to_string_lossy()).into_owned()),
            ),
        }
    }
}

/// Prints the path of the configuration file, which `set` creates if it does not exist.
pub fn path(given: &ArgMatches) -> anyhow::Result<Exit> {
    Output::lines([printable(&place::path(given, ENVIRONMENT)?.to_string_lossy())])
}

/// Returns lines with key, value and origin in columns. A `window` that is not set but known is shown with its origin.
fn table(all: &[(Setting, SettingValue)], window: Option<Window>) -> Vec<String> {
    let row = |(setting, value): &(Setting, SettingValue)| {
        let (plain, origin) = match known_window(setting, value, window) {
            Some(window) => (window.tokens.to_string(), window.origin.described()),
            None => (plain(setting, value), origin(setting, value)),
        };
        [setting.key.clone(), plain, printable(&origin).into_owned()]
    };
    let rows: Vec<[String; 3]> = all.iter().map(row).collect();
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].width());
        widths.filter(|width| *width <= MAX_COLUMNS).max().unwrap_or(0)
    };
    let (keys, values) = (width(0), width(1));
    let pad = |text: &str, width: usize| " ".repeat(width.saturating_sub(text.width()));
    let line = |[key, value, origin]: &[String; 3]| {
        format!("{key}{}  {value}{}  {origin}", pad(key, keys), pad(value, values))
    };
    rows.iter().map(line).collect()
}

/// Returns the window that applies if the setting is the window's and has no value.
fn known_window(setting: &Setting, value: &SettingValue, window: Option<Window>) -> Option<Window> {
    window.filter(|_| setting.key == "window" && value.texts.is_empty())
}

/// Returns the value as plain text; `-` for none.
fn plain(setting: &Setting, value: &SettingValue) -> String {
    let texts = in_effect(setting, value);
    let texts = texts.iter().map(|text| printable(&text.to_string_lossy()).into_owned());
    match texts.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "-".to_owned(),
        text => text,
    }
}

/// Returns the place that a value comes from as plain text.
fn origin(setting: &Setting, value: &SettingValue) -> String {
    match &value.origin {
        Origin::Flag => flag(setting, value),
        Origin::Variable => setting.variable.clone(),
        Origin::File(path, None) => format!("file '{}'", path.display()),
        Origin::File(path, Some(name)) => format!("profile '{name}' in '{}'", path.display()),
        Origin::Default => "default".to_owned(),
    }
}

/// Returns the option that gave the value: the option of the setting, or its opposite, such as `--no-guard`.
fn flag(setting: &Setting, value: &SettingValue) -> String {
    let is_undone = match setting.kind {
        ValueKind::Switch => value.texts == [setting.is_negative().to_string().as_str()],
        _ => value.texts.is_empty(),
    };
    if is_undone { setting.opposite() } else { setting.flag() }
}

/// Returns a setting as a JSON object with its value and its definition.
fn object(setting: &Setting, value: &SettingValue, window: Option<Window>) -> String {
    let (path, profile) = match &value.origin {
        Origin::File(path, profile) => (Some(path), profile.as_deref()),
        _ => (None, None),
    };
    let help = setting.arg.get_help().map(ToString::to_string);
    let possible = setting.arg.get_possible_values();
    let possible = possible.iter().filter(|_| setting.kind != ValueKind::Switch);
    let file = path.map(|path| path.to_string_lossy());
    let known = known_window(setting, value, window);
    let object = Members::new()
        .string("key", &setting.key)
        .raw("value", &to_json(setting, &in_effect(setting, value)))
        .string("origin", &origin(setting, value))
        .or_null(Members::string, "file", file.as_deref())
        .or_null(Members::string, "profile", profile)
        .optional(Members::number, "known", known.map(|it| it.tokens))
        .optional(Members::string, "known_origin", known.map(|it| it.origin.name()))
        .optional(Members::string, "known_date", known.and_then(|it| it.origin.date()).as_deref())
        .string("variable", &setting.variable)
        .string("flag", &setting.flag())
        .or_null(Members::string, "argument", argument(setting).as_deref())
        .string("kind", kind(setting.kind))
        .bool("list", setting.is_list)
        .strings("values", possible.map(|value| value.get_name()))
        .raw("default", &to_json(setting, &setting.defaults()))
        .or_null(Members::string, "help", help.as_deref());
    printable_json(&object.into_json()).into_owned()
}

/// Returns the name of the option's argument in help, such as `TOKENS`.
fn argument(setting: &Setting) -> Option<String> {
    let names = setting.arg.get_value_names().filter(|_| setting.kind != ValueKind::Switch);
    names.and_then(|names| names.first()).map(ToString::to_string)
}

fn kind(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Switch => "switch",
        ValueKind::Number => "number",
        ValueKind::Path => "path",
        ValueKind::Object => "object",
        ValueKind::Text => "text",
    }
}
