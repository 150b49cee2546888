//! The language of the program's own words: headings, facts and notes. The text of a conversation is never translated.

use crate::estimate::report::grouped;
use std::fmt::Display;

/// A language of the program's own words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Language {
    /// English
    #[default]
    En,
    /// Japanese
    Ja,
    /// Chinese
    Zh,
}

/// A phrase in English, Japanese and Chinese. Each `{}` stands for a value; the values have the same order in all
/// languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phrase(pub [&'static str; 3]);

/// A noun that is counted: in English one and many; in Japanese and Chinese the phrase with the number.
#[derive(Clone, Copy, Debug)]
pub struct Noun(pub [&'static str; 4]);

impl Language {
    /// Returns its code, as in the `lang` attribute of HTML.
    #[must_use]
    pub fn code(self) -> &'static str {
        ["en", "ja", "zh"][self as usize]
    }

    /// Returns a phrase in this language.
    #[must_use]
    pub fn say(self, phrase: Phrase) -> &'static str {
        phrase.0[self as usize]
    }

    /// Returns a phrase with these values.
    #[must_use]
    pub fn with(self, phrase: Phrase, values: &[&dyn Display]) -> String {
        let mut parts = self.say(phrase).split("{}");
        let mut text = parts.next().unwrap_or_default().to_owned();
        for (part, value) in parts.zip(values) {
            text.push_str(&value.to_string());
            text.push_str(part);
        }
        text
    }

    /// Returns a number with its noun.
    #[must_use]
    pub fn count(self, number: u64, noun: Noun) -> String {
        let Noun([one, many, ja, zh]) = noun;
        match (self, number) {
            (Language::En, 1) => format!("1 {one}"),
            (Language::En, _) => format!("{} {many}", grouped(number)),
            (Language::Ja, _) => ja.replace("{}", &grouped(number)),
            (Language::Zh, _) => zh.replace("{}", &grouped(number)),
        }
    }
}

/// Nouns.
pub mod noun {
    use super::Noun;
    pub const TURN: Noun = Noun(["turn", "turns", "{} ターン", "{} 轮"]);
    pub const CALL: Noun = Noun(["call", "calls", "呼び出し {} 回", "{} 次调用"]);
    pub const LINE: Noun = Noun(["line", "lines", "{} 行", "{} 行"]);
    pub const PROMPT: Noun = Noun(["prompt", "prompts", "プロンプト {} 件", "{} 条提示"]);
    pub const SESSION: Noun = Noun(["session", "sessions", "{} セッション", "{} 个会话"]);
    pub const PROJECT: Noun = Noun(["project", "projects", "{} プロジェクト", "{} 个项目"]);
    pub const SUBAGENT: Noun =
        Noun(["subagent", "subagents", "サブエージェント {} 件", "{} 个子代理"]);
    pub const REQUEST: Noun = Noun(["request", "requests", "リクエスト {} 件", "{} 次请求"]);
    pub const FAILURE: Noun = Noun(["failure", "failures", "失敗 {} 件", "{} 次失败"]);
    pub const TOKEN: Noun = Noun(["token", "tokens", "{} トークン", "{} 个词元"]);
    pub const SOURCE: Noun = Noun(["source", "sources", "出典 {} 件", "{} 个来源"]);
    pub const BYTE: Noun = Noun(["byte", "bytes", "{} バイト", "{} 字节"]);
    pub const RECORD: Noun = Noun(["record", "records", "{} レコード", "{} 条记录"]);
    pub const ATTACHMENT: Noun = Noun(["attachment", "attachments", "添付 {} 件", "{} 个附件"]);
    pub const MORE_LINE: Noun = Noun(["more line", "more lines", "ほか {} 行", "另有 {} 行"]);
    pub const EARLIER_TURN: Noun =
        Noun(["earlier turn", "earlier turns", "以前の {} ターン", "较早的 {} 轮"]);
    pub const MESSAGE: Noun = Noun(["message", "messages", "{} メッセージ", "{} 条消息"]);
}

/// Phrases.
pub mod phrase {
    use super::Phrase;
    const fn p(en: &'static str, ja: &'static str, zh: &'static str) -> Phrase {
        Phrase([en, ja, zh])
    }

