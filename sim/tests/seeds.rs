//! A few hundred seeds in every test run; ten thousand behind the binary.

use floe_sim::{Fate, run, torn};

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
fn a_seed_runs_the_same_way_again() {
    for seed in [1, 2, 3] {
        let once = run(seed, Fate::PowerLoss).map_err(|broken| broken.what);
        let again = run(seed, Fate::PowerLoss).map_err(|broken| broken.what);
        assert_eq!(once, again);
    }
}
