//! What a frame is called at the crash point before it is sent: its type and variant. Nothing without `crash-points`.

use std::fmt;

use super::Stream;

/// The name of a frame.
#[derive(Debug)]
pub(super) struct FrameName {
    #[cfg(feature = "crash-points")]
    text: String,
}

#[cfg(not(feature = "crash-points"))]
impl FrameName {
    #[inline(always)]
    pub(super) fn of_message<T: ?Sized>(_message: &T, _payload: &[u8]) -> FrameName {
        FrameName {}
    }

    #[inline(always)]
    pub(super) fn of_bytes(_stream: Stream) -> FrameName {
        FrameName {}
    }
}

#[cfg(feature = "crash-points")]
impl FrameName {
    /// `FromSupervisor.accepted`: the tag is the first value of the text.
    pub(super) fn of_message<T: ?Sized>(_message: &T, payload: &[u8]) -> FrameName {
        let tag = payload.split(|&byte| byte == b'"').nth(3).unwrap_or_default();
        let kind = std::any::type_name::<T>().rsplit("::").next().unwrap_or_default();
        FrameName { text: format!("{kind}.{}", String::from_utf8_lossy(tag)) }
    }

    pub(super) fn of_bytes(stream: Stream) -> FrameName {
        FrameName { text: format!("bytes.{stream:?}").to_lowercase() }
    }
}

impl fmt::Display for FrameName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(feature = "crash-points")]
        f.write_str(&self.text)?;
        let _ = f;
        Ok(())
    }
}
