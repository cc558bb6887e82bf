//! Which bytes of an output its cleaned text has ([`crate::text::Cleaner`]), one by one.

/// Leaves out of an output what its cleaned text does not show.
#[derive(Clone, Debug, Default)]
pub(super) struct Plain {
    state: Sequence,
    /// How many bytes of a character are to come, and which the next one can be.
    more: u8,
    next: (u8, u8),
    /// Whether the last byte was 0xc2, which may begin a control character of 8 bits; and where it stands, if it is text
    /// where it does not.
    lead: (bool, Option<u64>),
}

/// Where in an escape sequence the output is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sequence {
    #[default]
    None,
    /// ESC came.
    Begun,
    /// ESC and what is no command yet.
    Middle,
    /// CSI came.
    Control,
    /// The text of a title or a link, which BEL ends.
    Title,
    /// Another text.
    Text,
}

/// What is to be made of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It is text.
    Shown,
    /// It is text, and so is the one before, which was waited with.
    Both(u64),
    /// It is not in the text.
    Hidden,
    /// It depends on the next one.
    Waits,
    /// It is not in the text, but the one before, which was waited with, is.
    Before(u64),
}

impl Plain {
    /// Takes the next byte, which stands at this offset.
    pub(super) fn take(&mut self, byte: u8, at: u64) -> Part {
        let (is_led, lead) = std::mem::take(&mut self.lead);
        if is_led && matches!(byte, 0x80..=0x9f) {
            self.more = 0;
            self.control(byte);
            return Part::Hidden;
        }
        let fits = self.more > 0 && (self.next.0..=self.next.1).contains(&byte);
        if !fits && byte == 0xc2 {
            (self.more, self.next) = (1, (0x80, 0xbf));
            let is_text = self.state == Sequence::None;
            self.lead = (true, is_text.then_some(at));
            return lead.map_or(if is_text { Part::Waits } else { Part::Hidden }, Part::Before);
        }
        match (lead, self.look(byte, fits)) {
            (Some(lead), true) => Part::Both(lead),
            (Some(lead), false) => Part::Before(lead),
            (None, true) => Part::Shown,
            (None, false) => Part::Hidden,
        }
    }

    /// The byte that is waited with.
    pub(super) fn waits(&self) -> Option<u64> {
        self.lead.1
    }

    fn look(&mut self, byte: u8, fits: bool) -> bool {
        if fits {
            (self.more, self.next) = (self.more - 1, (0x80, 0xbf));
            return self.state == Sequence::None;
        }
        (self.more, self.next) = match byte {
            0xc3..=0xdf => (1, (0x80, 0xbf)),
            0xe0 => (2, (0xa0, 0xbf)),
            0xed => (2, (0x80, 0x9f)),
            0xe1..=0xef => (2, (0x80, 0xbf)),
            0xf0 => (3, (0x90, 0xbf)),
            0xf1..=0xf3 => (3, (0x80, 0xbf)),
            0xf4 => (3, (0x80, 0x8f)),
            _ => (0, (0, 0)),
        };
        match byte {
            // A line break ends every sequence.
            b'\n' => self.state = Sequence::None,
            0x80..=0x9f => {
                self.control(byte);
                return false;
            }
            0x1b => self.state = Sequence::Begun,
            0x18 | 0x1a => self.state = Sequence::None,
            _ => {
                let before = self.state;
                self.state = self.follow(byte);
                let in_text = matches!(before, Sequence::Title | Sequence::Text);
                return match byte {
                    b'\t' | b'\r' => !in_text,
                    ..0x20 | 0x7f => false,
                    _ => before == Sequence::None,
                };
            }
        }
        byte == b'\n'
    }

    /// The state after a byte that ends no sequence by itself.
    fn follow(&self, byte: u8) -> Sequence {
        match (self.state, byte) {
            (Sequence::Title, 0x07) => Sequence::None,
            (state @ (Sequence::None | Sequence::Title | Sequence::Text), _) => state,
            (state, ..0x20 | 0x7f..) => state,
            (Sequence::Begun, b'[') => Sequence::Control,
            (Sequence::Begun, b']') => Sequence::Title,
            (Sequence::Begun, b'P' | b'X' | b'^' | b'_') => Sequence::Text,
            (Sequence::Begun | Sequence::Middle, 0x20..=0x2f) => Sequence::Middle,
            (Sequence::Control, 0x20..=0x3f) => Sequence::Control,
            (Sequence::Begun | Sequence::Middle | Sequence::Control, _) => Sequence::None,
        }
    }

    /// A control character of 8 bits is an ESC and a letter.
    fn control(&mut self, byte: u8) {
        self.state = Sequence::Begun;
        self.state = self.follow(byte - 0x40);
    }
}
