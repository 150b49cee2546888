use super::*;
use crate::json::{Object, elements};

fn deep(levels: usize) -> String {
    ["[".repeat(levels), "]".repeat(levels)].concat()
}

#[test]
fn an_outline_accepts_what_serde_json_accepts() {
    let texts = [
        r#"{}"#,
        r#" { } "#,
        r#"{"a":1}"#,
        "{\"a\" :\t1 ,\r\"b\":[ ]}",
        r#"{"a":1,}"#,
        r#"{,}"#,
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1 "b":2}"#,
        r#"{"a":[1,]}"#,
        r#"{"a":[1 2]}"#,
        r#"{"a":[1}"#,
        r#"{"a":{]}"#,
        r#"{"a":01}"#,
        r#"{"a":-1.5e+3}"#,
        r#"{"a":"\q"}"#,
        r#"{"a":"\ud800"}"#,
        r#"{"a":tru}"#,
        r#"{"a":null} x"#,
        r#"{a:1}"#,
        r#"{"a":[[],{},"x",null,true]}"#,
        "",
        "{",
        r#"{"a":"#,
        "[",
        "1",
        "\"x\"",
    ];
    let deep = format!(r#"{{"a":{}}}"#, deep(900));
    let mut outline = Outline::default();
    for text in texts.into_iter().chain([deep.as_str()]) {
        let expected = serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
        let found = outline.read(text, 1000).map(|value| value.text());
        assert_eq!(found, expected.then(|| text.trim()), "{text}");
    }
    assert!(outline.read(&deep, 900).is_none(), "too deep");
}

#[test]
fn values_are_the_same_as_those_of_objects() {
    let text =
        r#"{"z":1e2,"b":[{"c":"x"},7,["y"],"s"],"z":-0.0,"\u0061":{"d":true,"e":{}}, "f" : "t" }"#;
    let (mut outline, object) = (Outline::default(), Object::parse(text).unwrap());
    let value = outline.read(text, 64).unwrap();
    let names = ["z", "b", "a", "f", "missing", ""];
    for name in names {
        assert_eq!(value.get(name), object.get(name), "{name}");
    }
    assert_eq!(value.texts(names), names.map(|name| object.get(name)));
    assert_eq!(value.member_count(), object.members().count());
    let texts: Vec<&str> = value.list("b").map(Value::text).collect();
    let strings_and_lists = |raw: &&str| *raw != "7";
    let all = elements(object.get("b").unwrap()).unwrap();
    assert_eq!(texts, all.into_iter().filter(strings_and_lists).collect::<Vec<_>>());
    assert_eq!(value.list("b").next().unwrap().string("c").as_deref(), Some("x"));
    assert!(value.object("a").is_some_and(|inner| inner.is_true("d")));
    assert!(value.object("b").is_none() && value.list("z").next().is_none());
    assert_eq!(value.quoted("f"), Some("\"t\""));
}

#[test]
fn a_name_may_be_long() {
    for length in [0, 1, MAX_LENGTH - 1, MAX_LENGTH, MAX_LENGTH + 1] {
        let name = "n".repeat(length);
        let text = format!(r#"{{"{name}":1}}"#);
        let mut outline = Outline::default();
        let value = outline.read(&text, 1).unwrap();
        assert_eq!(value.texts(["x", &name]), [None, Some("1")], "{length}");
        assert_eq!(value.get(&name), Some("1"), "{length}");
    }
}

#[test]
fn values_below_the_last_level_are_only_text() {
    let text = format!(r#"{{"a":{}{}{}}}"#, "[".repeat(20), r#"{"b":1}"#, "]".repeat(20));
    let mut outline = Outline::default();
    let value = outline.read(&text, 64).unwrap();
    assert_eq!(value.get("a"), Object::parse(&text).unwrap().get("a"));
    assert_eq!(outline.nodes.len(), LEVELS + 1);
}

#[test]
fn values_of_several_texts_are_kept_together() {
    let texts = [r#"{"a":[1,"x"]}"#, r#"{"a":"#, r#"{"a":{"b":"y"}} rest"#];
    let mut outline = Outline::default();
    let added = texts.map(|text| outline.add(text, 8));
    assert_eq!(added.each_ref().map(|it| it.as_ref().map(|it| it.0)), [Some(13), None, Some(15)]);
    let values: Vec<Value<'_>> = texts
        .iter()
        .zip(added)
        .filter_map(|(text, added)| Some(outline.value(text, added?.1)))
        .collect();
    assert_eq!(values[0].get("a"), Some(r#"[1,"x"]"#));
    assert_eq!(values[1].object("a").unwrap().string("b").as_deref(), Some("y"));
    // The value must be on one line, and not too deep.
    assert!(outline.add("{\"a\":\n1}", 8).is_none() && outline.add(r#"{"a":[]}"#, 1).is_none());
}

#[test]
fn names_of_any_length_are_found() {
    let mut outline = Outline::default();
    for length in (0..40).chain([0x7FFE, 0x7FFF, 0x8000, 0x8001]) {
        let names = ["x".repeat(length), ["x".repeat(length), "x".to_owned()].concat()];
        let middle = ["x".repeat(length / 2), "y".to_owned(), "x".repeat(length / 2)].concat();
        let text = format!(r#"{{"{middle}":0,"{}":1,"{}":2}}"#, names[0], names[1]);
        let value = outline.read(&text, 8).unwrap();
        let found = [&middle, &names[0], &names[1]].map(|name| value.get(name));
        assert_eq!(found, [Some("0"), Some("1"), Some("2")], "{length}");
    }
}
