//! Tests of frames over a socket pair.

use std::io::{Read, Write};

use super::*;

fn pair() -> (Channel, Channel) {
    Channel::pair().unwrap()
}

fn text(frame: Frame) -> String {
    frame.json().unwrap()
}

#[test]
fn messages_bytes_and_descriptors_come_in_order() {
    let (mut a, mut b) = pair();
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    a.send_json("one").unwrap();
    a.send_json_with("two", vec![reader]).unwrap();
    a.send_bytes(Stream::Err, b"\0\xff").unwrap();
    a.send_bytes(Stream::In, b"").unwrap();
    let first = b.receive().unwrap().unwrap();
    assert!(first.fds.is_empty());
    assert_eq!(text(first), "one");
    let mut second = b.receive().unwrap().unwrap();
    std::fs::File::from(writer).write_all(b"through").unwrap();
    let mut through = String::new();
    std::fs::File::from(second.fds.pop().unwrap()).read_to_string(&mut through).unwrap();
    assert_eq!((through.as_str(), text(second).as_str()), ("through", "two"));
    let third = b.receive().unwrap().unwrap().body;
    assert_eq!(third, Body::Bytes { stream: Stream::Err, bytes: b"\0\xff".to_vec() });
    assert_eq!(b.receive().unwrap().unwrap().body, Body::Bytes { stream: Stream::In, bytes: vec![] });
    assert!(b.receive().unwrap().is_none());
    assert!(!b.is_eof());
    drop(a);
    assert!(b.receive().unwrap().is_none());
    assert!(b.is_eof());
}

#[test]
fn a_descriptor_behind_queued_bytes_arrives_with_its_own_frame() {
    let (mut a, mut b) = pair();
    let big = vec![7; 3 << 20];
    a.send_bytes(Stream::Out, &big).unwrap();
    assert!(a.want_write());
    a.send_json_with("fd", vec![rustix::pipe::pipe().unwrap().0]).unwrap();
    a.send_json("after").unwrap();
    assert!(a.queued() > 1 << 20);
    let mut frames = Vec::new();
    while frames.len() < 3 {
        a.flush().unwrap();
        frames.extend(b.receive().unwrap());
    }
    assert!(!a.want_write());
    assert_eq!(frames[0].body, Body::Bytes { stream: Stream::Out, bytes: big });
    let counts: Vec<usize> = frames.iter().map(|frame| frame.fds.len()).collect();
    assert_eq!(counts, [0, 1, 0]);
    assert!(b.received.capacity() <= RECEIVE_STEP_MOST * 2);
}

#[test]
fn frames_cut_at_any_byte_come_out_whole() {
    let (a, mut b) = pair();
    let mut wire = Vec::new();
    push_frame(&mut wire, 4, 0, b"\"ab\"");
    push_frame(&mut wire, 0, 1, b"");
    let mut socket = std::fs::File::from(a.into_fd());
    let mut whole = 0;
    for byte in wire {
        socket.write_all(&[byte]).unwrap();
        whole += usize::from(b.receive().unwrap().is_some());
    }
    assert_eq!(whole, 2);
    socket.write_all(&[9, 0]).unwrap();
    drop(socket);
    assert!(b.receive().unwrap().is_none());
    assert!(b.is_eof(), "half a frame counts for nothing");
}

#[test]
fn broken_protocol_is_told() {
    for (wire, why) in [
        (&[0, 0, 0, 2, 0][..], "16 MiB"),
        (&[0, 0, 0, 0, 9], "unknown kind"),
        (&[0, 0, 0, 0, 0x10], "without its descriptors"),
    ] {
        let (a, mut b) = pair();
        std::fs::File::from(a.into_fd()).write_all(wire).unwrap();
        assert!(b.receive().unwrap_err().to_string().contains(why));
    }
    let (mut a, _b) = pair();
    assert!(a.send_bytes(Stream::Out, &vec![0; MAX_PAYLOAD + 1]).is_err());
}

#[test]
fn a_peer_that_is_gone_is_told_and_its_last_words_are_heard() {
    let (mut a, mut b) = pair();
    b.send_json("bye").unwrap();
    drop(b);
    assert!(matches!(a.send_json("hello"), Err(ChannelError::PeerGone)));
    assert!(!a.want_write());
    assert_eq!(text(a.receive().unwrap().unwrap()), "bye");
    assert!(a.receive().unwrap().is_none());
    assert!(a.is_eof());
}
