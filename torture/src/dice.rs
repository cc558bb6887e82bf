//! Numbers that look random and can be had again from a seed and a round.

/// A source of such numbers (xorshift, Marsaglia 2003).
pub struct Dice(u64);

impl Dice {
    /// The numbers of one round.
    pub fn new(seed: u64, round: u64) -> Dice {
        // Seeds and rounds that differ in few bits must not begin alike (splitmix64, Steele 2014).
        let mut mixed =
            seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ round.wrapping_add(1).wrapping_mul(0xD1B5_4A32_D192_ED03);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Dice((mixed ^ (mixed >> 31)) | 1)
    }

    /// A number from 0 to below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    /// The same for places in a list.
    pub fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).expect("below a usize")
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One entry of a list that has some.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.index(list.len())]
    }
}
