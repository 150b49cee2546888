//! Laws that hold for every transcript, tried on thousands of generated transcripts.
//!
//! [`generate`] makes a conversation from a seed, [`records`] writes it, and [`model`] states what its messages
//! must contain. [`any`], [`laws`], [`views`], [`chains`] and [`shown`] are the laws; [`budgets`],
//! [`cuts`], [`ids`], [`pairs`], [`relay`], [`shortened`] and [`trees`] are laws that make their own transcripts. A conversation that breaks a law is reduced by
//! dropping records as long as it still breaks the law. `CLAW_TEST_FULL=1` tries a million conversations,
//! `CLAW_TEST_SEED=n` only the one with that seed.
//!
//! [`mutants`] are damaged records of real transcripts, on which the scanner and serde_json must agree
//! ([`agree`]). [`fuzz`] runs the fuzz targets on their seeds.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "tests and their helpers report failures by panicking"
)]
#![cfg_attr(
    not(test),
    allow(dead_code, unused_imports, reason = "cargo also builds an example as a program")
)]

mod agree;
mod any;
mod bodies;
mod budgets;
mod chains;
mod choices;
mod cuts;
mod fuzz;
mod generate;
mod guarded;
mod ids;
mod laws;
/// Files of images and documents.
#[allow(dead_code, reason = "the other tests use the rest")]
#[path = "../cli/common/media.rs"]
mod media;
mod model;
mod mutants;
mod pairs;
mod poisons;
mod prefix;
mod records;
mod relay;
/// The rules by which a provider refuses requests, implemented independently.
#[allow(dead_code, reason = "the fake provider of the other tests uses the rest")]
#[path = "../cli/common/rules.rs"]
mod rules;
mod shortened;
mod shown;
/// A provider that refuses by rules on content, implemented independently.
#[path = "../cli/common/strict.rs"]
mod strict;
mod trees;
mod views;
mod wedges;

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use choices::Choices;
use records::Conversation;

/// The number of conversations without `CLAW_TEST_FULL`.
const CONVERSATIONS: u64 = 10_000;
/// The number of conversations in a full run, with `CLAW_TEST_FULL`.
const CONVERSATIONS_IN_FULL: u64 = 1_000_000;

/// The number of cases in a full run for laws that take longer, such as the laws of chains, where each step rebuilds
/// several times.
const SLOW_CASES_IN_FULL: u64 = 100_000;

/// Tries a law on all conversations.
fn holds(law: fn(&Conversation) -> any::Law) {
    holds_for(CONVERSATIONS_IN_FULL, law);
}

/// Tries a law on conversations, `in_full` of them in a full run, one half in each of two threads.
fn holds_for(in_full: u64, law: fn(&Conversation) -> any::Law) {
    if let Some(seed) = env::var("CLAW_TEST_SEED").ok().and_then(|seed| seed.parse().ok()) {
        return try_seed(law, seed);
    }
    let is_full = env::var_os("CLAW_TEST_FULL").is_some();
    let conversations = if is_full { in_full } else { CONVERSATIONS };
    thread::scope(|scope| {
        for half in 0..2 {
            scope.spawn(move || {
                (half..conversations).step_by(2).for_each(|seed| try_seed(law, seed))
            });
        }
    });
}

fn try_seed(law: fn(&Conversation) -> any::Law, seed: u64) {
    let conversation = generate::conversation(&mut Choices::seeded(seed));
    if broken(law, &conversation).is_none() {
        return;
    }
    let conversation = smallest(law, conversation);
    let (why, text) = (broken(law, &conversation).unwrap_or_default(), conversation.write().bytes);
    panic!("CLAW_TEST_SEED={seed}: {why}\n---\n{}\n---", String::from_utf8_lossy(&text));
}

/// Returns a description of the fault if the law is broken or panics.
fn broken(law: fn(&Conversation) -> any::Law, conversation: &Conversation) -> Option<String> {
    let mut outcome = Ok(());
    let panic = panic_of(|| outcome = law(conversation));
    panic.map(|why| format!("panic: {why}")).or(outcome.err())
}

