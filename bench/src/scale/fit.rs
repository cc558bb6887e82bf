//! How a line grows: not at all, by so much for each, or faster than that.

use super::data::Point;

/// A line whose largest figure is no more than so many times its smallest does not grow.
const FLAT: f64 = 1.5;
/// Nor does one that grows with no more than this power of the size from its first figure to its last.
const AIMLESS: f64 = 0.08;
/// The most by which the last stretch of a line may be steeper than what goes before it, and be called straight.
const STRAIGHT: f64 = 1.6;

/// What grows with what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Growth {
    /// There is only one size.
    Unknown,
    /// It is the same at every size, within half as much again, or goes up and down without a direction.
    Constant {
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
    /// There is nothing at the smaller sizes.
    FromNothing {
        /// The last size at which there is nothing.
        until: f64,
        /// The largest figure.
        most: f64,
    },
    /// It grows with every size, and less the more there are.
    Slower {
        /// The power of the size by which it grows from the first size to the last.
        power: f64,
    },
    /// It falls.
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

/// How these figures grow. The last stretch decides whether they grow faster than their size: a cost for each that grows
/// itself shows there.
pub fn growth(points: &[Point]) -> Growth {
    let (first, before, last) = match points {
        [] | [_] => return Growth::Unknown,
        [first, last] => (*first, *first, *last),
        [first, .., before, last] => (*first, *before, *last),
    };
    let (least, most) =
        points.iter().fold((f64::MAX, 0.0_f64), |(least, most), point| (least.min(point.y), most.max(point.y)));
    if let Some(nothing) = points.iter().rfind(|point| point.y <= 0.0 && most > 0.0) {
        return Growth::FromNothing { until: nothing.x, most };
    }
    let power = |from: Point, to: Point| (to.y / from.y.max(f64::MIN_POSITIVE)).ln() / (to.x / from.x).ln();
    if most <= least * FLAT || (least > 0.0 && power(first, last).abs() < AIMLESS) {
        return Growth::Constant { least, most };
    }
    if last.y < first.y && last.y * FLAT <= most {
        return Growth::Falls { from: first.y, to: last.y };
    }
    let (base, each) = straight(points);
    // What one more costs on the last stretch, against what one has cost until there.
    let late = (last.y - before.y) / (last.x - before.x);
    let until = (before.y - base.min(before.y)).max(before.y * 0.01) / before.x;
    let steep = power(before, last);
    if steep > 1.1 && late > until * STRAIGHT {
        return Growth::Faster { power: steep };
    }
    let off = points.iter().map(|point| (base + each * point.x) / point.y);
    let fits = each > 0.0 && off.clone().all(|ratio| (1.0 / STRAIGHT..=STRAIGHT).contains(&ratio));
    if fits { Growth::Linear { base: base.max(0.0), each } } else { Growth::Slower { power: power(first, last) } }
}

/// The straight line that misses the figures by the least share of each of them: what there is without any, and for each.
fn straight(points: &[Point]) -> (f64, f64) {
    let [mut w, mut wx, mut wy, mut wxx, mut wxy] = [0.0_f64; 5];
    for point in points {
        let weight = 1.0 / point.y.max(f64::MIN_POSITIVE).powi(2);
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

    fn of(figures: &[(f64, f64)]) -> Growth {
        let points: Vec<Point> = figures.iter().map(|&(x, y)| Point { x, y, low: y, high: y, taken: 1 }).collect();
        growth(&points)
    }

    #[test]
    fn what_does_not_grow_is_constant() {
        assert_eq!(of(&[(1.0, 4.0), (10.0, 5.0), (1000.0, 4.5)]), Growth::Constant { least: 4.0, most: 5.0 });
        assert_eq!(of(&[(1.0, 0.0), (10.0, 0.0)]), Growth::Constant { least: 0.0, most: 0.0 });
        assert_eq!(of(&[(1.0, 4.0)]), Growth::Unknown);
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
    fn a_square_is_faster_than_linear() {
        let square = of(&[(1.0, 5.0), (10.0, 6.0), (100.0, 105.0), (1000.0, 10_005.0)]);
        assert!(matches!(square, Growth::Faster { power } if power > 1.9), "{square:?}");
        let hidden = of(&[(1_000.0, 10.0), (10_000.0, 20.0), (100_000.0, 1_000.0)]);
        assert!(matches!(hidden, Growth::Faster { .. }), "{hidden:?}");
    }

    #[test]
    fn a_root_is_slower_and_a_fall_falls() {
        let root = of(&[(1.0, 1.0), (100.0, 10.0), (10_000.0, 100.0)]);
        assert!(matches!(root, Growth::Slower { power } if (power - 0.5).abs() < 1e-6), "{root:?}");
        assert_eq!(of(&[(1.0, 10.0), (10.0, 5.0), (100.0, 2.0)]), Growth::Falls { from: 10.0, to: 2.0 });
    }
}
