//! The transport under the protocol: it knows when a reply went out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{ClientNotification, GetExtensions, JsonRpcMessage, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio_util::sync::CancellationToken;

use super::delivery::Delivery;
use super::lines;

/// Says what could not be recorded of what a reply told.
pub type Say = fn(&str);

/// A transport that gives every request its [`Delivery`] and settles it with the reply.
pub struct Wire<T> {
    inner: T,
    open: Arc<Mutex<HashMap<RequestId, Delivery>>>,
    say: Say,
    /// Fired when the client has closed its end.
    ended: CancellationToken,
}

impl<T> Wire<T> {
    /// Over this transport.
    pub fn over(inner: T, say: Say, ended: CancellationToken) -> Wire<T> {
        Wire { inner, open: Arc::default(), say, ended }
    }
}

/// Says each failure to record what a reply told.
pub fn say_all(say: Say, failures: &[String]) {
    for failure in failures {
        say(&format!("that an end was told is not recorded, so it will be told again: {failure}"));
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Wire<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let delivery = id.and_then(|id| self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&id));
        let (sending, say) = (self.inner.send(message), self.say);
        async move {
            // What could not be sent is offered again when the delivery is dropped.
            sending.await?;
            if let Some(delivery) = delivery {
                say_all(say, &delivery.went_out().await);
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let message = loop {
            let Some(message) = self.inner.receive().await else {
                self.ended.cancel();
                return None;
            };
            match self.take(message) {
                Ok(message) => break message,
                // Its answer could not be told from that of the other one.
                Err(id) => {
                    let refused = self.inner.send(lines::in_use(id));
                    tokio::spawn(async move {
                        // A client that is gone is heard of elsewhere.
                        let _ = refused.await;
                    });
                }
            }
        };
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

impl<T> Wire<T> {
    /// Gives a request its delivery; an error for one whose id is in use.
    fn take(&self, mut message: RxJsonRpcMessage<RoleServer>) -> Result<RxJsonRpcMessage<RoleServer>, RequestId> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut message {
            JsonRpcMessage::Request(request) => {
                if open.contains_key(&request.id) {
                    return Err(request.id.clone());
                }
                let delivery = Delivery::default();
                request.request.extensions_mut().insert(delivery.clone());
                open.insert(request.id.clone(), delivery);
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    // It will not be answered.
                    open.remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        drop(open);
        Ok(message)
    }
}