    pub const TURN: Phrase = p("Turn {}", "ターン {}", "第 {} 轮");
    pub const TURN_CONTINUED: Phrase =
        p("Turn {}, continued", "ターン {}（続き）", "第 {} 轮（续）");
    pub const TURNS_TO: Phrase = p("turns {} to {}", "ターン {}〜{}", "第 {} 至 {} 轮");
    pub const USER: Phrase = p("User", "ユーザー", "用户");
    pub const ASSISTANT: Phrase = p("Assistant", "アシスタント", "助手");
    pub const THINKING: Phrase = p("thinking", "思考", "思考");
    pub const ADDED: Phrase =
        p("added by the program: {}", "プログラムが追加: {}", "由程序添加: {}");
    pub const SUMMARY_TEXT: Phrase = p("text of the summary", "要約の本文", "摘要正文");
    pub const TRANSCRIPT: Phrase =
        p("Transcript of the subagent", "サブエージェントの記録", "子代理的记录");
    pub const RETRACTED: Phrase = p("retracted", "取り消し済み", "已撤回");
    pub const PINNED: Phrase = p("pinned", "固定", "已固定");
    pub const IN: Phrase = p("{} in", "入力 {}", "输入 {}");
    pub const OUT: Phrase = p("{} out", "出力 {}", "输出 {}");
    pub const FROM_CACHE: Phrase = p("{} from cache", "キャッシュ {}", "缓存 {}");
    pub const INTERRUPTED: Phrase = p("interrupted", "中断", "已中断");
    pub const FAILED: Phrase = p("failed", "失敗", "失败");
    pub const DONE_OF: Phrase = p("{} of {} done", "完了 {} / {}", "已完成 {} / {}");
    pub const PLAN: Phrase = p("plan", "計画", "计划");
    pub const SUBAGENT: Phrase = p("subagent {}", "サブエージェント {}", "子代理 {}");
    pub const FORKED: Phrase = p("forked from {}", "{} から分岐", "从 {} 分叉");
    pub const OPEN: Phrase = p("open", "未着手", "未开始");
    pub const IN_PROGRESS: Phrase = p("in progress", "進行中", "进行中");
    pub const DONE: Phrase = p("done", "完了", "完成");
    pub const DROPPED: Phrase = p("dropped", "中止", "已取消");
    pub const SECONDS: Phrase = p("{} s", "{} 秒", "{} 秒");
    pub const MINUTES: Phrase = p("{} min {} s", "{} 分 {} 秒", "{} 分 {} 秒");
    pub const HOURS: Phrase = p("{} h {} min", "{} 時間 {} 分", "{} 小时 {} 分");
    pub const DAYS: Phrase = p("{} d {} h", "{} 日 {} 時間", "{} 天 {} 小时");

