//! The library against real processes: the real executable, real keepers, real commands.

mod world;
mod deliver;
mod destroy;
mod ends;
mod family;
mod foreground;
mod inspect;
mod join;
mod lost;
mod observe;
mod owner;
mod replace;
mod reports;
mod scarce;
mod session;
mod stop;
mod task;
mod task_memory;
mod task_seen;
mod task_threads;
mod temporary;
mod wait;