/// Returns the message of the panic if `action` panics.
fn panic_of(action: impl FnOnce()) -> Option<String> {
    let cause = catch_unwind(AssertUnwindSafe(action)).err()?;
    let text = cause.downcast_ref::<String>().cloned();
    let text = text.or_else(|| cause.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    Some(text.unwrap_or_default())
}

/// Drops records as long as the rest still breaks the law.
fn smallest(law: fn(&Conversation) -> any::Law, mut conversation: Conversation) -> Conversation {
    let mut at = 0;
    while at < conversation.items.len() {
        let mut smaller = conversation.clone();
        smaller.items.remove(at);
        if broken(law, &smaller).is_some() {
            (conversation, at) = (smaller, 0);
        } else {
            at += 1;
        }
    }
    conversation
}

#[test]
fn g1_g5_messages_are_accepted_and_nothing_is_lost() {
    holds(laws::of_rebuild);
}

#[test]
fn o1_appended_records_only_extend_the_last_message() {
    holds(laws::appended_records_change_only_the_end);
}

#[test]
fn audit_40_each_request_begins_with_the_one_before_it() {
    let is_full = env::var_os("CLAW_TEST_FULL").is_some();
    let cases = if is_full { SLOW_CASES_IN_FULL } else { CONVERSATIONS / 10 };
    (0..cases).for_each(|seed| try_seed(prefix::is_stable, seed));
}

#[test]
fn audit_40_repairs_keep_the_prefix() {
    let is_full = env::var_os("CLAW_TEST_FULL").is_some();
    for seed in 0..if is_full { CONVERSATIONS } else { CONVERSATIONS / 200 } {
        if let Err(why) = prefix::is_stable_if_repaired(seed) {
            panic!("seed {seed}: {why:.3000}");
        }
    }
}

#[test]
fn g8_views_show_the_planned_messages_and_can_be_undone() {
    holds(views::of_views);
}

#[test]
fn n2_n5_d38_chains_of_operations_stay_valid_and_can_be_undone() {
    holds_for(SLOW_CASES_IN_FULL, chains::of_chains);
}

#[test]
fn g7_results_are_paired_with_their_calls_in_every_order() {
    assert_eq!(pairs::permutations(vec![1, 2, 3]).len(), 6);
    if let Err(why) = pairs::in_every_order() {
        panic!("{why}");
    }
}

#[test]
fn audit_40_a_session_costs_at_most_twice_the_optimum() {
    let is_full = env::var_os("CLAW_TEST_FULL").is_some();
    for seed in 0..if is_full { SLOW_CASES_IN_FULL } else { CONVERSATIONS / 10 } {
        let held = cuts::the_optimum_is_the_least(seed);
        if let Err(why) = held.and_then(|()| cuts::cost_is_at_most_twice_the_optimum(seed)) {
            panic!("seed {seed}: {why}");
        }
    }
}

#[test]
fn h7_sent_ids_are_legal_unique_and_stable() {
    for seed in 0..2_000 {
        if let Err(why) = ids::are_legal_and_stable(seed) {
            panic!("seed {seed}: {why}");
        }
    }
}

#[test]
fn a_tree_gives_the_messages_of_its_path_and_survives_damage() {
    let is_full = env::var_os("CLAW_TEST_FULL").is_some();
    for seed in 0..if is_full { SLOW_CASES_IN_FULL } else { CONVERSATIONS / 40 } {
        let held = trees::give_the_messages_of_their_path(seed);
        if let Err(why) = held.and_then(|()| trees::survive_damage(seed)) {
            panic!("seed {seed}: {why}");
        }
    }
}

#[test]
fn dialects_3_a_tree_with_edits_gives_what_pi_sends() {
    let is_full = env::var_os("CLAW_TEST_FULL").is_some();
    for seed in 0..if is_full { SLOW_CASES_IN_FULL } else { CONVERSATIONS / 10 } {
        if let Err(why) = trees::give_what_pi_sends(seed) {
            panic!("seed {seed}: {why}");
        }
    }
}

#[test]
fn audit_02_results_that_are_shortened_repeatedly_can_be_restored() {
    let is_full = env::var_os("CLAW_TEST_FULL").is_some();
    for seed in 0..if is_full { SLOW_CASES_IN_FULL } else { CONVERSATIONS / 100 } {
        if let Err(why) = shortened::repeatedly(seed) {
            panic!("seed {seed}: {why}");
        }
    }
}

#[test]
fn i6_what_is_shortened_or_compacted_to_a_budget_is_within_it() {
    let is_full = env::var_os("CLAW_TEST_FULL").is_some();
    let cases = if is_full { CONVERSATIONS } else { CONVERSATIONS / 40 };
    let mut tried = budgets::Tried::default();
    for seed in 0..cases {
        if let Err(why) = budgets::are_kept(seed, &mut tried) {
            panic!("seed {seed}: {why}");
        }
    }
    let budgets::Tried { shortened, shortest, compacted, too_large } = tried;
    for outcome in [shortened, shortest, compacted, too_large] {
        assert!(outcome > cases / 10, "{shortened} {shortest} {compacted} {too_large} of {cases}");
    }
}

#[test]
fn s4_all_sent_content_is_shown_and_never_becomes_structure() {
    holds(shown::of_conversations);
}

#[test]
fn s4_no_text_becomes_structure_of_the_document() {
    let is_full = env::var_os("CLAW_TEST_FULL").is_some();
    for seed in 0..if is_full { SLOW_CASES_IN_FULL } else { CONVERSATIONS / 4 } {
        if let Err(why) = shown::of_texts(&mut Choices::seeded(seed)) {
            panic!("seed {seed}: {why}");
        }
    }
}

#[test]
fn audit_29_markdown_in_pieces_is_laid_out_like_the_whole() {
    let is_full = env::var_os("CLAW_TEST_FULL").is_some();
    for seed in 0..if is_full { SLOW_CASES_IN_FULL } else { CONVERSATIONS / 4 } {
        if let Err(why) = shown::of_streams(&mut Choices::seeded(seed)) {
            panic!("seed {seed}: {why}");
        }
    }
}

/// Returns the sessions that are wedged.
fn wedged(seeds: &[u64]) -> Vec<String> {
    let tried = |seed: &u64| {
        let mut outcome = Ok(());
        let panic = panic_of(|| outcome = wedges::no_session_is_wedged(*seed));
        let why = panic.map(|why| format!("panic: {why}")).or(outcome.err());
        why.map(|why| format!("CLAW_TEST_SEED={seed}: {why}"))
    };
    seeds.iter().filter_map(tried).collect()
}

#[test]
fn no_session_is_wedged_by_what_is_in_it() {
    let is_full = env::var_os("CLAW_TEST_FULL").is_some();
    let seeds: Vec<u64> = match env::var("CLAW_TEST_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => vec![seed],
        None => (0..if is_full { 20_000 } else { 2_000 }).collect(),
    };
    let halves = seeds.chunks(seeds.len().div_ceil(2));
    let wrong: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = halves.map(|seeds| scope.spawn(|| wedged(seeds))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread")).collect()
    });
    let shown: String = wrong.iter().take(40).map(|why| format!("{why:.1500}\n")).collect();
    assert!(wrong.is_empty(), "{} sessions are wedged:\n{shown}", wrong.len());
}

#[test]
fn a_conversation_keeps_all_while_its_protocol_changes_at_every_turn() {
    assert!(relay::all_protocols_speak());
    let is_full = env::var_os("CLAW_TEST_FULL").is_some();
    let seeds: Vec<u64> = match env::var("CLAW_TEST_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => vec![seed],
        None => (0..if is_full { 2_000 } else { 20 }).collect(),
    };
    for seed in seeds {
        if let Err(why) = relay::keeps_all(seed) {
            panic!("CLAW_TEST_SEED={seed}: {why:.6000}");
        }
    }
}

#[test]
fn fuzz_targets_accept_their_seeds() {
    if let Err(why) = fuzz::seeds_break_no_law() {
        panic!("{why}");
    }
}

/// Does nothing; this target has only tests.
#[cfg(not(test))]
fn main() {}

/// The number of sessions whose request bodies are checked against the types of the official packages.
const SESSIONS_WITH_BODIES: u64 = 5_000;

#[test]
fn bodies_are_written_for_the_official_types() {
    let Some(directory) = env::var_os("CLAW_TEST_BODIES").map(std::path::PathBuf::from) else {
        return;
    };
    bodies::write(&directory, SESSIONS_WITH_BODIES).expect("a directory to write to");
}
