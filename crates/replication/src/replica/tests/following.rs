//! A replica as follower, holder and copier: appends, fences, seals, copies, lives.

use super::*;

#[test]
fn a_follower_takes_what_follows_and_answers_after_the_flush() {
    let mut case = Case::new();
    case.tell(
        append(1, &[100, 110], 100),
        "open 5 at 100; append 1 from number 0",
    );
    case.tell(append(1, &[110, 120], 100), "append 1 from number 0");
    case.tell(flushed(110), "durable 110 in session 1");
    case.tell(flushed(120), "durable 120 in session 1");
    // What overlaps is compared and not taken again; what is there already is answered at once.
    case.tell(append(1, &[110, 120, 130], 100), "append 1 from number 1");
    case.tell(append(1, &[100, 110], 100), "durable 120 in session 1");
}

#[test]
fn a_gap_is_answered_once_and_the_leader_goes_on_in_a_new_session() {
    let mut case = Case::new();
    case.tell(
        append(1, &[100, 110], 100),
        "open 5 at 100; append 1 from number 0",
    );
    case.tell(append(1, &[120, 130], 100), "expected 110 in session 1");
    case.tell(append(1, &[130, 140], 100), "");
    case.tell(append(2, &[110, 120], 100), "append 1 from number 0");
    case.tell(append(1, &[120, 130], 100), "");
    case.tell(flushed(120), "durable 120 in session 2");
}

#[test]
fn a_commit_offset_is_believed_up_to_the_own_end() {
    let mut case = Case::new();
    case.tell(
        append(1, &[100, 110], 150),
        "open 5 at 100; append 1 from number 0",
    );
    assert_eq!(case.replica.committed(LeaderEpoch(5)), Some(Offset(110)));
}

#[test]
fn other_bytes_below_the_end_are_damage_and_are_not_taken() {
    let mut case = Case::new();
    case.tell(
        append(1, &[100, 110, 120], 100),
        "open 5 at 100; append 2 from number 0",
    );
    case.tell(
        append(1, &[115, 125], 100),
        "damaged at 115; refused: Damaged",
    );
    case.tell(append(2, &[120, 130], 100), "refused: Damaged");
    case.tell(fence("1", 5), "refused: Damaged");
}

#[test]
fn what_is_meant_for_another_life_is_not_for_this_one() {
    let mut case = Case::new();
    case.replica.me = member("1'");
    case.tell(append(1, &[100, 110], 100), "refused: Stranger");
    case.tell(fence("1", 5), "refused: Stranger");
    case.tell(order("1", 5, 110, Purpose::Repair, 0), "refused: Stranger");
    let renew = Renew {
        from: member("2"),
        to: member("1"),
        epoch: LeaderEpoch(5),
        sent_at: Duration::ZERO,
    };
    case.tell(Event::LeaseAsked(renew), "");
}

#[test]
fn a_fence_lies_behind_what_was_accepted_and_silence_follows() {
    let mut case = Case::new();
    case.tell(
        append(1, &[100, 110], 100),
        "open 5 at 100; append 1 from number 0",
    );
    case.tell(fence("1", 5), "fence 6");
    case.tell(
        append(1, &[110, 120], 100),
        "refused: Fenced(LeaderEpoch(6))",
    );
    // The flush of what lies before it is nobody's business but the fence's.
    case.tell(flushed(110), "");
    case.tell(Event::FenceFlushed(2), "fenced at 110");
    let renew = Renew {
        from: member("2"),
        to: member("1"),
        epoch: LeaderEpoch(5),
        sent_at: Duration::ZERO,
    };
    case.tell(Event::LeaseAsked(renew), "");
}

#[test]
fn excess_is_cut_when_the_catalog_has_sealed_and_not_before() {
    let mut case = Case::new();
    case.tell(
        append(1, &[100, 110, 120], 100),
        "open 5 at 100; append 2 from number 0",
    );
    case.tell(flushed(120), "durable 120 in session 1");
    case.tell(order("1", 5, 110, Purpose::Repair, 0), "fence 6");
    case.tell(Event::FenceFlushed(2), "copied 5 to 110");
    assert_eq!(
        case.replica.durable(LeaderEpoch(5)),
        Some((Offset(100), Offset(120)))
    );
    case.tell(sealed(110), "truncate 5 to 110");
    case.tell(fence("1", 5), "refused: Fenced(LeaderEpoch(6))");
    case.tell(
        order("1", 5, 120, Purpose::Repair, 0),
        "refused: Fenced(LeaderEpoch(6))",
    );
}

#[test]
fn a_repair_takes_the_named_holders_bytes_up_to_the_end_and_says_so_when_all_is_durable() {
    let mut case = Case::new();
    case.tell(
        order("1", 5, 120, Purpose::Repair, 0),
        "fence 6; open 5 at 100; pull 100 to 120 of 3",
    );
    case.tell(piece("2", &[100, 110]), "");
    case.tell(piece("3", &[110, 120]), "");
    case.tell(
        piece("3", &[100, 110]),
        "append 1 from number 0; pull 110 to 120 of 3",
    );
    case.later(200);
    case.tell(Event::Ticked, "pull 110 to 120 of 3");
    case.tell(piece("3", &[100, 110, 120, 130]), "append 1 from number 1");
    case.tell(flushed(120), "");
    case.tell(Event::FenceFlushed(1), "copied 5 to 120");
}

#[test]
fn a_holder_gives_what_is_durable_whole_up_to_the_end() {
    let found = Recovered {
        epoch: LeaderEpoch(5),
        start: Offset(100),
        end: Offset(120),
        last: Some(Checksum(120)),
        since: 0,
    };
    let mut case = Case::of(2, 6, &[found]);
    let pull = |base, end| {
        Event::PullArrived(Pull {
            from: member("3"),
            to: member("1"),
            epoch: LeaderEpoch(5),
            base: Offset(base),
            end: Offset(end),
        })
    };
    case.tell(pull(110, 120), "give 110 to 120");
    case.tell(pull(110, 121), "");
    case.tell(pull(90, 120), "");
}

#[test]
fn the_fence_outlives_the_data_and_a_later_copy_outlives_an_older_permission() {
    let mut case = Case::new();
    case.tell(
        append(1, &[100, 110], 100),
        "open 5 at 100; append 1 from number 0",
    );
    case.tell(fence("1", 5), "fence 6");
    case.tell(Event::FenceFlushed(1), "fenced at 110");
    case.tell(sealed(110), "");
    let forgotten = |index| Event::Forgotten {
        epoch: LeaderEpoch(5),
        index,
    };
    case.tell(forgotten(40), "forget 5");
    assert_eq!(case.replica.fence(), LeaderEpoch(6));
    // Not begun again before it is gone from the disk: late flushes would count for the new copy.
    case.tell(order("1", 5, 110, Purpose::Backfill, 50), "");
    case.tell(flushed(110), "");
    case.tell(Event::ForgetFlushed(LeaderEpoch(5)), "");
    case.tell(
        order("1", 5, 110, Purpose::Backfill, 50),
        "open 5 at 100; pull 100 to 110 of 3",
    );
    case.tell(forgotten(40), "");
    case.tell(piece("3", &[100, 110]), "append 1 from number 0");
    case.tell(flushed(110), "copied 5 to 110");
    case.tell(forgotten(60), "forget 5");
}
