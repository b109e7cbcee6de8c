//! A few hundred seeds in every test run; ten thousand behind the binary.

use floe_sim::{Fate, Summary, run, torn};

fn hold(fate: Fate, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        if let Err(broken) = run(seed, fate) {
            panic!("{broken}");
        }
    }
}

#[test]
fn power_losses_lose_nothing_acknowledged() {
    hold(Fate::PowerLoss, 0..200);
}

#[test]
fn a_failed_flush_ends_the_process_and_loses_nothing_acknowledged() {
    hold(Fate::FailedFlush, 1_000..1_060);
}

#[test]
fn a_full_disk_refuses_and_recovers() {
    hold(Fate::FullDisk, 2_000..2_040);
}

#[test]
fn a_flip_costs_its_own_range_and_is_said() {
    hold(Fate::Flip, 3_000..3_080);
}

#[test]
fn a_start_that_fails_is_begun_again_and_loses_nothing_acknowledged() {
    hold(Fate::FailedStart, 5_000..5_060);
}

/// Each breaks when what it once found is taken out again: a slot renamed and not flushed, a group or a copy of the
/// identity that can be read and is not durable (rule ReliedIsDurable); a dead run taken for a later one
/// (NoRewriteInPlace); a check that did not know a deleted generation in an older slot; a file made anew for ever on a full
/// disk, for a removal to remove.
#[test]
fn seeds_that_broke_once_hold() {
    for (fate, seeds) in [
        (Fate::FailedFlush, &[46, 132, 2_497, 9_267, 9_367][..]),
        (Fate::FailedFlush, &[28, 54, 60, 78]),
        (Fate::FailedStart, &[7, 89, 219, 15_496]),
        (Fate::PowerLoss, &[8_904]),
        (Fate::Flip, &[12_069]),
        (Fate::FullDisk, &[58]),
    ] {
        for seed in seeds {
            hold(fate, *seed..seed + 1);
        }
    }
}

#[test]
fn a_write_torn_at_any_byte_loses_nothing_acknowledged() {
    for ahead in 1..6 {
        for bytes in (0..12_288).step_by(241) {
            match torn(7 + ahead, ahead, bytes) {
                Ok(true) => {}
                Ok(false) => break,
                Err(broken) => panic!("{broken}"),
            }
        }
    }
}

#[test]
fn a_run_is_long_enough_and_loses_power_during_recovery_too() {
    for fate in Fate::ALL {
        for seed in 4_000..4_010 {
            let summary = run(seed, fate).unwrap();
            assert!(summary.operations >= Summary::OPERATIONS_MIN, "{summary:?}");
            assert!(
                summary.power_losses >= Summary::POWER_LOSSES_MIN,
                "{summary:?}"
            );
            assert!(
                summary.during_recovery >= Summary::DURING_RECOVERY_MIN,
                "{summary:?}"
            );
        }
    }
}

#[test]
fn a_seed_runs_the_same_way_again() {
    for fate in Fate::ALL {
        for seed in 10..16 {
            let [once, again] = [(); 2].map(|()| run(seed, fate));
            let told = |broken: floe_sim::Broken| (broken.what, broken.notes);
            assert_eq!(once.map_err(told), again.map_err(told), "{fate:?} {seed}");
        }
    }
}
