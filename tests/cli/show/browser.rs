//! Tests of the HTML page in a real browser: the page is parsed as intended, and fits the screen of a phone.

use super::{data, skipped};
use crate::common::{AssertExt, Sandbox};
use clawutils::printable::printable_lines;
use serde_json::Value;
use std::fs;
use std::time::Duration;

/// A page that loads other pages in frames of given widths, and writes its observations into its own document.
const WATCHER: &str = r#"<!doctype html><meta charset="utf-8"><body><pre id="seen"></pre><script>
const pages = PAGES, seen = {}, wait = [];
for (const [name, file, width] of pages) {
  const frame = document.createElement('iframe');
  frame.src = file;
  frame.style.cssText = `border:0;width:${width}px;height:800px`;
  wait.push(new Promise(done => frame.onload = () => {
    const inner = frame.contentDocument, root = inner.documentElement;
    const all = selector => [...inner.querySelectorAll(selector)];
    const box = node => node.getBoundingClientRect();
    for (const node of all('details')) node.open = true;
    const svg = inner.querySelector('figure > svg');
    seen[name] = {
      mode: inner.compatMode,
      overflow: root.scrollWidth - root.clientWidth,
      wide: all('body *').filter(node => !node.closest('pre, svg') && box(node).right > width + 1).map(node => node.outerHTML.slice(0, 80)),
      active: all('script, iframe, object, embed, form, input, link, base, style ~ style').length,
      handlers: all('*').filter(node => node.getAttributeNames().some(name => name.startsWith('on'))).length,
      addresses: all('a').map(node => node.getAttribute('href')),
      images: all('img').map(node => node.naturalWidth),
      turns: all('section').map(node => node.id),
      outside: all('main > *').filter(node => !node.matches('section, p.facts, article, aside')).length,
      users: all('article.user > .plain').map(node => node.textContent),
      results: all('details.result > pre').map(node => node.textContent),
      asides: all('aside').map(node => node.className),
      letters: svg ? [...svg.querySelectorAll('text')].map(node => [box(node).height, box(node).left, box(node).right]) : [],
      drawn: svg ? [box(svg.querySelector('path.size')).width, box(svg).width] : [],
      words: svg ? svg.querySelector('desc').textContent : '',
      paper: frame.contentWindow.getComputedStyle(inner.body).backgroundColor,
    };
    done();
  }));
  document.body.append(frame);
}
Promise.all(wait).then(() => document.getElementById('seen').textContent = JSON.stringify(seen));
</script>"#;

/// Returns the browser's observations of the pages, by name; `None` if there is no browser. In CI, a missing browser is
/// a failure.
pub fn seen(sandbox: &Sandbox, pages: &Value) -> Option<Value> {
    let names = "chromium chromium-browser google-chrome";
    let found =
        sandbox.sh(&format!("for it in {names}; do command -v $it && break; done")).assert();
    let Some(browser) = found.lines().first().cloned() else {
        assert!(std::env::var_os("CI").is_none(), "no browser is installed, and CI is set");
        skipped("no chromium");
        return None;
    };
    sandbox.write("watcher.html", WATCHER.replace("PAGES", &pages.to_string()));
    let options = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
                   --user-data-dir=browser --allow-file-access-from-files --hide-scrollbars \
                   --virtual-time-budget=20000 --dump-dom";
    let script = format!(r#""{browser}" {options} "file://$PWD/watcher.html" 2>errors"#);
    let run = sandbox.sh(&script).timeout(Duration::from_secs(300)).assert().success();
    let text = run.stdout_text();
    let json = text.split(r#"<pre id="seen">"#).nth(1).and_then(|rest| rest.split("</pre>").next());
    let json = json.unwrap_or_default();
    let json = json.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}");
    let seen = serde_json::from_str(&json.replace("&amp;", "&"));
    assert!(seen.is_ok(), "the observations must be JSON\n{run}");
    seen.ok()
}

/// Returns the text of each record of type `kind` in a transcript of `tests/data`, with control characters escaped as
/// on the page.
fn record_texts(name: &str, kind: &str) -> Vec<String> {
    let text = fs::read_to_string(data(name)).expect("a transcript");
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
    let of_kind = records.filter(|record| record["type"] == kind);
    let texts = of_kind.filter_map(|record| match &record["content"] {
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) => blocks[0]["text"].as_str().map(str::to_owned),
        _ => None,
    });
    let shown = |text: String| printable_lines(text.trim_end_matches('\n')).into_owned();
    texts.map(shown).collect()
}

#[test]
fn a_browser_renders_the_page_and_it_fits_a_phone() {
    let sandbox = Sandbox::new();
    for name in ["everything", "hostile"] {
        let show = sandbox.cmd("claw-show").args(["--format", "html"]);
        let page = show.arg(data(&format!("show/{name}.jsonl"))).assert().success();
        sandbox.write(&format!("{name}.html"), &page.get_output().stdout);
    }
    let pages = serde_json::json!([
        ["phone", "everything.html", 360],
        ["screen", "everything.html", 1200],
        ["hostile", "hostile.html", 360]
    ]);
    let Some(seen) = seen(&sandbox, &pages) else { return };
    for (name, page) in seen.as_object().expect("pages") {
        assert_eq!(page["mode"], "CSS1Compat", "{name}");
        assert_eq!(page["overflow"], 0, "{name} scrolls to the side: {}", page["wide"]);
        assert_eq!(page["wide"], serde_json::json!([]), "{name}: the page is cut off");
        assert_eq!((&page["active"], &page["handlers"]), (&0.into(), &0.into()), "{name}");
        assert_eq!(page["outside"], 0, "{name}: content outside the turns");
        for address in page["addresses"].as_array().expect("addresses") {
            let address = address.as_str().unwrap_or_default();
            let known = ["#turn-", "https://example.com", "http://", "mailto:"];
            assert!(known.iter().any(|known| address.starts_with(known)), "{name}: {address}");
        }
        // The labels of the chart are large enough to read, and inside the page.
        let width = if name == "screen" { 1200.0 } else { 360.0 };
        let letters = page["letters"].as_array().expect("texts");
        assert!(letters.len() > 3, "{name}: {letters:?}");
        for letter in letters {
            let at = |index: usize| letter[index].as_f64().expect("a number");
            assert!(at(0) >= 11.0 && at(1) >= 0.0 && at(2) <= width, "{name}: {letter}");
        }
        let [drawn, whole] = [&page["drawn"][0], &page["drawn"][1]].map(|it| it.as_f64());
        assert!(drawn >= whole.map(|whole| whole * 0.95), "{name}: {drawn:?} of {whole:?}");
    }
    let turns = |count: usize| -> Vec<Value> {
        (1..=count).map(|number| format!("turn-{number}").into()).collect()
    };
    let (phone, hostile) = (&seen["phone"], &seen["hostile"]);
    assert_eq!(phone["turns"], Value::Array(turns(4)));
    assert_eq!(phone["images"], serde_json::json!([40]));
    assert!(phone["words"].as_str().is_some_and(|it| it.contains("from 4,010 to 1,200")));
    assert_eq!(hostile["turns"], Value::Array(turns(14)));
    assert_eq!(hostile["images"], serde_json::json!([]));
    // Hostile content stays text.
    assert_eq!(hostile["users"], serde_json::json!(record_texts("show/hostile.jsonl", "user")));
    assert_eq!(
        hostile["results"],
        serde_json::json!(record_texts("show/hostile.jsonl", "tool_result"))
    );
    assert_eq!(hostile["asides"].as_array().map(Vec::len), Some(14 * 5));
}
