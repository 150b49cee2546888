//! Checks README.md and its translations: the examples print what the text says, the commands that a reader would copy
//! work, and every link has a target. The links of the other documents are also checked. Nothing here needs a network
//! or an account.

use std::fs;
use std::path::Path;

use predicates::str::contains;

use crate::common::Sandbox;
use crate::man::{assert_no_complaints, examples, printed_by, programs, wrong_examples};

const TRANSLATIONS: [&str; 2] = ["README.ja.md", "README.zh.md"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Reads a file of the repository.
fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn readme() -> String {
    read("README.md")
}

/// Returns the lines of each code block in a language.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<Vec<&'a str>> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("```") {
            let block = lines.by_ref().take_while(|line| *line != "```").collect();
            if name == language {
                blocks.push(block);
            }
        }
    }
    blocks
}

#[test]
fn examples_print_what_the_readme_says() {
    let readme = readme();
    let lines: Vec<String> =
        blocks(&readme, "console").concat().into_iter().map(str::to_owned).collect();
    let examples = examples(lines);
    assert!(examples.len() > 8, "{examples:?}");
    assert_no_complaints(&wrong_examples("README.md", &examples, &printed_by(&examples)));
}

/// Starting a chat needs an account or a server, so the test only checks the settings and prepares a first turn with
/// --dry-run.
#[test]
fn each_provider_can_be_configured() {
    let readme = readme();
    let mut configured = 0;
    for block in blocks(&readme, "sh") {
        Sandbox::new().sh("sh -n").write_stdin(block.join("\n")).assert().success();
        if block.last() == Some(&"claw-chat") {
            configured += 1;
            let is_setting = |line: &&&str| {
                ["claw-config ", "export ", "unset "].iter().any(|word| line.starts_with(word))
            };
            let settings: Vec<&str> = block.iter().filter(is_setting).copied().collect();
            let prepare = "claw-config check\nclaw-turn --dry-run -m hi s.jsonl";
            let script = format!("set -eu\n{}\n{prepare}", settings.join("\n"));
            Sandbox::new().sh(&script).assert().success();
        }
    }
    assert_eq!(configured, 5, "the number of blocks that start claw-chat");
}

/// Runs the commands in the text of the section "Coming from …", in a directory that has the files that they name.
#[test]
fn the_commands_for_users_of_other_programs_work() {
    let readme = readme();
    let section =
        readme.split("\n## ").find(|part| part.starts_with("Coming from")).expect("the section");
    let section = section.replace("\n  ", " ");
    let spans = section.split('`').skip(1).step_by(2);
    let is_command = |span: &&str| span.contains(' ') && !span.starts_with("agent:");
    let commands: Vec<&str> = spans.filter(is_command).collect();
    assert!(commands.len() >= 5, "{commands:?}");
    let sandbox = Sandbox::new();
    let has_jq = sandbox.sh("command -v jq").assert().get_output().status.success();
    sandbox.write("goclaw.json", r#"{"session":{"compaction":{"reserveTokens":4000}},"llm":{}}"#);
    sandbox.write(
        "messages.json",
        r#"[{"role":"user","content":"Hi."},{"role":"assistant","content":[{"type":"text","text":"Hello."}]}]"#,
    );
    let directory = "workspace/.sessions/agents/claw0/sessions";
    let record = r#"{"type":"user","content":"Hi.","ts":1767225600.5}"#;
    sandbox.write(&format!("{directory}/0123456789ab.jsonl"), format!("{record}\n"));
    sandbox.write(
        ".claude/projects/x/s.jsonl",
        r#"{"type":"user","uuid":"u","parentUuid":null,"message":{"role":"user","content":"Hi."}}"#,
    );
    for command in commands.into_iter().filter(|command| has_jq || !needs_jq(command)) {
        sandbox.sh(command).assert().success();
    }
    if has_jq {
        sandbox.sh("claw-rebuild s.jsonl | wc -l").assert().success().stdout("2\n");
    }
    sandbox.sh("claw-session list").assert().success().stdout(contains("0123456789ab"));
}

/// `scripts/dev/reader` needs only a shell, so it also runs on a machine on which the programs were just installed.
#[test]
fn a_first_time_reader_sees_what_each_readme_says() {
    let files = ["README.md"].into_iter().chain(TRANSLATIONS).map(|name| root().join(name));
    let script = root().join("scripts/dev/reader");
    Sandbox::new().sh(r#"sh "$@""#).arg("sh").arg(script).args(files).assert().success();
}

/// Returns the lines of a block without its comments, because the translations translate them.
fn without_comments(block: Vec<&str>) -> Vec<&str> {
    let code =
        block.into_iter().map(|line| line.split(" # ").next().unwrap_or_default().trim_end());
    code.filter(|line| !line.starts_with('#')).collect()
}

/// Returns the parts of a README that are the same in every language: blocks of commands, names of programs, commands
/// in the text, and links.
fn shared_parts(readme: &str) -> [Vec<String>; 4] {
    let commands = ["console", "sh"].map(|language| blocks(readme, language));
    let commands = commands.concat().into_iter().flat_map(without_comments).map(str::to_owned);
    let rows = readme.lines().filter(|line| line.starts_with("| `"));
    let rows = rows.filter_map(|row| row.split('`').nth(1)).map(str::to_owned);
    let text: String = readme.split("```").step_by(2).collect();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut spans: Vec<String> = text.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    spans.sort();
    let mut targets: Vec<String> = links(readme).into_iter().map(str::to_owned).collect();
    targets.retain(|target| !target.starts_with("README"));
    targets.sort();
    [commands.collect(), rows.collect(), spans, targets]
}

#[test]
fn translations_have_the_commands_programs_and_links_of_the_readme() {
    let original = shared_parts(&readme());
    for name in TRANSLATIONS {
        for (expected, found) in original.iter().zip(shared_parts(&read(name))) {
            let lacks = expected.iter().filter(|part| !found.contains(part));
            let wrong: Vec<String> = lacks.map(|part| format!("{name} lacks: {part}")).collect();
            assert_no_complaints(&wrong);
            assert_eq!(
                &found, expected,
                "{name}: the commands, programs or links differ from README.md, or are in another order"
            );
        }
    }
}

/// Returns the targets of the links and pictures in a Markdown text.
fn links(text: &str) -> Vec<&str> {
    let inline = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let pictures = text.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next());
    inline.chain(pictures).collect()
}

/// Returns the anchors of a Markdown text's headings, as GitHub makes them.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| {
        let title = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        title.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
    };
    headings.map(anchor).collect()
}

