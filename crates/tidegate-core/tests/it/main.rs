//! Integration tests of the library: the conformance kit over the pure functions, and the public behaviour.

/// Defines tests of one function, by kind, over plain states and over stores with traffic of other keys.
macro_rules! on_every_keeper {
    ($holds:ident: $($name:ident: $kind:literal)+) => {
        $(
            #[test]
            fn $name() {
                $holds($kind, crate::traces(5_000), |_| conformance::keeper::States::default());
            }
        )+

        on_every_keeper!(in on_a_map: tidegate::Map, 1, $holds, $($name: $kind)+);
        on_every_keeper!(in on_a_zone: tidegate::Zone, 1, $holds, $($name: $kind)+);
        #[cfg(target_os = "linux")]
        on_every_keeper!(
            in in_files_that_are_opened_again: conformance::keeper::Reopened, 100, $holds, $($name: $kind)+
        );
    };
    (in $place:ident: $store:ty, $fewer:literal, $holds:ident, $($name:ident: $kind:literal)+) => {
        mod $place {
            use super::$holds;

            $(
                #[test]
                fn $name() {
                    // Of fewer traces, the share that is near a change of verdict is not significant.
                    let traces = crate::map::traces(20_000).div_ceil($fewer).max(10);
                    $holds($kind, traces, conformance::keeper::Crowd::<$store>::new);
                }
            )+
        }
    };
}

mod asking_nothing;
mod batches;
mod calendars;
mod changing;
mod conversions;
mod documents;
mod extremes;
mod failing;
mod figures;
mod hammer;
mod key;
mod laws;
mod limit_text;
mod map;
mod models;
mod oracle;
mod permits;
mod places;
mod rates;
mod refunds;
#[cfg(feature = "serde")]
mod serialized;
mod several_limits;
mod shared_limiter;
mod sketch;
mod small_world;
mod text_as_limit;
#[cfg(feature = "tracing")]
mod traced;
mod traces;
mod versions;
mod waiting;
mod zone;

/// Returns the number of random traces per kind: `TIDEGATE_TRACES`, or a number that is enough for every commit.
fn traces(usual: u64) -> u64 {
    std::env::var("TIDEGATE_TRACES").ok().and_then(|traces| traces.parse().ok()).unwrap_or(usual)
}

/// Returns true if only a few traces are wanted, as for hundreds of mutants.
fn is_quick() -> bool {
    traces(20_000) < 1000
}

/// Returns the number of cases of a property.
fn cases(usual: u32) -> u32 {
    if is_quick() { 200 } else { usual }
}
