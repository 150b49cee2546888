//! Text that programs put into the messages of the user, collected so that neighbouring texts are one fold.

use super::wording::{Language, noun, phrase};

/// The length in bytes above which the texts are shown before more are collected.
const FULL: usize = 256 * 1024;

/// Text of programs that is not shown yet.
#[derive(Debug, Default)]
pub struct Injections {
    names: Vec<String>,
    texts: Vec<String>,
    bytes: usize,
    lines: u64,
}

impl Injections {
    /// Adds a text. Returns true if the texts must be shown before more are added.
    pub fn push(&mut self, name: &str, text: &str) -> bool {
        if !self.names.iter().any(|own| own == name) {
            self.names.push(name.to_owned());
        }
        let text = text.trim_matches('\n');
        self.bytes += text.len();
        self.lines += text.lines().count() as u64;
        self.texts.push(text.to_owned());
        self.bytes > FULL
    }

    /// Returns the texts so far, if there are any, and forgets them.
    pub fn take(&mut self) -> Option<Injections> {
        let own = std::mem::take(self);
        (!own.texts.is_empty()).then_some(own)
    }

    /// Returns the line that stands for the texts: their names, and the number of lines.
    pub fn line(&self, language: Language) -> String {
        let names = self.names.iter().map(|own| name(own, language)).collect::<Vec<_>>().join(", ");
        let lines = language.count(self.lines, noun::LINE);
        format!("{} · {lines}", language.with(phrase::ADDED, &[&names]))
    }

    /// Returns all texts.
    pub fn text(&self) -> String {
        self.texts.join("\n\n")
    }
}

/// The names that text of programs most often has, in Japanese and Chinese.
const NAMES: [(&str, [&str; 2]); 24] = [
    ("system reminder", ["システムリマインダー", "系统提醒"]),
    ("environment", ["環境", "环境"]),
    ("instructions", ["指示", "指令"]),
    ("model", ["モデル", "模型"]),
    ("agents", ["エージェント", "代理"]),
    ("skills", ["スキル", "技能"]),
    ("tools", ["ツール", "工具"]),
    ("tokens left", ["残りトークン", "剩余词元"]),
    ("date", ["日付", "日期"]),
    ("context", ["文脈", "上下文"]),
    ("attribution", ["署名", "署名"]),
    ("caveat", ["注意書き", "注意事项"]),
    ("command", ["コマンド", "命令"]),
    ("command output", ["コマンドの出力", "命令输出"]),
    ("hook output", ["フックの出力", "钩子输出"]),
    ("task notification", ["タスク通知", "任务通知"]),
    ("message from an agent", ["エージェントからのメッセージ", "代理的消息"]),
    ("interruption", ["中断", "中断"]),
    ("open file", ["開いたファイル", "打开的文件"]),
    ("selection", ["選択範囲", "选中内容"]),
    ("summary", ["要約", "摘要"]),
    ("memory", ["メモリ", "记忆"]),
    ("to-do list", ["やることリスト", "待办列表"]),
    ("note", ["メモ", "备注"]),
];

/// Returns a name in a language, if it is known in it.
pub fn name(name: &str, language: Language) -> &str {
    let known = NAMES.iter().find(|(own, _)| *own == name).map(|(_, names)| names);
    match (language, known) {
        (Language::Ja, Some([ja, _])) => ja,
        (Language::Zh, Some([_, zh])) => zh,
        _ => name,
    }
}
