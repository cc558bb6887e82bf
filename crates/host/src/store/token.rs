//! The file `http-token`: what a client of the MCP server has to show over HTTP.

use super::name;
use super::state::State;
use crate::dir::Result;
use crate::lock::Lock;
use crate::{atomic, dir::FileError};

/// The token of the state directory; made of these bytes if there is none. The file is private (0600).
pub fn get_or_create(state: &State, fresh: impl FnOnce() -> std::io::Result<[u8; 32]>) -> Result<String> {
    let root = state.root();
    let _lock = Lock::acquire(root, name::TOKEN_LOCK)?;
    if let Some(bytes) = root.read_if_there(name::TOKEN, 256)? {
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        if text.len() >= 32 {
            return Ok(text);
        }
    }
    let bytes = fresh().map_err(|error| FileError::io("make", root.path_of(name::TOKEN), &error))?;
    let token = outlast_core::request::to_hex(&bytes);
    atomic::replace(root, name::TOKEN, format!("{token}\n").as_bytes(), Default::default())?;
    Ok(token)
}
