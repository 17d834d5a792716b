//! Delays between two tries to reach an editor.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

/// 1, 2, 4, 8 … seconds, at most 30.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    last: Option<Duration>,
}

impl Backoff {
    pub(super) fn next(&mut self) -> Duration {
        let next = self.last.map_or(FIRST, |last| (last * 2).min(LONGEST));
        self.last = Some(next);
        next
    }

    pub(super) fn reset(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_half_a_minute() {
        let mut backoff = Backoff::default();
        let seconds: Vec<_> = (0..7).map(|_| backoff.next().as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30]);
        backoff.reset();
        assert_eq!(backoff.next(), FIRST);
    }
}
