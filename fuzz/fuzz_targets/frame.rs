//! Frames on a socket: bytes from anywhere give the same frames wherever they are cut, what is sent arrives as it was,
//! with its descriptors, and a message that was understood is said again as the same.
#![no_main]

use std::fmt::Debug;
use std::os::fd::OwnedFd;

use libfuzzer_sys::fuzz_target;
use outlast_core::wire::{FromKeeper, FromOwnKeeper, FromSupervisor, ToKeeper, ToOwnKeeper, ToSupervisor};
use outlast_fuzz::{Cut, take};
use outlast_host::frame::{Body, Channel, Frame, Stream};
use serde::Serialize;
use serde::de::DeserializeOwned;

fuzz_target!(|data: &[u8]| {
    let mut rest = data;
    match take(&mut rest, 1).first() {
        Some(b'm') => messages(rest),
        Some(b's') => sent(&Cut::of(rest).pieces()),
        Some(_) => {
            let input = Cut::of(rest);
            let whole = received(&[input.text]);
            assert_eq!(received(&input.pieces()), whole, "the cuts make a difference");
        }
        None => {}
    }
});

/// The frames of these bytes as they come, and how it ends.
fn received(pieces: &[&[u8]]) -> (Vec<Body>, String) {
    let (from, mut to) = Channel::pair().expect("a pair of sockets");
    let from = from.into_fd();
    let mut bodies = Vec::new();
    let mut take_all = |to: &mut Channel| loop {
        match to.receive() {
            Ok(Some(Frame { body, fds })) => {
                assert!(fds.is_empty(), "descriptors that nobody sent");
                bodies.push(body);
            }
            Ok(None) => return Ok(to.is_eof()),
            Err(error) => return Err(error.to_string()),
        }
    };
    for piece in pieces {
        let mut left = *piece;
        while !left.is_empty() {
            let count = rustix::io::write(&from, left).expect("there is room for what was not refused");
            left = &left[count..];
            if let Err(error) = take_all(&mut to) {
                return (bodies, error);
            }
        }
    }
    drop(from);
    let end = take_all(&mut to).map(|is_eof| if is_eof { "closed" } else { "open" }.to_owned());
    (bodies, end.unwrap_or_else(|error| error))
}

/// Sends each piece as a frame; the last byte of one says which.
fn sent(pieces: &[&[u8]]) {
    let (mut from, mut to) = Channel::pair().expect("a pair of sockets");
    let mut wanted = Vec::new();
    let mut got = Vec::new();
    let mut take_all = |to: &mut Channel| {
        while let Some(Frame { body, fds }) = to.receive().expect("what was sent is understood") {
            got.push((body, fds.len()));
        }
    };
    for (number, piece) in pieces.iter().take(24).enumerate() {
        let kind = piece.last().copied().unwrap_or_default();
        let stream = [Stream::Out, Stream::Err, Stream::In][usize::from(kind) % 3];
        if kind & 8 == 0 {
            from.send_bytes(stream, piece).expect("it is sent");
            wanted.push((Body::Bytes { stream, bytes: piece.to_vec() }, 0));
        } else {
            let text = String::from_utf8_lossy(piece);
            let fds: Vec<OwnedFd> = (0..kind >> 4).map(|_| descriptor()).collect();
            wanted.push((Body::Json(serde_json::to_vec(&*text).expect("a text")), fds.len()));
            from.send_json_with(&*text, fds).expect("it is sent");
        }
        if number % 3 == 0 {
            take_all(&mut to);
        }
    }
    while !from.flush().expect("the other end is there") {
        take_all(&mut to);
    }
    assert!(!from.want_write() && from.queued() == 0);
    drop(from);
    take_all(&mut to);
    assert!(to.is_eof());
    assert_eq!(got, wanted, "what was sent is not what came");
}

fn descriptor() -> OwnedFd {
    std::fs::File::open("/dev/null").expect("it is there").into()
}

fn messages(text: &[u8]) {
    said_again::<ToKeeper>(text);
    said_again::<FromKeeper>(text);
    said_again::<ToSupervisor>(text);
    said_again::<FromSupervisor>(text);
    said_again::<ToOwnKeeper>(text);
    said_again::<FromOwnKeeper>(text);
}

fn said_again<T: Serialize + DeserializeOwned + PartialEq + Debug>(text: &[u8]) {
    let frame = Frame { body: Body::Json(text.to_vec()), fds: Vec::new() };
    let Ok(message) = frame.json::<T>() else { return };
    let again = serde_json::to_vec(&message).expect("plain data");
    let again = Frame { body: Body::Json(again), fds: Vec::new() };
    assert_eq!(again.json::<T>().expect("what was said is understood"), message);
}
