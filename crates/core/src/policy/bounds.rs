//! The bounds that every command has, whatever its call asks for.

use std::time::Duration;

use crate::request::Limits;
use crate::units::{format_duration, format_size};

impl Limits {
    /// The bounds of the policy `bounded`.
    #[must_use]
    pub fn bounded() -> Limits {
        Limits {
            wall_ms: None,
            idle_ms: None,
            memory: Some(4 << 30),
            pids: Some(256),
            cpu_s: Some(3600),
            file_size: Some(4 << 30),
            files: Some(1024),
            address_space: Some(2 << 30),
            core: Some(0),
            more_processes: Some(128),
            throttled: true,
        }
    }

    /// These bounds where a call asks for a wider one or for none; where it asks for a narrower one that stays.
    #[must_use]
    pub fn narrowed_by(&self, asked: &Limits) -> Limits {
        let least = |own: Option<u64>, asked: Option<u64>| own.into_iter().chain(asked).min();
        Limits {
            wall_ms: least(self.wall_ms, asked.wall_ms),
            idle_ms: least(self.idle_ms, asked.idle_ms),
            memory: least(self.memory, asked.memory),
            pids: least(self.pids, asked.pids),
            cpu_s: least(self.cpu_s, asked.cpu_s),
            file_size: least(self.file_size, asked.file_size),
            files: least(self.files, asked.files),
            address_space: least(self.address_space, asked.address_space),
            core: least(self.core, asked.core),
            more_processes: least(self.more_processes, asked.more_processes),
            throttled: self.throttled || asked.throttled,
        }
    }

    /// What a call asked for and did not get, because these bounds are narrower; a sentence for each.
    #[must_use]
    pub fn cuts(&self, asked: &Limits) -> Vec<String> {
        let cut = |name: &str, most: Option<u64>, asked: Option<u64>, words: fn(u64) -> String| {
            let (most, asked) = (most?, asked?);
            (asked > most)
                .then(|| format!("{name} {} was cut to {}, the most that is allowed here", words(asked), words(most)))
        };
        let time = |ms| format_duration(Duration::from_millis(ms));
        let cuts = [
            cut("limit", self.wall_ms, asked.wall_ms, time),
            cut("idle limit", self.idle_ms, asked.idle_ms, time),
            cut("memory", self.memory, asked.memory, format_size),
            cut("pids", self.pids, asked.pids, |count| count.to_string()),
        ];
        cuts.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: P8
    #[test]
    fn p8_a_call_can_narrow_a_bound_and_not_widen_it() {
        let none = Limits::default();
        assert_eq!(none.narrowed_by(&none), none);
        assert_eq!(Limits::bounded().narrowed_by(&none), Limits::bounded());
        let asked = Limits { files: Some(64), memory: Some(u64::MAX), wall_ms: Some(5), ..none.clone() };
        let given = Limits::bounded().narrowed_by(&asked);
        assert_eq!(given, Limits { files: Some(64), wall_ms: Some(5), ..Limits::bounded() });
        assert_eq!(none.narrowed_by(&asked), asked);
        let cuts = Limits::bounded().cuts(&Limits { memory: Some(8 << 30), pids: Some(3), ..none.clone() });
        assert_eq!(cuts, ["memory 8GiB was cut to 4GiB, the most that is allowed here"]);
        let throttled = Limits { throttled: true, ..none.clone() };
        assert!(none.narrowed_by(&throttled).throttled && throttled.narrowed_by(&none).throttled);
    }
}
