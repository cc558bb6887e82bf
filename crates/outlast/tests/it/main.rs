//! The library against real processes: the real executable, real keepers, real commands.

mod world;
mod deliver;
mod foreground;
mod inspect;
mod lost;
mod session;
mod stop;
mod wait;
