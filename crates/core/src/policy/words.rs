//! Finds many words at once in bytes that come one by one (Aho and Corasick): the work is one step a byte, whatever the
//! words are and however long what was read is.

/// Where a search stands: how much of which words the last bytes are. The default is the start.
pub(super) type At = u32;

/// The words that are looked for.
#[derive(Clone, Debug)]
pub(super) struct Words {
    nodes: Vec<Node>,
    /// Where each byte leads from the start.
    first: Vec<At>,
}

#[derive(Clone, Debug, Default)]
struct Node {
    next: Vec<(u8, At)>,
    /// The longest end of it that begins a word, too.
    shorter: At,
    depth: u32,
    /// The word that it is as a whole.
    word: Option<u32>,
    /// The longest end of it, itself included, that is a word.
    ends: At,
}

impl Words {
    pub(super) fn new<'a>(words: impl IntoIterator<Item = &'a [u8]>) -> Words {
        let mut nodes = vec![Node::default()];
        for (number, word) in (0..).zip(words) {
            let mut at = 0;
            for byte in word {
                at = match child(&nodes, at, *byte) {
                    Some(next) => next,
                    None => {
                        let next = At::try_from(nodes.len()).expect("words of less than 4 GiB");
                        nodes.push(Node { depth: nodes[at as usize].depth + 1, ..Node::default() });
                        nodes[at as usize].next.push((*byte, next));
                        next
                    }
                };
            }
            nodes[at as usize].word = Some(number);
        }
        let first = (0..=u8::MAX).map(|byte| child(&nodes, 0, byte).unwrap_or(0)).collect();
        let mut words = Words { nodes, first };
        let mut level = vec![0];
        while !level.is_empty() {
            let mut below = Vec::new();
            for at in level {
                for (byte, next) in words.nodes[at as usize].next.clone() {
                    let shorter = if at == 0 { 0 } else { words.step(words.nodes[at as usize].shorter, byte) };
                    let ends = if words.nodes[next as usize].word.is_some() {
                        next
                    } else {
                        words.nodes[shorter as usize].ends
                    };
                    let node = &mut words.nodes[next as usize];
                    (node.shorter, node.ends) = (shorter, ends);
                    below.push(next);
                }
            }
            level = below;
        }
        words
    }

    /// Where the search stands after one more byte.
    pub(super) fn step(&self, mut at: At, byte: u8) -> At {
        while at != 0 {
            if let Some(next) = child(&self.nodes, at, byte) {
                return next;
            }
            at = self.nodes[at as usize].shorter;
        }
        self.first[byte as usize]
    }

    /// How many of the last bytes begin a word.
    pub(super) fn depth(&self, at: At) -> usize {
        self.nodes[at as usize].depth as usize
    }

    /// The beginnings of words that the last bytes are, the longest first.
    pub(super) fn beginnings(&self, at: At) -> impl Iterator<Item = At> {
        let step = |at: &At| Some(self.nodes[*at as usize].shorter);
        std::iter::successors(Some(at), step).take_while(|at| *at != 0)
    }

    /// The words that end here, the longest first.
    pub(super) fn ends(&self, at: At) -> impl Iterator<Item = usize> {
        let step = |at: &At| Some(self.nodes[self.nodes[*at as usize].shorter as usize].ends);
        let ends = std::iter::successors(Some(self.nodes[at as usize].ends), step).take_while(|at| *at != 0);
        ends.filter_map(|at| self.nodes[at as usize].word.map(|word| word as usize))
    }

    /// How many beginnings of words there are, the empty one included; each is a number below.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// All beginnings of this word.
    pub(super) fn path(&self, word: &[u8]) -> Vec<At> {
        let step = |at: &mut At, byte: &u8| {
            *at = child(&self.nodes, *at, *byte)?;
            Some(*at)
        };
        word.iter().scan(0, step).collect()
    }
}

fn child(nodes: &[Node], at: At, byte: u8) -> Option<At> {
    nodes[at as usize].next.iter().find(|(other, _)| *other == byte).map(|(_, next)| *next)
}
