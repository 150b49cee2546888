//! claw-config, and the settings of all programs: where each can be set, and which place takes precedence.

use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use assert_cmd::assert::Assert;
use clawutils::settings::file::{GOCLAW, KEYS};
use predicates::str::contains;
use serde_json::{Map, Value, json};

use crate::common::{AssertExt, Cmd, Sandbox};

/// The default path of the configuration file in a sandbox.
const FILE: &str = ".config/clawutils/config.json";

/// Settings that exclude other settings, and are therefore tested separately.
const EXCLUDED: [&str; 4] = ["emergency", "fallback", "key-cmd", "replay"];

fn config(sandbox: &Sandbox, args: &[&str]) -> Cmd {
    sandbox.cmd("claw-config").args(args)
}

/// Returns the settings that `list --json` prints.
fn listed(run: Assert) -> Vec<Value> {
    run.success().json()
}

fn text(setting: &Value, name: &str) -> String {
    setting[name].as_str().unwrap_or_default().to_owned()
}

/// A setting and values to test it with.
struct Sample {
    key: String,
    variable: String,
    flag: String,
    kind: String,
    is_list: bool,
    default: Value,
    /// The values for the option, the variable, the profile, and the file outside of profiles.
    values: [Vec<String>; 4],
}

impl Sample {
    fn new(setting: &Value) -> Sample {
        let (key, flag, kind) =
            (text(setting, "key"), text(setting, "flag"), text(setting, "kind"));
        let possible: Vec<String> = setting["values"]
            .as_array()
            .expect("an array")
            .iter()
            .map(|it| it.as_str().expect("a string").into())
            .collect();
        let is_negative = flag == format!("--no-{key}");
        let is_list = setting["list"] == json!(true);
        let value = |n: u32| match key.as_str() {
            "reset" => vec![format!("daily@0{n}:30")],
            "via" => vec![format!("ollama:a b'\"é{n}"), "main".to_owned()],
            "temperature" => vec![format!("0.{n}5")],
            "checkpoint-percents" => vec![format!("{}", n + 1), "99".to_owned()],
            _ if !possible.is_empty() => vec![possible[n as usize % possible.len()].clone()],
            _ if is_list => vec![format!("a, b'\"é\\{n}"), "c".to_owned()],
            key => vec![match kind.as_str() {
                "switch" => (n.is_multiple_of(2) != is_negative).to_string(),
                "number" => (7 * n + 1).to_string(),
                "path" => format!("/{key} {n}/'q\"\n$(é)\\"),
                "object" => format!("{{\"a b\":\"{n}'\\n\"}}"),
                _ => format!("{n} '\"\n$(é)\\"),
            }],
        };
        let values = [value(0), value(1), value(2), value(3)];
        let (variable, default) = (text(setting, "variable"), setting["default"].clone());
        Sample { key, variable, flag, kind, is_list, default, values }
    }

    fn is_negative(&self) -> bool {
        self.flag == format!("--no-{}", self.key)
    }

    /// Returns the value with the index `place` in `values`, as it is written in the file.
    fn json(&self, place: usize) -> Value {
        let one = |text: &String| match self.kind.as_str() {
            "switch" | "number" | "object" => serde_json::from_str(text).expect("JSON"),
            _ => json!(text),
        };
        let values = &self.values[place];
        if self.is_list { values.iter().map(one).collect() } else { one(&values[0]) }
    }

    fn variable_value(&self) -> String {
        if self.is_list { self.values[1].join("\n") + "\n" } else { self.values[1][0].clone() }
    }

    /// Returns the options, written with `=` or as two arguments.
    fn options(&self, is_joined: bool) -> Vec<String> {
        if self.kind == "switch" {
            return vec![self.flag.clone()];
        }
        let one = |value: &String| match is_joined {
            true => vec![format!("{}={value}", self.flag)],
            false => vec![self.flag.clone(), value.clone()],
        };
        self.values[0].iter().flat_map(one).collect()
    }

    fn opposite(&self) -> String {
        let name = self.flag.trim_start_matches("--");
        name.strip_prefix("no-").map_or_else(|| format!("--no-{name}"), |name| format!("--{name}"))
    }
}

