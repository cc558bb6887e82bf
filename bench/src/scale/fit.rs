//! How a line grows: not at all, by so much for each, faster than that, or by no law that can be told.

use super::data::Point;

/// A line whose largest figure is no more than so many times its smallest does not grow.
const FLAT: f64 = 1.5;
/// The most by which the last stretch of a line may be steeper than what goes before it, and be called straight.
const STRAIGHT: f64 = 1.6;
/// The fewest sizes from which a law is told.
const FEWEST: usize = 3;

/// What grows with what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Growth {
    /// There is only one size.
    Unknown,
    /// There are too few sizes for a law.
    FromTo {
        /// At the smallest size.
        from: f64,
        /// At the largest.
        to: f64,
    },
    /// It is the same at every size, within half as much again.
    Constant {
        /// The least figure.
        least: f64,
        /// The largest.
        most: f64,
    },
    /// It goes up and down, or the ends do not differ by more than their own spread.
    NoDirection {
        /// The least figure.
        least: f64,
        /// The largest.
        most: f64,
    },
    /// So much, and so much more for each.
    Linear {
        /// Without any.
        base: f64,
        /// For each.
        each: f64,
    },
    /// It is largest at the last size, and there is nothing at a smaller one.
    FromNothing {
        /// The last size at which there is nothing.
        until: f64,
        /// The largest figure.
        most: f64,
    },
    /// It is largest at the last size, and grows less than the size does.
    Slower {
        /// The power of the size by which it grows from the first size to the last.
        power: f64,
    },
    /// It is largest at the last size, by none of the other laws.
    Rises {
        /// At the smallest size.
        from: f64,
        /// At the largest.
        to: f64,
        /// The power of the size by which it grows from the one to the other.
        power: f64,
    },
    /// It is largest at the first size.
    Falls {
        /// At the smallest size.
        from: f64,
        /// At the largest.
        to: f64,
    },
    /// Each costs more the more there are.
    Faster {
        /// The power of the size by which it grows on its last stretch.
        power: f64,
    },
}

/// What the figures of a line are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figures {
    /// What so many cost: there can be so much for each.
    Costs,
    /// So many in a second: nothing of that is for each.
    Rates,
}

/// How these figures grow. The last stretch decides whether they grow faster than their size: a cost for each that grows
/// itself shows there.
pub fn growth(points: &[Point], figures: Figures) -> Growth {
    let (first, before, last) = match points {
        [] | [_] => return Growth::Unknown,
        [first, .., before, last] if points.len() >= FEWEST => (*first, *before, *last),
        [first, .., last] => return Growth::FromTo { from: first.y, to: last.y },
    };
    let (least, most) =
        points.iter().fold((f64::MAX, 0.0_f64), |(least, most), point| (least.min(point.y), most.max(point.y)));
    if most <= least * FLAT {
        return Growth::Constant { least, most };
    }
    if last.high < first.low && most <= first.y {
        return Growth::Falls { from: first.y, to: last.y };
    }
    if first.high >= last.low || most > last.y {
        return Growth::NoDirection { least, most };
    }
    if let Some(nothing) = points.iter().rfind(|point| point.y <= 0.0) {
        return Growth::FromNothing { until: nothing.x, most };
    }
    let whole = power(first, last);
    let rises = Growth::Rises { from: first.y, to: last.y, power: whole };
    if figures == Figures::Rates {
        return rises;
    }
    let (base, each) = line(points);
    // What one more costs on the last stretch, against what one has cost until there.
    let late = (last.y - before.y) / (last.x - before.x);
    let until = (before.y - base.min(before.y)).max(before.y * 0.01) / before.x;
    let steep = power(before, last);
    if steep > 1.1 && late > until * STRAIGHT {
        return Growth::Faster { power: steep };
    }
    if fits(points, base, each) {
        return Growth::Linear { base, each };
    }
    if whole < 1.0 { Growth::Slower { power: whole } } else { rises }
}

/// The power of the size by which figures grow from one to the other.
fn power(from: Point, to: Point) -> f64 {
    (to.y / from.y).ln() / (to.x / from.x).ln()
}

/// Whether a straight line that rises meets all figures.
fn fits(points: &[Point], base: f64, each: f64) -> bool {
    let mut off = points.iter().map(|point| (base + each * point.x) / point.y);
    each > 0.0 && off.all(|ratio| (1.0 / STRAIGHT..=STRAIGHT).contains(&ratio))
}

/// The straight line that is nearest to the figures and does not begin below nothing: where the nearest one does, the
/// nearest through the origin.
fn line(points: &[Point]) -> (f64, f64) {
    let (base, each) = straight(points);
    if base >= 0.0 {
        return (base, each);
    }
    let [wxx, wxy] = points.iter().fold([0.0; 2], |[wxx, wxy], point| {
        let share = point.x / point.y;
        [wxx + share * share, wxy + share]
    });
    (0.0, wxy / wxx)
}

