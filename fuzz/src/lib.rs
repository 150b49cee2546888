//! The bodies of the fuzz targets.
//!
//! Each public module is a target: its `run` takes bytes, and panics with a description of the law that is broken. The
//! targets [`lines`], [`rebuild`] and [`scan`] take bytes unchanged, so any transcript is a seed; [`pair`], [`dialect`] and
//! [`pi`] make a record from every two bytes, [`stream`] reads settings from the first three, and [`media`] from the first.
//! The property tests include the same modules (tests/property/fuzz.rs), so the modules use `super::` instead of `crate::`.

pub mod dialect;
mod laws;
pub mod lines;
pub mod media;
pub mod pair;
pub mod pi;
pub mod rebuild;
pub mod scan;
pub mod stream;
mod view;

/// Texts on which two parsers must agree.
#[path = "../../tests/property/agree.rs"]
mod agree;
/// The laws, which the property tests also use.
#[allow(dead_code, reason = "some of it is used only by the property tests")]
#[path = "../../tests/property/any.rs"]
mod any;
/// The rules by which a provider refuses requests, implemented independently of the library.
#[allow(dead_code, reason = "some of it is used only by the fake provider of the tests")]
#[path = "../../tests/cli/common/rules.rs"]
mod rules;

/// Panics if a law is broken.
fn expect(law: any::Law) {
    if let Err(why) = law {
        panic!("{why}");
    }
}
