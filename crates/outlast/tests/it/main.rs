//! The library against real processes: the real executable, real keepers, real commands.

mod world;
mod deliver;
mod destroy;
mod ends;
mod foreground;
mod inspect;
mod join;
mod lost;
mod owner;
mod reports;
mod scarce;
mod session;
mod stop;
mod wait;