#[test]
fn each_setting_is_read_from_each_place_in_the_order_of_precedence() {
    let all = listed(config(&Sandbox::new(), &["list", "--json"]).assert());
    let (apart, together): (Vec<_>, Vec<_>) = all
        .iter()
        .map(Sample::new)
        .filter(|sample| sample.key != "profile")
        .partition(|sample| EXCLUDED.contains(&sample.key.as_str()));
    assert!(together.len() > 50, "{}", together.len());
    for group in [together, apart] {
        check_precedence(&group);
    }
}

/// Sets the settings in one place after another, from the lowest to the highest precedence, and checks their values and
/// origins. Then checks that an empty variable selects the default, and that the opposite option cancels a setting.
fn check_precedence(group: &[Sample]) {
    let sandbox = Sandbox::new();
    let members =
        |place| group.iter().map(|it| (it.key.clone(), it.json(place))).collect::<Map<_, _>>();
    let mut file = members(3);
    file.insert("profiles".to_owned(), json!({"p q": members(2)}));
    let path = sandbox.write(FILE, Value::from(file).to_string()).display().to_string();
    let variables: Vec<_> =
        group.iter().map(|it| (it.variable.clone(), it.variable_value())).collect();
    let list = |before: Vec<String>, variables: &[(String, String)], after: Vec<String>| {
        let cmd = sandbox.cmd("claw-config").envs(variables.iter().map(|(n, v)| (n, v)));
        listed(cmd.args(before).args(["list", "--json"]).args(after).assert())
    };
    let profile = || vec!["--profile=p q".to_owned()];
    let check =
        |all: &[Value], value: &dyn Fn(&Sample) -> Value, origin: &dyn Fn(&Sample) -> String| {
            for sample in group {
                let found = all.iter().find(|it| it["key"] == sample.key.as_str()).expect("listed");
                assert_eq!(found["value"], value(sample), "{found}");
                assert_eq!(text(found, "origin"), origin(sample), "{found}");
            }
        };

    check(&list(vec![], &[], vec![]), &|it| it.json(3), &|_| format!("file '{path}'"));
    let of_profile = |_: &Sample| format!("profile 'p q' in '{path}'");
    check(&list(profile(), &[], vec![]), &|it| it.json(2), &of_profile);
    check(&list(vec![], &variables, profile()), &|it| it.json(1), &|it| it.variable.clone());
    let half = group.len() / 2;
    let options = |part: &[Sample], is_joined| -> Vec<String> {
        part.iter().flat_map(|it| it.options(is_joined)).collect()
    };
    let (before, after) = (options(&group[..half], true), options(&group[half..], false));
    let all = list([profile(), before].concat(), &variables, after);
    check(&all, &|it| it.json(0), &|it| it.flag.clone());

    let empty: Vec<_> = group.iter().map(|it| (it.variable.clone(), String::new())).collect();
    check(&list(profile(), &empty, vec![]), &|it| it.default.clone(), &|it| it.variable.clone());

    let free: Vec<&Sample> = group.iter().filter(|it| !it.key.ends_with("fallback")).collect();
    let opposites = free.iter().map(|it| it.opposite()).collect();
    let all = list(opposites, &variables, vec![]);
    for sample in free {
        let found = all.iter().find(|it| it["key"] == sample.key.as_str()).expect("listed");
        let undone = match sample.kind.as_str() {
            "switch" => json!(sample.is_negative()),
            _ => sample.default.clone(),
        };
        assert_eq!(found["value"], undone, "{found}");
        assert_eq!(text(found, "origin"), sample.opposite(), "{found}");
    }
}

#[test]
fn every_setting_has_a_key_a_variable_and_an_option() {
    let all = listed(config(&Sandbox::new(), &["list", "--json"]).assert());
    let keys: Vec<String> = all.iter().map(|setting| text(setting, "key")).collect();
    assert_eq!(keys, KEYS, "the listed keys are not those that the file accepts");
    for setting in &all {
        let (key, flag) = (text(setting, "key"), text(setting, "flag"));
        let variable = format!("CLAW_{}", key.to_uppercase().replace('-', "_"));
        assert_eq!(text(setting, "variable"), variable);
        assert!(flag == format!("--{key}") || flag == format!("--no-{key}"), "{setting}");
        assert!(!text(setting, "help").is_empty(), "{setting}");
    }
    let listed: BTreeSet<String> = all.iter().map(|setting| text(setting, "variable")).collect();
    let mut defined = BTreeSet::new();
    for entry in walkdir::WalkDir::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let path = entry.expect("a readable directory").into_path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let code = std::fs::read_to_string(path).expect("source");
            let names =
                code.split("env = \"CLAW_").skip(1).filter_map(|rest| rest.split('"').next());
            defined.extend(names.map(|name| format!("CLAW_{name}")));
        }
    }
    assert!(defined.remove("CLAW_CONFIG"), "CLAW_CONFIG is not defined");
    assert_eq!(listed, defined);
    assert!(GOCLAW.iter().all(|(_, key)| KEYS.contains(key)));
}