    pub const SESSION: Phrase = p("Session", "セッション", "会话");
    pub const NO_OUTPUT: Phrase = p("no output", "出力なし", "无输出");
    pub const ANSWERED: Phrase = p("the result is above", "結果は上にあります", "结果在上方");
    pub const COMPACTION: Phrase = p("compaction", "圧縮", "压缩");
    pub const TRUNCATION: Phrase = p("truncation", "切り詰め", "截短");
    pub const OMISSION: Phrase = p("omission", "省略", "省略");
    pub const CHECKPOINT: Phrase = p("checkpoint", "チェックポイント", "检查点");
    pub const RETRACTION: Phrase = p("retract", "取り消し", "撤回");
    pub const ERROR: Phrase = p("error", "エラー", "错误");
    pub const LABEL: Phrase = p("label", "ラベル", "标签");
    pub const RESULT_SHORTENED: Phrase = p(
        "the result of {} is sent shortened: {}",
        "{} の結果は短くして送られる: {}",
        "{} 的结果将缩短后发送：{}",
    );
    pub const IN_ADVANCE: Phrase =
        p("a summary made in advance", "前もって作られた要約", "提前生成的摘要");
    pub const RECORD_RETRACTED: Phrase =
        p("record {} is retracted", "レコード {} は取り消された", "记录 {} 已撤回");
    pub const LABEL_NOW: Phrase =
        p("the label is now '{}'", "ラベルは「{}」になった", "标签现为“{}”");
    pub const INPUT_OF_CALL: Phrase = p("the input of a call", "呼び出しの入力", "一次调用的输入");
    pub const ONE: Phrase = p("one {}", "{} 1 件", "一个 {}");
    pub const NOT_SENT: Phrase =
        p("{} of record {} is not sent", "{}（レコード {}）は送られない", "{}（记录 {}）不发送");
    pub const RECORDS_ABOVE: Phrase = p("the records above", "上のレコード", "以上记录");
    pub const SUMMARY_OF: Phrase = p("a summary of {}", "{}の要約", "{}的摘要");
    pub const TOKENS_FROM_TO: Phrase = p("{} → {} tokens", "{} → {} トークン", "{} → {} 个词元");
    pub const TOKENS_BEFORE: Phrase =
        p("{} tokens before", "圧縮前 {} トークン", "压缩前 {} 个词元");
    pub const REPLACES: Phrase = p("replaces {}", "{} を置き換える", "替换 {}");
    pub const SUMMARY_MISSING: Phrase = p("the summary is missing", "要約がない", "缺少摘要");
    pub const WINDOW: Phrase = p("window {}", "ウィンドウ {}", "窗口 {}");
    pub const WITHOUT_CALL: Phrase = p(
        "result of call {}, without a call before it",
        "呼び出し {} の結果、前に呼び出しがない",
        "调用 {} 的结果，之前没有该调用",
    );
    pub const SHORTENED: Phrase = p("sent shortened: {}", "短くして送信: {}", "缩短后发送：{}");
    pub const BYTES_OF: Phrase = p("{} of {} bytes", "{} / {} バイト", "{} / {} 字节");
    pub const LEFT_OUT: Phrase = p("{} left out", "{}を省略", "省略 {}");
    pub const NOT_INCLUDED: Phrase = p("not included", "含まれない", "未包含");
    pub const CHART: Phrase = p(
        "Tokens of the context over the turns",
        "ターンごとのコンテキストのトークン数",
        "各轮上下文的词元数",
    );
    pub const LARGEST: Phrase = p(
        "The context was largest in turn {}, with {}, and had {} in the last request.",
        "コンテキストはターン {} で最大の {}、最後のリクエストでは {}。",
        "上下文在第 {} 轮最大，为 {}，最后一次请求为 {}。",
    );
    pub const COMPACTIONS: Phrase =
        p("There were {} compactions.", "圧縮は {} 回。", "共压缩 {} 次。");
    pub const COMPACTED: Phrase = p(
        "A compaction in turn {} reduced it from {} to {}.",
        "ターン {} の圧縮で {} から {} に減った。",
        "第 {} 轮的压缩将其从 {} 减至 {}。",
    );
    pub const DID_NOT_FIT_ALL: Phrase =
        p("{} did not fit.", "{}が入りきらなかった。", "{}超出窗口。");
    pub const DID_NOT_FIT: Phrase = p("{} did not fit", "{} は入りきらない", "{} 超出窗口");
    pub const ESTIMATED_ONE: Phrase = p(
        "{} request is estimated; a provider counted the others.",
        "{} 件は推定値、ほかはプロバイダーの計数。",
        "{} 次请求为估算，其余由提供商计数。",
    );
    pub const ESTIMATED_ALL: Phrase = p(
        "{} requests are estimated; a provider counted the others.",
        "{} 件は推定値、ほかはプロバイダーの計数。",
        "{} 次请求为估算，其余由提供商计数。",
    );
    pub const RESULTS_SHORTENED: Phrase = p("results shortened", "結果を短縮", "结果已缩短");
    pub const COUNTED: Phrase = p("counted", "計数", "计数");
    pub const ESTIMATED: Phrase = p("estimated", "推定", "估算");
    pub const NUMBERS: Phrase = p("Numbers", "数値", "数据");
    pub const TURNS_HEAD: Phrase = p("Turn", "ターン", "轮");
    pub const TOKENS: Phrase = p("Tokens", "トークン", "词元");
    pub const EVENT: Phrase = p("What happened", "出来事", "事件");

