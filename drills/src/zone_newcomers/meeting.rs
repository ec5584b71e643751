//! How many of a key's asks were admitted, and to how many of those who met over it.

/// What one of those who met over a key was admitted, to be added up in one word.
pub(super) fn share(admitted: u64) -> u64 {
    (u64::from(admitted > 0) << 32) | admitted
}

/// The sum of the shares of each key.
#[derive(Debug)]
pub(super) struct Meetings {
    burst: u64,
    keys: u64,
    /// How many keys were shared by one, by two and so on.
    parties: Vec<u64>,
    wrong: u64,
    first_wrong: Option<(u64, u64)>,
}

impl Meetings {
    pub(super) fn new(burst: u64) -> Meetings {
        Meetings { burst, keys: 0, parties: vec![0; burst as usize], wrong: 0, first_wrong: None }
    }

    /// Enters the sum of all shares of the next key.
    pub(super) fn enter(&mut self, shares: u64) {
        let (parties, admitted) = (shares >> 32, shares & u64::from(u32::MAX));
        if admitted != self.burst {
            self.wrong += 1;
            self.first_wrong.get_or_insert((self.keys, admitted));
        }
        if let Some(count) = self.parties.get_mut((parties as usize).wrapping_sub(1)) {
            *count += 1;
        }
        self.keys += 1;
    }

    pub(super) fn keys(&self) -> u64 {
        self.keys
    }

    pub(super) fn parties(&self) -> &[u64] {
        &self.parties
    }

    /// Keys whose burst went to more than one.
    pub(super) fn shared(&self) -> u64 {
        self.parties.iter().skip(1).sum()
    }

    /// Keys of which more or less than the burst was admitted.
    pub(super) fn wrong(&self) -> u64 {
        self.wrong
    }

    pub(super) fn first_wrong(&self) -> String {
        match self.first_wrong {
            None => "no exception".to_owned(),
            Some((key, admitted)) => {
                format!("{} exceptions, the first: key {key} was admitted {admitted}", self.wrong)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_burst_or_are_seen() {
        let mut meetings = Meetings::new(3);
        meetings.enter(share(2) + share(0) + share(1));
        meetings.enter(share(2) + share(2));
        meetings.enter(share(2));
        assert_eq!((meetings.keys(), meetings.wrong(), meetings.shared()), (3, 2, 2));
        assert_eq!(meetings.parties(), [1, 2, 0]);
        assert_eq!(meetings.first_wrong(), "2 exceptions, the first: key 1 was admitted 4");
    }
}