#[test]
fn goclaws_keys_are_aliases_of_settings() {
    let sandbox = Sandbox::new();
    let store_path = sandbox.path(FILE).with_file_name("x");
    sandbox.write(
        FILE,
        r#"{"reserve": 7, "session": {"store": "sqlite", "storePath": "x",
            "checkpoint": {"enabled": false, "tokenThresholdPercents": [10], "turnThreshold": 11, "minTokensForGen": 12},
            "compaction": {"reserveTokens": 13, "preferCheckpoint": true, "retryIntervalSeconds": 14,
                "ollamaFailureThreshold": 15, "ollamaResetMinutes": 16,
                "ollama": {"url": "http://h", "model": "m", "timeoutSeconds": 17, "contextTokens": 18}}}}"#,
    );
    let run = config(&sandbox, &["list", "--json", "--changed"]).assert().success();
    let found: Map<String, Value> =
        run.json().iter().map(|it| (text(it, "key"), it["value"].clone())).collect();
    let expected = json!({
        "checkpoint": false, "checkpoint-percents": [10], "checkpoint-turns": 11, "checkpoint-min-tokens": 12,
        "reserve": 7, "prefer-checkpoint": true, "retry-interval": 14, "max-failures": 15, "failure-reset": 16,
        "ollama-url": "http://h", "ollama-model": "m", "ollama-timeout": 17, "ollama-window": 18,
        "store": "sqlite", "store-path": store_path.display().to_string(),
    });

    assert_eq!(Value::from(found), expected);
    run.stderr("");
    config(&sandbox, &["check"]).assert().success().stderr("");
}

