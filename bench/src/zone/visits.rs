//! Who comes when, by number: read one after the other, so that it is at hand.

/// How many visits of hot keys a thread has per round.
const HOT_VISITS: usize = 51_200;
/// How many it has where each is to a key that is not at hand.
const COLD_VISITS: usize = 25_600;
/// After so many turns the visits begin anew, where there are many keys: not within one table.
const TURNS: usize = 64;

/// Numbers of keys, in the order of visits.
pub(super) struct Visits {
    order: Vec<u32>,
    per_turn: usize,
}

impl Visits {
    /// The first of so many keys, the second, and so on, and the first again.
    pub(super) fn in_turn(keys: u32) -> Visits {
        Visits { order: (0..keys).cycle().take(HOT_VISITS).collect(), per_turn: HOT_VISITS }
    }

    /// Each visit is to any of so many keys.
    pub(super) fn uniform(keys: u32) -> Visits {
        let mut random = fastrand::Rng::with_seed(1);
        let order = (0..TURNS * COLD_VISITS).map(|_| random.u32(..keys)).collect();
        Visits { order, per_turn: COLD_VISITS }
    }

    /// Few keys are visited often, and many seldom.
    pub(super) fn zipf(keys: u32) -> Visits {
        Visits { order: Zipf::below(keys).take(TURNS * COLD_VISITS).collect(), per_turn: COLD_VISITS }
    }

    /// The visits of one thread in one round.
    pub(super) fn turn(&self, number: usize) -> &[u32] {
        let turns = self.order.len() / self.per_turn;
        &self.order[number % turns * self.per_turn..][..self.per_turn]
    }
}

/// Numbers from 0 on; 0 is the most common.
#[derive(Debug)]
pub(super) struct Zipf {
    count: u32,
    random: fastrand::Rng,
    lowest_area: f64,
    highest_area: f64,
}

impl Zipf {
    pub(super) fn below(count: u32) -> Zipf {
        Zipf {
            count,
            random: fastrand::Rng::with_seed(1),
            lowest_area: area(1.5) - 1.0,
            highest_area: area(f64::from(count) + 0.5),
        }
    }

    fn draw(&mut self) -> Option<u32> {
        let under = self.lowest_area + self.random.f64() * (self.highest_area - self.lowest_area);
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

    #[test]
    fn keys_come_in_turn() {
        let visits = Visits::in_turn(2);
        assert_eq!(visits.turn(7)[..3], [0, 1, 0]);
        assert_eq!(visits.turn(7).len(), HOT_VISITS);
    }

    #[test]
    fn turns_differ_until_all_are_over() {
        let visits = Visits::uniform(1_000_000);
        assert_ne!(visits.turn(0)[..8], visits.turn(1)[..8]);
        assert_eq!(visits.turn(0)[..8], visits.turn(TURNS)[..8]);
    }

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
