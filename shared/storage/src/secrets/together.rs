//! Values that are read in one call at startup, because each concurrent call opens a connection.

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::OnceCell;

/// Values whose first reads share a call. Clones share them.
pub struct Together<V>(Arc<Call<V>>);

struct Call<V> {
    names: Vec<String>,
    /// The unused values by name, once the call was made.
    values: OnceCell<Mutex<HashMap<String, V>>>,
}

impl<V> Clone for Together<V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<V> fmt::Debug for Together<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Together").field(&self.0.names).finish()
    }
}

impl<V> Together<V> {
    /// The values of these names.
    pub fn new(names: Vec<String>) -> Self {
        Self(Arc::new(Call { names, values: OnceCell::new() }))
    }

    /// The value of a name at its first read; `None` at later reads, for other names, and if the call did not return
    /// it. The first read of any name makes the call, and the others wait for it.
    pub async fn first<F: Future<Output = HashMap<String, V>>>(
        &self,
        name: &str,
        call: impl FnOnce(Vec<String>) -> F,
    ) -> Option<V> {
        let Call { names, values } = &*self.0;
        if !names.iter().any(|one| one == name) {
            return None;
        }
        let values = values.get_or_init(async || Mutex::new(call(names.clone()).await)).await;
        values.lock().unwrap_or_else(PoisonError::into_inner).remove(name)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn first_reads_share_a_call_and_later_ones_read_again() {
        let together = Together::new(vec!["a".to_owned(), "b".to_owned(), "absent".to_owned()]);
        let calls = Cell::new(0);
        let first = async |name: &str| {
            let call = async |names: Vec<String>| {
                calls.set(calls.get() + 1);
                tokio::task::yield_now().await;
                names.into_iter().filter(|name| name != "absent").map(|name| (name.clone(), name)).collect()
            };
            together.first(name, call).await
        };
        let (a, b, other, absent) = tokio::join!(first("a"), first("b"), first("other"), first("absent"));
        assert_eq!((a.as_deref(), b.as_deref(), other, absent), (Some("a"), Some("b"), None, None));
        assert_eq!(first("a").await, None, "a rotation must not be missed");
        assert_eq!(calls.get(), 1);
    }
}
