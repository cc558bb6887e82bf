//! Times of the same thing, taken many times, and what is said of them.

use std::time::{Duration, Instant};

/// Times in nanoseconds, in the order in which they were taken.
#[derive(Clone, Debug, Default)]
pub struct Samples(pub Vec<u64>);

impl Samples {
    /// Adds one.
    pub fn push(&mut self, time: Duration) {
        self.0.push(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Runs something and adds the time that it took.
    pub fn time<T>(&mut self, act: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let done = act();
        self.push(began.elapsed());
        done
    }

    /// The same for a future.
    pub async fn time_async<T>(&mut self, act: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let done = act.await;
        self.push(began.elapsed());
        done
    }

    /// The time in milliseconds that so many percent are not above; 0 without samples.
    pub fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = (sorted.len().saturating_sub(1) * percent + 50) / 100;
        sorted.get(at).map_or(0.0, |ns| *ns as f64 / 1e6)
    }

    /// The median in milliseconds.
    pub fn median(&self) -> f64 {
        self.percentile(50)
    }

    /// `1.23 ms [1.10, 1.45]`: the median, and the tenth and ninetieth percentile.
    pub fn text(&self) -> String {
        format!("{} [{}, {}]", ms(self.median()), number(self.percentile(10)), number(self.percentile(90)))
    }
}

/// A time in milliseconds, as `1.23 ms`.
pub fn ms(value: f64) -> String {
    format!("{} ms", number(value))
}

/// Three digits that count, or whole numbers where there are more.
pub fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 0.1 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}
