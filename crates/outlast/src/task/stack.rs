//! What a panic in a task's body said, and where it was.

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Once;
use std::task::{Context, Poll};

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    static SEEN: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps the place and the stack of panics in the bodies of tasks, for the text of their ends.
///
/// A stack can only be seen at the panic itself, by the panic hook, of which a process has one. So this library does not
/// set it by itself: a program that wants stacks calls this once. The hook that was there before is still called.
pub fn keep_panic_stacks() {
    static SET: Once = Once::new();
    SET.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if INSIDE.get() {
                let place = info.location().map_or_else(String::new, |place| format!("at {place}\n"));
                SEEN.set(Some(format!("{place}stack:\n{}", Backtrace::force_capture())));
            }
            before(info);
        }));
    });
}

/// A future whose panic is its value.
pub(super) struct Caught<F>(pub(super) Pin<Box<F>>);

impl<T, F: Future<Output = T>> Future for Caught<F> {
    type Output = Result<T, String>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        INSIDE.set(true);
        let polled = catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context)));
        INSIDE.set(false);
        match polled {
            Ok(polled) => polled.map(Ok),
            Err(payload) => Poll::Ready(Err(told(payload.as_ref()))),
        }
    }
}

fn told(payload: &(dyn Any + Send)) -> String {
    let said = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let said = said.or_else(|| payload.downcast_ref::<String>().cloned());
    let said = said.unwrap_or_else(|| "with a value that is no text".to_owned());
    let stack =
        SEEN.take().unwrap_or_else(|| "no stack is known: outlast::keep_panic_stacks was not called".to_owned());
    format!("panicked: {said}\n{stack}")
}