/// Returns true if the file that a link names exists, and has the heading that the link names, if any. Links to other
/// sites are not checked.
fn target_exists(file: &str, target: &str) -> bool {
    if target.contains("://") || target.starts_with("mailto:") {
        return true;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let directory = Path::new(file).parent().expect("a file has a directory");
    let path = if path.is_empty() { root().join(file) } else { root().join(directory).join(path) };
    let has_anchor = || {
        let text = fs::read_to_string(&path).unwrap_or_default();
        anchors(&text).iter().any(|own| own == anchor)
    };
    path.exists() && (anchor.is_empty() || has_anchor())
}

/// The pictures that move do so without scripts, for less than 15 seconds, and not at all for a reader who wants none of it.
#[test]
fn the_moving_pictures_are_small_and_short() {
    for name in ["repair", "turn", "history"] {
        let picture = read(&format!("docs/pictures/{name}.svg"));
        assert!(picture.len() < 60_000, "{name}: {} bytes", picture.len());
        let seconds = picture.split("{animation:").nth(1).and_then(|rest| rest.split_once("s "));
        let seconds: f64 = seconds.expect("an animation").0.parse().expect("seconds");
        assert!(seconds < 15.0, "{name}: {seconds} s");
        assert!(!picture.contains("<script") && !picture.contains("href"), "{name}");
        assert!(picture.contains("prefers-reduced-motion"), "{name}");
        // It is of no machine.
        assert!(!picture.contains("/tmp") && !picture.contains("/home"), "{name}");
    }
}

#[test]
fn links_and_references_to_pages_have_a_target() {
    let mut files: Vec<String> =
        ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"].map(str::to_owned).into();
    files.extend(TRANSLATIONS.map(str::to_owned));
    for entry in fs::read_dir(root().join("docs")).expect("docs") {
        let name = entry.expect("an entry of docs").file_name().to_string_lossy().into_owned();
        files.extend(name.ends_with(".md").then(|| format!("docs/{name}")));
    }
    let mut wrong = Vec::new();
    for file in &files {
        let text = read(file);
        let broken = links(&text).into_iter().filter(|target| !target_exists(file, target));
        wrong.extend(broken.map(|target| format!("{file}: {target}")));
        wrong.extend(unknown_pages(&text).map(|page| format!("{file}: no page {page}")));
    }
    // The files of the repository that manual pages name must also exist.
    for page in fs::read_dir(root().join("man")).expect("man") {
        let page = format!("man/{}", page.expect("an entry of man").file_name().to_string_lossy());
        let text = read(&page);
        let paths = text.lines().filter_map(|line| line.strip_prefix(".Pa "));
        let paths = paths.map(|path| path.split(' ').next().unwrap_or_default());
        let paths =
            paths.filter(|path| ["docs/", "examples/"].iter().any(|dir| path.starts_with(dir)));
        wrong.extend(
            paths.filter(|path| !root().join(path).exists()).map(|p| format!("{page}: {p}")),
        );
    }
    assert_no_complaints(&wrong);
}

/// Returns the paragraphs, list items and table rows of a Markdown text.
fn items(text: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    for line in text.lines() {
        if line.is_empty() || line.starts_with("- ") || line.starts_with('|') {
            items.push(String::new());
        }
        let last = items.last_mut().expect("one at least");
        last.push_str(line);
        last.push(' ');
    }
    items.into_iter().map(|item| item.trim().to_owned()).collect()
}

/// Returns the figures in a Markdown text, except those in the targets of links.
fn figures(text: &str) -> Vec<String> {
    let shown: String =
        text.split("](").map(|part| part.split_once(')').map_or(part, |(_, rest)| rest)).collect();
    let words = shown.split(|c: char| !c.is_ascii_digit() && c != '.' && c != ',');
    let words = words.map(|word| word.trim_matches(['.', ',']).to_owned());
    words.filter(|word| !word.is_empty()).collect()
}

/// Returns the rows of docs/why.md that count what each program does with the damage in docs/repair.md.
fn counts_of_outcomes() -> Vec<String> {
    const OUTCOMES: [(&str, &str); 6] = [
        ("is refused, each time", "refused: "),
        ("is refused, and tries again without the block, in each turn", "refused, then tries"),
        ("forgets a part of the conversation", "forgets "),
        ("does not resume", "does not resume"),
        ("goes on", "goes on"),
        ("cannot have the damage", "cannot occur"),
    ];
    let page = read("docs/repair.md");
    let table = page.split("-->\n").nth(1).expect("the table");
    let cells = |row: &str| row.split(" | ").map(str::to_owned).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> =
        table.lines().filter(|row| row.starts_with("| ")).map(cells).collect();
    let (head, rows) = rows.split_first().expect("a table");
    let programs = 1..head.len() - 2;
    let titles = format!("of {} kinds of damage, the program", rows.len());
    let row = |title: &str, cells: Vec<String>| format!("| {title} | {} |", cells.join(" | "));
    let mut counts = vec![row(&titles, head[programs.clone()].to_vec())];
    for (title, begin) in OUTCOMES {
        let count = |program: usize| {
            rows.iter().filter(|row| row[program].starts_with(begin)).count().to_string()
        };
        counts.push(row(title, programs.clone().map(count).collect()));
    }
    counts
}

/// A figure in docs/why.md must be on one of the pages that its paragraph, list item or row links.
#[test]
fn the_figures_of_docs_why_are_on_the_pages_that_it_links() {
    let (page, counts) = (read("docs/why.md"), counts_of_outcomes());
    let absent = counts.iter().filter(|row| !page.lines().any(|line| line == *row));
    let mut wrong: Vec<String> = absent.map(|row| format!("docs/why.md lacks: {row}")).collect();
    let kinds = counts[0].split(',').next().unwrap_or_default().trim_start_matches("| of ");
    wrong.extend((!readme().contains(kinds)).then(|| format!("README.md lacks: {kinds}")));
    let mut checked = 0;
    for item in items(&page).into_iter().filter(|item| !counts.contains(item)) {
        let without_sections = item.replace("(1)", "").replace("(7)", "");
        let figures = figures(&without_sections);
        let links = links(&item);
        let is_own = |link: &&&str| !link.contains("://");
        let pages: Vec<String> =
            links.iter().filter(is_own).map(|link| read(&format!("docs/{link}"))).collect();
        if links.is_empty() && !figures.is_empty() {
            wrong.push(format!("docs/why.md: no page for {figures:?} in: {item}"));
        }
        if !pages.is_empty() {
            checked += figures.len();
            let unknown =
                figures.iter().filter(|own| !pages.iter().any(|page| page.contains(*own)));
            wrong.extend(unknown.map(|own| format!("docs/why.md: {own} is not on {links:?}")));
        }
    }
    assert_no_complaints(&wrong);
    assert!(checked > 15, "only {checked} figures");
}

/// Returns the file names of manual pages that `text` refers to, as in `claw-record(5)`, but that do not exist.
fn unknown_pages(text: &str) -> impl Iterator<Item = String> {
    let is_name = |c: char| c.is_ascii_lowercase() || c == '-' || c.is_ascii_digit();
    let ends = ["(1)", "(5)", "(7)"].into_iter();
    let named = ends.flat_map(move |section| {
        text.match_indices(section).map(move |(at, _)| {
            let name = text[..at].rsplit(|c| !is_name(c)).next().unwrap_or_default();
            format!("{name}.{}", &section[1..2])
        })
    });
    named.filter(|page| page.starts_with("claw") && !root().join("man").join(page).exists())
}

/// Returns true if a command runs jq, or reads the file that jq writes.
fn needs_jq(command: &str) -> bool {
    command.starts_with("jq") || command.contains("config.json")
}

#[test]
fn the_table_names_every_program() {
    let readme = readme();
    let rows: Vec<&str> = readme.lines().filter(|line| line.starts_with('|')).collect();
    let is_named = |name: &String| rows.iter().any(|row| row.contains(&format!("`{name}`")));
    let missing = programs().into_iter().filter(|name| !is_named(name));
    assert_no_complaints(
        &missing.map(|name| format!("README.md: no row for {name}")).collect::<Vec<_>>(),
    );
}
