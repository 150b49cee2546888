//! Ids of records and tool calls.

use std::borrow::{Borrow, Cow};
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::rc::Rc;

/// An id of a record or a tool call. Many parts of a message share an id, so a clone only increments a reference count.
/// The empty id allocates nothing.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Id(Option<Rc<str>>);

/// A map by id. Each record needs several lookups, and ids need no protection against collisions provoked by an
/// attacker, so the map uses a faster hash than the standard library's.
pub(crate) type ById<V> = HashMap<Id, V, foldhash::fast::RandomState>;

impl Deref for Id {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

impl AsRef<str> for Id {
    fn as_ref(&self) -> &str {
        self
    }
}

impl Borrow<str> for Id {
    fn borrow(&self) -> &str {
        self
    }
}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        str::hash(self, state);
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Id {
        Id((!text.is_empty()).then(|| Rc::from(text)))
    }
}

impl From<String> for Id {
    fn from(text: String) -> Id {
        Id::from(text.as_str())
    }
}

impl From<Cow<'_, str>> for Id {
    fn from(text: Cow<'_, str>) -> Id {
        Id::from(text.as_ref())
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Returns the id for a record without one: `@` and the byte offset of the record. It stays the same as long as the
/// file only grows.
#[must_use]
pub fn address(offset: u64) -> String {
    ["@", itoa::Buffer::new().format(offset)].concat()
}

/// Returns true if the API accepts the id: 1 to 64 letters, digits, `_` and `-`.
#[must_use]
pub fn is_id(id: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=64).contains(&id.len()) && id.bytes().all(fits)
}
