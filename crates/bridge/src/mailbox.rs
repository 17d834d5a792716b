//! A queue between two threads in which states supersede each other and nothing else is lost.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Whether a newer item of the same kind makes an item worthless.
pub trait Supersede {
    /// True for a state, of which only the latest counts; false for everything that must not be lost.
    fn is_superseded_by_newer(&self) -> bool;
}

/// Items that a receiver has not taken yet, in order, with at most one state among them: the latest.
#[derive(Debug)]
pub struct Mailbox<T> {
    queue: Mutex<VecDeque<T>>,
    pushed: Notify,
    taken: Notify,
    full: usize,
}

impl<T: Supersede> Default for Mailbox<T> {
    fn default() -> Self {
        Self::new(1024)
    }
}

impl<T: Supersede> Mailbox<T> {
    /// A mailbox that is full when so many items lie in it. It takes more: whoever fills it asks.
    pub fn new(full: usize) -> Self {
        Self { queue: Mutex::default(), pushed: Notify::new(), taken: Notify::new(), full }
    }

    /// Adds an item; true when there is one more to take. A state takes the place of an earlier one, at the end.
    pub fn push(&self, item: T) -> bool {
        let mut queue = self.lock();
        let before = queue.len();
        if item.is_superseded_by_newer() {
            queue.retain(|waiting| !waiting.is_superseded_by_newer());
        }
        queue.push_back(item);
        self.pushed.notify_one();
        queue.len() > before
    }

    /// Takes the oldest item.
    pub fn pop(&self) -> Option<T> {
        let item = self.lock().pop_front();
        self.taken.notify_waiters();
        item
    }

    /// Takes the oldest item as soon as there is one. For one receiver; cancel-safe.
    pub async fn next(&self) -> T {
        loop {
            if let Some(item) = self.pop() {
                return item;
            }
            self.pushed.notified().await;
        }
    }

    /// Whether the receiver has left too much lying.
    pub fn is_full(&self) -> bool {
        self.lock().len() >= self.full
    }

    /// Drops everything: the receiver is gone.
    pub fn clear(&self) {
        self.lock().clear();
        self.taken.notify_waiters();
    }

    /// Waits until the receiver has taken enough for another item.
    pub async fn room(&self) {
        self.until(|len| len < self.full).await;
    }

    /// Waits until the receiver has taken everything.
    pub async fn empty(&self) {
        self.until(|len| len == 0).await;
    }

    async fn until(&self, enough: impl Fn(usize) -> bool) {
        loop {
            let taken = self.taken.notified();
            if enough(self.lock().len()) {
                return;
            }
            taken.await;
        }
    }

    /// Nothing can panic while the lock is held, and if it did the queue would still be whole.
    fn lock(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[derive(Debug, PartialEq)]
    enum Item {
        State(u32),
        Word(u32),
    }

    impl Supersede for Item {
        fn is_superseded_by_newer(&self) -> bool {
            matches!(self, Self::State(_))
        }
    }

    #[test]
    fn only_the_last_state_waits_and_nothing_else_is_lost() {
        let mailbox = Mailbox::default();
        assert!(mailbox.push(Item::State(1)));
        assert!(mailbox.push(Item::Word(2)));
        assert!(!mailbox.push(Item::State(3)), "it took the place of the first one");
        assert!(mailbox.push(Item::Word(4)));
        let order: Vec<_> = std::iter::from_fn(|| mailbox.pop()).collect();
        assert_eq!(order, [Item::Word(2), Item::State(3), Item::Word(4)]);
    }

    #[tokio::test]
    async fn a_full_mailbox_makes_the_sender_wait() {
        let mailbox = Arc::new(Mailbox::new(3));
        for n in 0..3 {
            mailbox.push(Item::Word(n));
        }
        let waiting = tokio::spawn({
            let mailbox = Arc::clone(&mailbox);
            async move { mailbox.room().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        mailbox.pop();
        waiting.await.unwrap();
    }
}
