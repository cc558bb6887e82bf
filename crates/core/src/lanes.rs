//! Which task an agent takes next: a queue for programs that run the turns of one.

use std::collections::VecDeque;

use crate::origin::{Lane, Origin};

/// Tasks that wait for an agent, which does one at a time. A lane is emptied before the one below it, and
/// inside a lane the first that came is the first that goes. The task that is under way is never
/// interrupted: what is more urgent only comes next.
#[derive(Clone, Debug)]
pub struct Queue<T> {
    lanes: [VecDeque<T>; Lane::ALL.len()],
    active: bool,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { lanes: Default::default(), active: false }
    }
}

impl<T> Queue<T> {
    /// Adds a task, in the lane of its origin.
    pub fn push(&mut self, origin: Origin, task: T) {
        self.lanes[origin.lane() as usize].push_back(task);
    }

    /// Hands out the next task, which is active from then on. Nothing while another one is, or where none waits.
    pub fn take(&mut self) -> Option<T> {
        if self.active {
            return None;
        }
        let next = self.lanes.iter_mut().find_map(VecDeque::pop_front);
        self.active = next.is_some();
        next
    }

    /// Says that the active task is over, so that the next one can be taken.
    pub fn done(&mut self) {
        self.active = false;
    }

    /// Whether a task was taken and is not over.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// How many tasks wait; the active one is not among them.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lanes.iter().map(VecDeque::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that waits, each task done before the next is taken.
    fn drain<T>(queue: &mut Queue<T>) -> Vec<T> {
        let mut all = Vec::new();
        while let Some(task) = queue.take() {
            all.push(task);
            queue.done();
        }
        all
    }

    #[test]
    fn g7_every_origin_names_a_lane() {
        let lanes = Origin::ALL.map(Origin::lane);
        assert_eq!(
            lanes,
            [Lane::User, Lane::Peer, Lane::Background, Lane::Background, Lane::Background, Lane::Background]
        );
        assert!(Lane::ALL.is_sorted() && Lane::ALL.iter().all(|lane| lanes.contains(lane)));
    }

    #[test]
    fn g7_every_lane_drains_before_the_one_below() {
        for first in Origin::ALL {
            for second in Origin::ALL {
                let mut queue = Queue::default();
                queue.push(first, 'a');
                queue.push(second, 'b');
                queue.push(first, 'c');
                let expected = if second.lane() < first.lane() {
                    "bac"
                } else if second.lane() == first.lane() {
                    "abc"
                } else {
                    "acb"
                };
                assert_eq!(drain(&mut queue).into_iter().collect::<String>(), expected, "{first:?}, {second:?}");
            }
        }
    }

    #[test]
    fn g7_one_origin_drains_in_push_order() {
        for origin in Origin::ALL {
            let mut queue = Queue::default();
            (0..100).for_each(|number| queue.push(origin, number));
            assert_eq!(queue.waiting(), 100);
            assert_eq!(drain(&mut queue), (0..100).collect::<Vec<_>>(), "{origin:?}");
        }
    }

    #[test]
    fn g7_a_user_task_runs_before_six_completions_that_wait() {
        let mut queue = Queue::default();
        (1..=6).for_each(|number| queue.push(Origin::Completion, number));
        queue.push(Origin::User, 0);
        assert_eq!(drain(&mut queue), [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn g7_nothing_is_handed_out_while_a_task_is_active() {
        let mut queue = Queue::default();
        assert_eq!(queue.take(), None);
        assert!(!queue.is_active(), "nothing was taken");
        queue.push(Origin::Event, "running");
        assert_eq!(queue.take(), Some("running"));
        // Not even what comes first of all: what runs is never preempted.
        queue.push(Origin::Completion, "completion");
        queue.push(Origin::Peer, "peer");
        queue.push(Origin::User, "user");
        for _ in 0..3 {
            assert_eq!((queue.take(), queue.is_active(), queue.waiting()), (None, true, 3));
        }
        queue.done();
        assert_eq!(drain(&mut queue), ["user", "peer", "completion"]);
    }

    #[test]
    fn g7_a_completion_comes_after_a_peer_and_only_after_what_runs() {
        let mut queue = Queue::default();
        queue.push(Origin::User, "running");
        assert_eq!(queue.take(), Some("running"));
        queue.push(Origin::Completion, "completion");
        queue.push(Origin::Peer, "peer");
        assert_eq!(queue.take(), None);
        queue.done();
        assert_eq!(queue.take(), Some("peer"));
        assert_eq!(queue.take(), None, "the completion waits for the peer's task to be over");
        queue.done();
        assert_eq!(queue.take(), Some("completion"));
    }
}