/// The straight line that misses the figures by the least share of each of them: what there is without any, and for each.
fn straight(points: &[Point]) -> (f64, f64) {
    let [mut w, mut wx, mut wy, mut wxx, mut wxy] = [0.0_f64; 5];
    for point in points {
        let weight = 1.0 / point.y.powi(2);
        w += weight;
        wx += weight * point.x;
        wy += weight * point.y;
        wxx += weight * point.x * point.x;
        wxy += weight * point.x * point.y;
    }
    let each = (w * wxy - wx * wy) / (w * wxx - wx * wx);
    ((wy - each * wx) / w, each)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(figures: &[(f64, f64)]) -> Vec<Point> {
        figures.iter().map(|&(x, y)| Point { x, y, low: y, high: y, taken: 1 }).collect()
    }

    fn of(figures: &[(f64, f64)]) -> Growth {
        growth(&points(figures), Figures::Costs)
    }

    #[test]
    fn what_does_not_grow_is_constant() {
        assert_eq!(of(&[(1.0, 4.0), (10.0, 5.0), (1000.0, 4.5)]), Growth::Constant { least: 4.0, most: 5.0 });
        assert_eq!(of(&[(1.0, 0.0), (10.0, 0.0), (100.0, 0.0)]), Growth::Constant { least: 0.0, most: 0.0 });
        assert_eq!(of(&[(1.0, 4.0)]), Growth::Unknown);
    }

    #[test]
    fn two_sizes_show_no_law() {
        assert_eq!(of(&[(1.0, 4.0), (10.0, 40.0)]), Growth::FromTo { from: 4.0, to: 40.0 });
    }

    #[test]
    fn what_begins_with_nothing_has_no_power() {
        assert_eq!(of(&[(1.0, 0.0), (10.0, 0.0), (100.0, 3.0)]), Growth::FromNothing { until: 10.0, most: 3.0 });
    }

    #[test]
    fn a_straight_line_is_linear() {
        let Growth::Linear { base, each } = of(&[(1.0, 10.2), (10.0, 12.0), (100.0, 30.0), (1000.0, 210.0)]) else {
            panic!("it is straight");
        };
        assert!((base - 10.0).abs() < 1e-6 && (each - 0.2).abs() < 1e-6, "{base} {each}");
    }

    #[test]
    fn a_line_that_would_begin_below_nothing_is_fitted_again_through_the_origin() {
        let figures = [(1.0, 0.9), (10.0, 10.0), (100.0, 101.0)];
        assert!(straight(&points(&figures)).0 < 0.0);
        let Growth::Linear { base, each } = of(&figures) else { panic!("it is straight") };
        assert!(base == 0.0 && fits(&points(&figures), base, each), "{each}");
        // Through the origin this one misses a figure, and so no line is told.
        let far = [(10.0, 2.0), (20.0, 14.0), (30.0, 25.0)];
        assert!(straight(&points(&far)).0 < 0.0);
        assert!(!matches!(of(&far), Growth::Linear { .. }), "{:?}", of(&far));
    }

    #[test]
    fn a_square_is_faster_than_linear() {
        let square = of(&[(1.0, 5.0), (10.0, 6.0), (100.0, 105.0), (1000.0, 10_005.0)]);
        assert!(matches!(square, Growth::Faster { power } if power > 1.9), "{square:?}");
        let hidden = of(&[(1_000.0, 10.0), (10_000.0, 20.0), (100_000.0, 1_000.0)]);
        assert!(matches!(hidden, Growth::Faster { .. }), "{hidden:?}");
    }

    #[test]
    fn a_root_is_slower_and_what_is_none_of_these_rises() {
        let root = of(&[(1.0, 1.0), (100.0, 10.0), (10_000.0, 100.0)]);
        assert!(matches!(root, Growth::Slower { power } if (power - 0.5).abs() < 1e-6), "{root:?}");
        // Faster than its size at first, and then not at all.
        let steep = of(&[(1.0, 1.0), (10.0, 200.0), (100.0, 210.0)]);
        assert!(matches!(steep, Growth::Rises { power, .. } if power > 1.1), "{steep:?}");
    }

    #[test]
    fn only_what_is_largest_at_first_and_clearly_less_at_last_falls() {
        let mut falls = points(&[(1.0, 10.0), (10.0, 5.0), (100.0, 2.0)]);
        assert_eq!(growth(&falls, Figures::Costs), Growth::Falls { from: 10.0, to: 2.0 });
        assert_eq!(of(&[(1.0, 10.0), (10.0, 11.0), (100.0, 2.0)]), Growth::NoDirection { least: 2.0, most: 11.0 });
        falls[2].high = 12.0;
        assert_eq!(growth(&falls, Figures::Costs), Growth::NoDirection { least: 2.0, most: 10.0 });
    }

    #[test]
    fn what_goes_up_and_down_has_no_direction() {
        assert_eq!(of(&[(1.0, 2.0), (10.0, 20.0), (100.0, 2.1)]), Growth::NoDirection { least: 2.0, most: 20.0 });
        assert_eq!(of(&[(1.0, 0.0), (10.0, 1.0), (100.0, 0.0)]), Growth::NoDirection { least: 0.0, most: 1.0 });
        let mut rises = points(&[(1.0, 1.0), (10.0, 2.0), (100.0, 5.0)]);
        rises[0].high = 6.0;
        assert_eq!(growth(&rises, Figures::Costs), Growth::NoDirection { least: 1.0, most: 5.0 });
    }

    #[test]
    fn a_rate_has_nothing_for_each() {
        let figures = points(&[(1.0, 10.2), (10.0, 12.0), (100.0, 30.0)]);
        let rate = growth(&figures, Figures::Rates);
        assert!(matches!(rate, Growth::Rises { from: 10.2, to: 30.0, .. }), "{rate:?}");
    }
}