#[test]
#[rustfmt::skip]
fn an_invalid_file_is_reported_with_the_key_and_the_nearest_valid_one() {
    for (file, args, why) in [
        ("[]", "", "invalid type: sequence"),
        (r#"{"modle": "x"}"#, "", "unknown key 'modle'; did you mean 'model'?"),
        (r#"{"qqq": 1}"#, "", "unknown key 'qqq'; claw-config list shows all keys"),
        (r#"{"config": "x"}"#, "", "unknown key 'config'"),
        (r#"{"profiles": {"a": {"windw": 1}}}"#, "", "unknown key 'profiles.a.windw'; did you mean 'window'?"),
        (r#"{"profiles": {"a": {"profile": "b"}}}"#, "", "unknown key 'profiles.a.profile'"),
        (r#"{"profiles": {"a": {}, "b": {}}}"#, "--profile c", "no profile 'c'; the file has a, b"),
        (r#"{"profile": "c"}"#, "", "no profile 'c'; the file has none"),
        (r#"{"profiles": []}"#, "", "'profiles' is not an object; correct it"),
        (r#"{"session": {"compaction": {"reserve": 1}}}"#, "", "unknown key 'session.compaction.reserve'"),
        (r#"{"session": {"compaction": 1}}"#, "", "'session.compaction' is not an object; correct it"),
        (r#"{"window": "8000"}"#, "", "'window' is not a number; correct it"),
        (r#"{"ask": 1}"#, "", "'ask' is not true or false; correct it"),
        (r#"{"model": 1}"#, "", "'model' is not a string; correct it"),
        (r#"{"deny": "x"}"#, "", "'deny' is not an array of strings; correct it"),
        (r#"{"extra": [1]}"#, "", "'extra' is not an object or the path of a file; correct it"),
        (r#"{"session": {"compaction": {"reserveTokens": true}}}"#, "", "'session.compaction.reserveTokens' is not a number"),
    ] {
        let sandbox = Sandbox::new();
        let path = sandbox.write(FILE, file).display().to_string();
        let why = format!("claw-config: cannot use configuration '{path}': {why}");
        let args = args.split_whitespace();
        config(&sandbox, &["list"]).args(args.clone()).assert().code(78).stdout("").stderr(contains(&why));
        if args.clone().count() == 0 {
            config(&sandbox, &["check"]).assert().code(78).stdout("").stderr(contains(&why));
        }
        // The path is printed even if the file is invalid.
        config(&sandbox, &["path"]).assert().success().stdout(format!("{path}\n"));
    }
}

#[test]
#[rustfmt::skip]
fn an_invalid_value_is_reported_with_its_place() {
    for (file, variable, why) in [
        (r#"{"window": -1}"#, ("A", ""), "invalid value '-1' for 'window' in '{}': not a whole number; write digits only, without a unit"),
        (r#"{"provider": "x"}"#, ("A", ""), "invalid value 'x' for 'provider' in '{}': use anthropic, openai, gemini, ollama or offline"),
        ("{}", ("CLAW_WINDOW", "8k"), "invalid value '8k' for CLAW_WINDOW: not a whole number; write digits only, without a unit"),
        ("{}", ("CLAW_ASK", "maybe"), "invalid value 'maybe' for CLAW_ASK: use true or false"),
        (r#"{"key-file": "k", "key-cmd": "c"}"#, ("A", ""), "'key-file' in '{}' and 'key-cmd' in '{}' exclude each other; unset one"),
        (r#"{"no-fallback": true, "emergency": true}"#, ("A", ""), "exclude each other; unset one"),
    ] {
        let sandbox = Sandbox::new();
        let path = sandbox.write(FILE, file).display().to_string();
        let why = why.replace("{}", &path);
        config(&sandbox, &["list"]).env(variable.0, variable.1).assert().code(78).stderr(contains(&why));
    }
    let sandbox = Sandbox::new();
    config(&sandbox, &["get", "modle"]).assert().code(2).stderr("claw-config: unknown key 'modle'; did you mean 'model'?\n");
    config(&sandbox, &["get", "modle"]).env("CLAW_LOG", "json").assert().code(2).stderr(contains(r#""status":2"#));
    config(&sandbox, &["--key-file=a", "--key-cmd=b"]).assert().code(2).stderr(contains("exclude each other"));
    config(&sandbox, &["--window=8k"]).assert().code(2).stderr(contains("invalid value '8k' for --window"));
}

#[test]
fn a_setting_overrides_one_of_lower_precedence_that_it_excludes() {
    let sandbox = Sandbox::new();
    sandbox.write(FILE, r#"{"key-cmd": "outside", "profiles": {"p": {"key-file": "/inside"}}}"#);
    let get = |args: &[&str], variable: &str| {
        let keys = ["key-cmd", "key-file"].map(|key| {
            let run =
                config(&sandbox, args).args(["get", key]).env("CLAW_KEY_CMD", variable).assert();
            run.stdout_text()
        });
        keys.concat()
    };
    assert_eq!(get(&["--profile", "p"], "variable"), "variable\n");
    assert_eq!(get(&["--profile", "p", "--key-file", "/flag"], "variable"), "/flag\n");
    config(&sandbox, &["--profile", "p", "get", "key-cmd"]).assert().code(1).stdout("").stderr("");
    config(&sandbox, &["--profile", "p", "get", "key-file"]).assert().success().stdout("/inside\n");
}

#[test]
fn paths_in_the_file_are_relative_to_its_directory() {
    let sandbox = Sandbox::new();
    sandbox.write("c/x.json", r#"{"system": "s/p", "tools": "~/t", "extra": "e", "ca": "/a"}"#);
    let directory = sandbox.path("c");
    for (key, path) in [
        ("system", directory.join("s/p")),
        ("tools", sandbox.path("t")),
        ("extra", directory.join("e")),
        ("ca", "/a".into()),
    ] {
        let expected = format!("{}\n", path.display());
        let file = directory.join("x.json").display().to_string();
        config(&sandbox, &["--config", &file, "get", key])
            .assert()
            .success()
            .stdout(expected.clone());
    }
    config(&sandbox, &["get", "system"])
        .env("CLAW_CONFIG", "c/x.json")
        .assert()
        .success()
        .stdout("c/s/p\n");
    for run in [
        config(&sandbox, &["get", "system"]).env("CLAW_CONFIG", "").assert(),
        config(&sandbox, &["--no-config", "get", "system"]).env("CLAW_CONFIG", "c/x.json").assert(),
    ] {
        run.code(1).stdout("").stderr("");
    }
}

#[test]
fn settings_that_are_set_at_once_are_all_kept() {
    let sandbox = Sandbox::new();
    config(&sandbox, &["--config=c.json", "set", "model", "m"]).assert().success();
    let keys: Vec<String> = (0..20).map(|number| format!("p{number}")).collect();
    std::thread::scope(|scope| {
        for key in &keys {
            let args = ["--config=c.json", "--profile", key, "set", "model", "m"];
            let cmd = config(&sandbox, &args);
            scope.spawn(move || cmd.assert().success());
        }
    });
    let text = sandbox.read_text("c.json");
    assert!(keys.iter().all(|key| text.contains(&format!("\"{key}\""))), "{text}");
}

#[test]
fn set_and_unset_change_only_their_key_in_the_file() {
    let sandbox = Sandbox::new();
    let before =
        "{\n  \"session\": {\"compaction\": {\"reserveTokens\": 5}},\n  \"model\" : \"a\"\n}\n";
    let path = sandbox.write(FILE, before);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
    let set = |args: &[&str]| {
        config(&sandbox, &["set"]).args(args).assert().success().stdout("").stderr("");
    };
    set(&["window", "8000"]);
    set(&["model", "b \"c\"\n\u{e9}"]);
    set(&["reserve", "6"]);
    set(&["via", "ollama:x,y", "main"]);
    set(&["--profile", "local", "ask", "on"]);
    set(&["extra", "{\"a\": [1, 2.50]}", "--profile", "local"]);
    set(&["system", "sub/p"]);
    set(&["temperature", "+.50"]);
    let system = sandbox.path("sub/p");
    let after = format!(
        "{{\n  \"session\": {{\"compaction\": {{\"reserveTokens\": 5}}}},\n  \"model\" : \"b \\\"c\\\"\\n\u{e9}\",\n  \
         \"window\" : 8000,\n  \"reserve\" : 6,\n  \"via\" : [\"ollama:x,y\", \"main\"],\n  \"profiles\" : {{\n    \
         \"local\": {{\n      \"ask\": true,\n      \"extra\": {{\"a\": [1, 2.50]}}\n    }}\n  }},\n  \
         \"system\" : \"{}\",\n  \"temperature\" : 0.5\n}}\n",
        system.display()
    );
    assert_eq!(sandbox.read_text(FILE), after);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    config(&sandbox, &["get", "reserve"]).assert().success().stdout("6\n");
    config(&sandbox, &["get", "via"]).assert().success().stdout("ollama:x,y\nmain\n");
    config(&sandbox, &["get", "--json", "extra", "--profile=local"])
        .assert()
        .success()
        .stdout("{\"a\": [1, 2.50]}\n");

    for args in [
        &["window"][..],
        &["reserve"],
        &["via"],
        &["system"],
        &["temperature"],
        &["ask", "--profile=local"],
        &["extra", "--profile=local"],
        &["model", "--profile=none"],
        &["idle"],
    ] {
        config(&sandbox, &["unset"]).args(args).assert().success().stdout("").stderr("");
    }
    config(&sandbox, &["set", "model", "a"]).assert().success();
    let profiles = ",\n  \"profiles\" : {\n    \"local\": {}\n  }\n}\n";
    assert_eq!(sandbox.read_text(FILE), before.replace("\n}\n", profiles));
    config(&sandbox, &["get", "reserve"]).assert().success().stdout("5\n");
}

#[test]
fn a_new_file_is_private_and_a_symbolic_link_is_followed() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path(".config")).unwrap();
    config(&sandbox, &["set", "stream", "yes"]).assert().success();
    assert_eq!(sandbox.read_text(FILE), "{\n  \"stream\": true\n}\n");
    let mode =
        |name: &str| std::fs::metadata(sandbox.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(FILE), mode(".config/clawutils")), (0o600, 0o700));
    std::fs::create_dir(sandbox.path("kept")).unwrap();
    symlink("kept/real.json", sandbox.path("link.json")).unwrap();
    for value in ["1", "2"] {
        config(&sandbox, &["--config=link.json", "set", "window", value]).assert().success();
        assert_eq!(sandbox.read_text("kept/real.json"), format!("{{\n  \"window\": {value}\n}}\n"));
    }
    assert!(std::fs::symlink_metadata(sandbox.path("link.json")).unwrap().is_symlink());
    let names: Vec<_> = std::fs::read_dir(sandbox.path("kept")).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
#[rustfmt::skip]
fn an_invalid_value_is_not_written() {
    let sandbox = Sandbox::new();
    sandbox.write(FILE, r#"{"modle": "x"}"#);
    for (args, status, why) in [
        (&["set", "windw", "1"][..], 2, "unknown key 'windw'; did you mean 'window'?"),
        (&["set", "window", "8k"], 2, "invalid value '8k' for 'window': not a whole number; write digits only, without a unit"),
        (&["set", "window", "-5"], 2, "invalid value '-5' for 'window': not a whole number; write digits only, without a unit"),
        (&["set", "window", ""], 2, "a value is required for 'window'"),
        (&["set", "ask", "maybe"], 2, "invalid value 'maybe' for 'ask': use true or false"),
        (&["set", "provider", "x"], 2, "invalid value 'x' for 'provider': use anthropic, openai, gemini, ollama or offline"),
        (&["set", "checkpoint-percents", "50,101"], 2, "invalid value '101' for 'checkpoint-percents': not a percentage"),
        (&["set", "model", "a", "b"], 2, "'model' takes one value; give one"),
        (&["set", "--profile", "p", "profile", "q"], 2, "a profile cannot select a profile; leave --profile out"),
        (&["set", "--no-config", "model", "x"], 78, "no configuration file: disabled by --no-config or CLAW_CONFIG; give --config"),
        (&["set", "extra", "{\"a\":"], 2, "cannot use '--extra': not a JSON object: EOF while parsing a value at line 1 column 5; "),
        (&["unset", "windw"], 2, "unknown key 'windw'; did you mean 'window'?"),
    ] {
        config(&sandbox, args).assert().code(status).stdout("").stderr(contains(format!("claw-config: {why}")));
        assert_eq!(sandbox.read_text(FILE), r#"{"modle": "x"}"#);
    }
    config(&sandbox, &["set", "profile", "p"]).assert().code(78).stderr(contains("cannot change")).stderr(contains("config.json': no profile 'p'; the file has none"));
    // An unknown key can be removed.
    config(&sandbox, &["unset", "modle"]).assert().success();
    assert_eq!(sandbox.read_text(FILE), "{}");
    sandbox.write(FILE, "[]");
    config(&sandbox, &["set", "model", "x"]).assert().code(78).stderr(contains("invalid type: sequence"));
    assert_eq!(sandbox.read_text(FILE), "[]");
}

#[test]
fn check_reports_errors_in_all_profiles() {
    let sandbox = Sandbox::new();
    sandbox.write("key", "k");
    sandbox.sh("chmod 644 key").assert().success();
    sandbox.write(
        FILE,
        r#"{"system": "none", "windw": 1, "workspace": "later", "replay": "gone", "call": "x=1 no-such-program -v",
            "profiles": {"a": {"window": "1"}, "b": {"window": -1, "key-file": "~/key", "key-cmd": "c", "call": "cat | x"}}}"#,
    );
    let (file, home) = (sandbox.path(FILE), sandbox.dir().display().to_string());
    let (file, directory) = (file.display(), sandbox.path(".config/clawutils"));
    let mut run = config(&sandbox, &["check"]).assert().code(78).stdout("");
    for line in [
        format!("cannot use configuration '{file}': unknown key 'windw'; did you mean 'window'?"),
        format!(
            "cannot use configuration '{file}': 'profiles.a.window' is not a number; correct it"
        ),
        format!(
            "invalid value '-1' for 'profiles.b.window' in '{file}': not a whole number; write digits only, without a unit"
        ),
        format!(
            "'system' in '{file}': cannot read '{}/none': no such file or directory; check the path",
            directory.display()
        ),
        format!(
            "'replay' in '{file}': cannot read '{}/gone': no such file or directory; check the path",
            directory.display()
        ),
        format!(
            "'call' in '{file}': cannot run 'no-such-program': no such command; give its path, or install it"
        ),
        format!(
            "'profiles.b.key-file' in '{file}': cannot read key file '{home}/key': other users may read it; run chmod 600 on it"
        ),
    ] {
        run = run.stderr(contains(format!("claw-config: {line}\n")));
    }
    assert_eq!(run.stderr_text().lines().count(), 8, "{}", run.stderr_text());
    sandbox.write(FILE, "{}");
    config(&sandbox, &["check"]).assert().success().stdout("").stderr("");
    config(&sandbox, &["check"]).env("CLAW_CA", "none").assert().code(78).stderr(
        "claw-config: CLAW_CA: cannot read 'none': no such file or directory; check the path\n",
    );
}

#[test]
fn check_names_the_profile_of_a_conflict_and_reads_objects() {
    let sandbox = Sandbox::new();
    sandbox.write("array.json", "[]");
    let text = r#"{"extra": "array.json", "profiles": {"a": {"extra": "{"}, "b": {"key-file": "key", "key-cmd": "c"}}}"#;
    sandbox.write("c.json", text);
    sandbox.sh("echo k >key && chmod 600 key").assert().success();
    let run = config(&sandbox, &["--config", "c.json", "check"])
        .assert()
        .code(78)
        .stderr(contains("'extra' in 'c.json': cannot use 'array.json': not a JSON object: "))
        .stderr(contains(
            "'profiles.a.extra' in 'c.json': cannot use '--extra': not a JSON object: ",
        ));
    let conflict = "'profiles.b.key-cmd' in 'c.json' exclude each other; unset one\n";
    let run = run
        .stderr(contains(format!("claw-config: 'profiles.b.key-file' in 'c.json' and {conflict}")));
    assert_eq!(run.stderr_text().lines().count(), 3, "{}", run.stderr_text());
    let set = |args: &[&str]| config(&sandbox, &["--config", "c.json", "set"]).args(args).assert();
    set(&["key-file", "key"]).success();
    set(&["key-cmd", "c"])
        .code(78)
        .stderr(contains("cannot change 'c.json': 'key-file' in 'c.json' and 'key-cmd' in "));
}

#[test]
fn check_takes_time_in_proportion_to_the_number_of_profiles() {
    let sandbox = Sandbox::new();
    let profile = |n: u32| (format!("p{n}"), json!({"model": format!("m{n}")}));
    let profiles: Map<String, Value> = (0..3000).map(profile).collect();
    sandbox.write("c.json", json!({ "profiles": profiles }).to_string());
    // A limit of 20 seconds of processor time, which passes more slowly on a loaded machine.
    sandbox.sh("ulimit -t 20; exec claw-config --config c.json check").assert().success();
}

#[test]
fn options_before_the_command_shell_apply_to_the_script() {
    let sandbox = Sandbox::new();
    sandbox.write("c.json", r#"{"profiles": {"p": {"model": "mine"}}}"#);
    let script = "code=$(claw-config --config=c.json \"$@\") && eval \"$code\" && echo $stream && \
        claw-config get model";
    for options in [
        &["--stream", "--provider=offline", "--profile", "p", "shell", "turn", "--"][..],
        &["shell", "--profile=p", "turn", "--", "--provider=offline", "--stream"],
        &["--profile=q", "shell", "turn", "--", "--stream", "--profile=p", "--provider=offline"],
    ] {
        let script = sandbox.sh(script).arg("sh").args(options);
        script.args(["-m", "hi", "s.jsonl"]).assert().success().stdout("yes\nmine\n");
    }
    config(&sandbox, &["--window=1", "shell", "chat", "--", "--window", "x"])
        .assert()
        .code(2)
        .stdout("")
        .stderr(contains("claw-chat: invalid value 'x' for --window"));
    config(&sandbox, &["--log=json", "shell", "turn", "--", "--nope"])
        .assert()
        .code(2)
        .stderr(contains(r#"{"program":"claw-turn","#));
}

#[test]
fn secrets_are_hidden_and_control_characters_escaped() {
    let sandbox = Sandbox::new();
    let cmd = || {
        let cmd =
            sandbox.cmd("claw-config").env("CLAW_BASE_URL", "https://me:secret@h/v1?key=secret");
        cmd.env("CLAW_MODEL", "a\u{1b}[31mb").args(["--ollama-url", "http://me:secret@h"])
    };
    for args in
        [&["list"][..], &["list", "--json"], &["get", "base-url"], &["get", "--json", "model"]]
    {
        let text = cmd().args(args).assert().success().stdout_text();
        assert!(!text.contains("secret") && !text.contains('\u{1b}'), "{text}");
    }
    cmd()
        .args(["get", "base-url"])
        .assert()
        .success()
        .stdout("https://(hidden)@h/v1?key=(hidden)\n");
    cmd().args(["get", "model"]).assert().success().stdout("a\\u{1b}[31mb\n");
    let table = cmd().args(["list", "--changed"]).assert().success().stdout_text();
    let columns = |line: &str| line.find("CLAW_").or_else(|| line.find("--ollama"));
    let places: BTreeSet<_> = table.lines().map(columns).collect();
    assert_eq!((table.lines().count(), places.len()), (3, 1), "{table}");
}
