//! The plugins of opencode: it runs no programs as hooks, so that a few lines of its own language ask `outlast hook`.

/// The plugin that tells the model what ended and what runs.
pub fn news() -> String {
    [include_str!("opencode/ask.js"), include_str!("opencode/news.js")].concat()
}

/// The plugin that refuses the built-in shell.
pub fn redirect() -> String {
    [include_str!("opencode/ask.js"), include_str!("opencode/redirect.js")].concat()
}
