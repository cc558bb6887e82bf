//! What becomes of a completion at a host: whether it is handed over, and whether that wakes anybody.

use crate::request::Delivery;

/// What the host of a consumer can do with news. The command line can do neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reach {
    /// It takes news that nobody asked for, and shows them to the consumer with its next message.
    pub queue: bool,
    /// It makes an idle consumer act.
    pub wake: bool,
}

/// What becomes of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Push {
    /// It is handed over, and an idle consumer acts on it.
    Wakes,
    /// It is handed over, and an idle consumer sees it with its next message.
    Waits,
    /// It is not handed over, and stays pending for whoever looks.
    Never,
}

impl Reach {
    /// What becomes of a completion of this form. What cannot be handed over wakes nobody either: it would
    /// be a call without a reason.
    #[must_use]
    pub fn push(self, form: Delivery) -> Push {
        match (form, self.queue, self.wake) {
            (Delivery::Task, true, true) => Push::Wakes,
            (Delivery::Task, true, false) | (Delivery::Note, true, _) => Push::Waits,
            (Delivery::Poll, ..) | (_, false, _) => Push::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: G5, G14
    #[test]
    fn g5_a_completion_is_pushed_where_the_host_can_receive_it() {
        let rows = [
            // can be queued to, can be woken, and what becomes of: task, note, poll
            (true, true, [Push::Wakes, Push::Waits, Push::Never]),
            (true, false, [Push::Waits, Push::Waits, Push::Never]),
            (false, true, [Push::Never, Push::Never, Push::Never]),
            (false, false, [Push::Never, Push::Never, Push::Never]),
        ];
        for (queue, wake, expected) in rows {
            let reach = Reach { queue, wake };
            let pushes = [Delivery::Task, Delivery::Note, Delivery::Poll].map(|form| reach.push(form));
            assert_eq!(pushes, expected, "{reach:?}");
        }
        assert_eq!(Reach::default(), Reach { queue: false, wake: false });
    }
}
