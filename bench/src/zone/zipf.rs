//! Numbers of which few are common and many are rare: the n-th is met 1/n times as often as the first.
//!
//! By rejection-inversion (Hörmann and Derflinger, 1996): the area under 1/x, which has an inverse, covers the
//! steps 1/n; what lies between the two is drawn again. It needs no table and about one draw a number.

use crate::random::Xorshift;

/// Numbers from 0 on; 0 is the most common.
#[derive(Debug)]
pub(super) struct Zipf {
    count: u32,
    random: Xorshift,
    lowest_area: f64,
    highest_area: f64,
}

impl Zipf {
    pub(super) fn below(count: u32) -> Zipf {
        Zipf {
            count,
            random: Xorshift::default(),
            lowest_area: area(1.5) - 1.0,
            highest_area: area(f64::from(count) + 0.5),
        }
    }

    fn draw(&mut self) -> Option<u32> {
        let under = self.lowest_area + self.random.unit() * (self.highest_area - self.lowest_area);
        let rank = under.exp().round().clamp(1.0, self.count.into());
        (under >= area(rank + 0.5) - 1.0 / rank).then_some(rank as u32 - 1)
    }
}

impl Iterator for Zipf {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        loop {
            if let Some(number) = self.draw() {
                return Some(number);
            }
        }
    }
}

/// The area under 1/x from 1 on.
fn area(until: f64) -> f64 {
    until.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frequencies(count: u32, draws: usize) -> Vec<f64> {
        let mut seen = vec![0_u32; count as usize];
        for number in Zipf::below(count).take(draws) {
            seen[number as usize] += 1;
        }
        seen.into_iter().map(|times| f64::from(times) / draws as f64).collect()
    }

    #[test]
    fn the_nth_is_met_an_nth_as_often_as_the_first() {
        let (count, draws) = (1000, 2_000_000);
        let harmonic: f64 = (1..=count).map(|rank| 1.0 / f64::from(rank)).sum();
        for (number, frequency) in frequencies(count, draws).into_iter().enumerate() {
            let expected = 1.0 / ((number + 1) as f64 * harmonic);
            let deviation = (expected / draws as f64).sqrt();
            assert!((frequency - expected).abs() < 5.0 * deviation, "{number}: {frequency} not {expected}");
        }
    }

    #[test]
    fn one_number_is_always_met() {
        assert_eq!(frequencies(1, 100), [1.0]);
    }
}
