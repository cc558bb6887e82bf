//! The first of two futures.

use std::pin::pin;
use std::task::Poll;

/// Which one came first.
pub(crate) enum First<A, B> {
    /// The one that was asked first, also when both were ready.
    Left(A),
    /// The other one.
    Right(B),
}

/// Waits for the first of two futures. The other one is dropped; pass `&mut` of a pinned one to keep it.
pub(crate) async fn first<A, B>(left: impl Future<Output = A>, right: impl Future<Output = B>) -> First<A, B> {
    let (mut left, mut right) = (pin!(left), pin!(right));
    std::future::poll_fn(|context| {
        if let Poll::Ready(value) = left.as_mut().poll(context) {
            return Poll::Ready(First::Left(value));
        }
        right.as_mut().poll(context).map(First::Right)
    })
    .await
}

/// Waits for all futures of a list, polled together in this task, and gives their values in its order.
pub(crate) async fn all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
    let mut values: Vec<Option<F::Output>> = waiting.iter().map(|_| None).collect();
    std::future::poll_fn(move |context| {
        let mut pending = false;
        for (slot, value) in waiting.iter_mut().zip(&mut values) {
            if let Some(future) = slot {
                match future.as_mut().poll(context) {
                    Poll::Ready(ready) => {
                        *value = Some(ready);
                        *slot = None;
                    }
                    Poll::Pending => pending = true,
                }
            }
        }
        if pending { Poll::Pending } else { Poll::Ready(values.drain(..).flatten().collect()) }
    })
    .await
}
