//! What has to hold for any bytes: the bodies of the fuzz targets.
//!
//! Each module is a target: its `hold` takes bytes and panics, saying what is broken, where something
//! does not hold. The targets [`lines`], [`rebuild`] and [`scan`] take bytes as they are, so any
//! transcript is a seed; [`pair`] and [`dialect`] make records of them, two bytes each.

pub mod dialect;
mod laws;
pub mod lines;
pub mod pair;
pub mod rebuild;
pub mod scan;
pub mod stream;
mod view;

/// Texts that two readers have to agree on.
#[path = "../../tests/property/agree.rs"]
mod agree;
/// The laws that the tests of made-up talks hold.
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../../tests/property/any.rs"]
mod any;
/// What a provider refuses, told by somebody else.
#[allow(dead_code, reason = "the fake provider of the tests uses the rest")]
#[path = "../../tests/cli/common/rules.rs"]
mod rules;

/// Ends the run where a law is broken.
fn expect(law: any::Law) {
    if let Err(why) = law {
        panic!("{why}");
    }
}
