//! Ids of records and of calls.

use std::borrow::{Borrow, Cow};
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::rc::Rc;

/// An id. Many things of one message hold the same, so a copy costs next to nothing, and none costs
/// nothing at all: that is the empty text.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Id(Option<Rc<str>>);

/// What is kept by id. Ids are looked up several times for each record, and the hash of the standard
/// library is made for worse enemies than a transcript has.
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

/// Returns the id of a record that has none of its own: `@` and the byte offset at which the record begins. It stays
/// the same in a file that is only appended to.
#[must_use]
pub fn address(offset: u64) -> String {
    ["@", itoa::Buffer::new().format(offset)].concat()
}

/// Whether `id` is one that the API takes: letters, digits, `_` and `-`, 1 to 64 of them.
#[must_use]
pub fn is_id(id: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=64).contains(&id.len()) && id.bytes().all(fits)
}