    pub const SESSIONS: Phrase = p("Sessions", "セッション", "会话");
    pub const STATISTICS: Phrase = p("Statistics", "統計", "统计");
    pub const PROJECTS: Phrase = p("Projects", "プロジェクト", "项目");
    pub const NO_PROJECT: Phrase = p("Without a project", "プロジェクトなし", "无项目");
    pub const NO_DATE: Phrase = p("Without a date", "日付なし", "无日期");
    pub const PREVIOUS: Phrase = p("Previous", "前へ", "上一个");
    pub const NEXT: Phrase = p("Next", "次へ", "下一个");
    pub const PARENT: Phrase = p("Session of the subagent", "呼び出し元のセッション", "所属会话");
    pub const NEIGHBOURS: Phrase = p("Other sessions", "ほかのセッション", "其他会话");
    pub const PAGES: Phrase = p("Pages", "ページ", "页");
    pub const PAGE_OF: Phrase = p("page {} of {}", "{} / {} ページ", "第 {} 页，共 {} 页");
    pub const SKIP: Phrase = p("Skip to the content", "本文へ移動", "跳到正文");
    pub const TOOLS: Phrase = p("Tools", "ツール", "工具");
    pub const MODELS: Phrase = p("Models", "モデル", "模型");
    pub const PROGRAMS: Phrase = p("Programs", "プログラム", "程序");
    pub const DAYS_OF: Phrase = p("Days", "日別", "按日");
    pub const DAY: Phrase = p("Day", "日", "日期");
    pub const NAME: Phrase = p("Name", "名前", "名称");
    pub const CALLS: Phrase = p("Calls", "呼び出し", "调用");
    pub const TURNS: Phrase = p("Turns", "ターン", "轮次");
    pub const INPUT: Phrase = p("Input", "入力", "输入");
    pub const CACHED: Phrase = p("From cache", "キャッシュ", "缓存");
    pub const COST: Phrase = p("Cost", "費用", "费用");
    pub const OUTPUT: Phrase = p("Output", "出力", "输出");
    pub const TIME: Phrase = p("Time", "時間", "时长");
    pub const CONTEXT: Phrase = p(
        "size of the context, at most {} tokens",
        "コンテキストの大きさ、最大 {} トークン",
        "上下文大小，最多 {} 个词元",
    );
    pub const COMPARISON: Phrase = p("Comparison: {}", "比較: {}", "比较：{}");
    pub const ALL_SAME: Phrase =
        p("The sessions are the same.", "セッションは同じです。", "两个会话相同。");
    pub const ALL_SAME_OF: Phrase =
        p("The sessions are the same: {}", "セッションは同じです: {}", "两个会话相同：{}");
    pub const NOTHING_SAME: Phrase = p(
        "The sessions have no common beginning.",
        "共通の始まりはありません。",
        "两个会话没有共同的开头。",
    );
    pub const SAME_BEGINNING: Phrase =
        p("The same beginning: {}", "共通の始まり: {}", "共同的开头：{}");
    pub const PART_OF_TURN: Phrase = p("a part of turn {}", "ターン {} の一部", "第 {} 轮的一部分");
    pub const AFTER_PARTING: Phrase = p("after that: {}", "その後: {}", "之后：{}");
    pub const SAME: Phrase = p("the same: {}", "同じ: {}", "相同：{}");
    pub const EMPTY: Phrase = p("There are no sessions.", "セッションがありません。", "没有会话。");
    pub const ENDED: Phrase = p("completed", "完了", "已完成");
    pub const CUT_OFF: Phrase = p("cut off", "途中で切れた", "被截断");
    pub const OPEN_CALL: Phrase =
        p("ended in a tool call", "ツール呼び出し中に終了", "在工具调用中结束");
    pub const NO_REPLY: Phrase = p("without a reply", "返答なし", "没有回复");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_values_are_put_into_each_language() {
        for (language, count, with) in [
            (Language::En, "1,200 turns", "turns 3 to 9"),
            (Language::Ja, "1,200 ターン", "ターン 3〜9"),
            (Language::Zh, "1,200 轮", "第 3 至 9 轮"),
        ] {
            assert_eq!(language.count(1200, noun::TURN), count);
            assert_eq!(language.with(phrase::TURNS_TO, &[&3, &9]), with);
        }
        assert_eq!(Language::En.count(1, noun::CALL), "1 call");
        assert_eq!(Language::Zh.code(), "zh");
    }
}
