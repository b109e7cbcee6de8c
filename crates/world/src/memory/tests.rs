use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use super::*;

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn ready<T>(poll: Poll<T>) -> T {
    match poll {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("still waits"),
    }
}

#[test]
fn pieces_are_aligned_and_of_their_class() {
    let pool = Pool::new(32 << 20);
    for (len, class) in [
        (0, 4096),
        (1, 4096),
        (4096, 4096),
        (4097, 8192),
        (3 << 20, 4 << 20),
        ((4 << 20) + 1, (4 << 20) + 4096),
    ] {
        let buffer = pool.try_get(len).unwrap();
        assert_eq!(buffer.len(), class);
        assert_eq!(buffer.as_ptr() as usize % ALIGNMENT, 0);
    }
    assert_eq!(pool.used(), 0);
}

#[test]
fn a_dropped_piece_is_handed_out_again() {
    let pool = Pool::new(1 << 20);
    let mut first = pool.try_get(5000).unwrap();
    first[..3].copy_from_slice(b"abc");
    let at = first.as_ptr();
    drop(first);
    assert_eq!((pool.used(), pool.kept()), (0, 8192));
    let second = pool.try_get(8000).unwrap();
    assert_eq!(second.as_ptr(), at);
    assert_eq!((pool.used(), pool.kept()), (8192, 0));
}

#[test]
fn the_piece_returns_when_the_last_clone_drops() {
    let pool = Pool::new(8192);
    let mut buffer = pool.try_get(100).unwrap();
    buffer[..5].copy_from_slice(b"hello");
    let bytes = buffer.freeze(5);
    let slice = bytes.slice(1..3);
    drop(bytes);
    assert_eq!((&slice[..], pool.used()), (&b"el"[..], 4096));
    drop(slice);
    assert_eq!(pool.used(), 0);
}

#[test]
fn a_share_is_charged_to_its_parent_too() {
    let pool = Pool::new(16384);
    let share = pool.share(8192);
    let held = share.try_get(8192).unwrap();
    assert!(share.try_get(1).is_none());
    assert_eq!((share.used(), pool.used()), (8192, 8192));
    let rest = pool.try_get(8192).unwrap();
    drop(held);
    assert!(share.try_get(4096).is_some());
    let whole = pool.try_get(8192).unwrap();
    assert!(share.try_get(1).is_none(), "the parent is used up");
    drop((rest, whole));
}

#[test]
fn waiters_are_served_in_order() {
    let pool = Pool::new(8192);
    let held = pool.try_get(8192).unwrap();
    let mut large = pin!(pool.get(8192));
    let mut small = pin!(pool.get(1));
    assert!(poll(large.as_mut()).is_pending());
    assert!(poll(small.as_mut()).is_pending());
    drop(held);
    let large = ready(poll(large.as_mut()));
    assert!(poll(small.as_mut()).is_pending());
    assert!(pool.try_get(1).is_none(), "nobody overtakes");
    drop(large);
    ready(poll(small.as_mut()));
}

#[test]
fn a_waiter_that_goes_makes_room_for_the_next() {
    let pool = Pool::new(8192);
    let held = pool.try_get(4096).unwrap();
    let mut small = pin!(pool.get(1));
    {
        let mut large = pin!(pool.get(8192));
        assert!(poll(large.as_mut()).is_pending());
        assert!(poll(small.as_mut()).is_pending());
    }
    ready(poll(small.as_mut()));
    drop(held);
    assert_eq!(pool.used(), 0);
}

#[test]
fn a_grant_that_nobody_takes_is_given_back() {
    let pool = Pool::new(4096);
    let held = pool.try_get(1).unwrap();
    {
        let mut waiting = pin!(pool.get(1));
        assert!(poll(waiting.as_mut()).is_pending());
        drop(held);
        assert_eq!(pool.used(), 4096);
    }
    assert_eq!(pool.used(), 0);
}

#[test]
fn a_waiting_share_does_not_hold_up_another() {
    let pool = Pool::new(16384);
    let (one, other) = (pool.share(4096), pool.share(4096));
    let held = one.try_get(1).unwrap();
    let mut waiting = pin!(one.get(1));
    assert!(poll(waiting.as_mut()).is_pending());
    let mut free = pin!(other.get(1));
    drop(ready(poll(free.as_mut())));
    drop(held);
    ready(poll(waiting.as_mut()));
}

#[test]
fn kept_pieces_make_room_for_another_class() {
    let pool = Pool::new(64 << 10);
    let small: Vec<_> = (0..16).map(|_| pool.try_get(4096).unwrap()).collect();
    drop(small);
    assert_eq!(pool.kept(), 32 << 10, "half of the budget is kept");
    let large = pool.try_get(64 << 10).unwrap();
    assert_eq!((pool.used(), pool.kept()), (64 << 10, 0));
    drop(large);
    pool.trim(0);
    assert_eq!(pool.kept(), 0);
}

#[test]
fn readers_see_what_is_published_and_the_image_is_one_piece() {
    let pool = Pool::new(8192);
    let mut run = Growing::new(pool.try_get(4096).unwrap(), 40);
    let view = run.view();
    assert_eq!((view.published(), run.room()), (40, 4056));
    run.rest_mut()[..5].copy_from_slice(b"first");
    run.publish(5);
    let first = view.bytes(40..45);
    run.rest_mut()[..6].copy_from_slice(b"second");
    run.publish(6);
    assert_eq!(run.published(), b"firstsecond");
    assert_eq!(view.slice(45..51), b"second");
    run.rest_mut().fill(0);
    run.front_mut().fill(7);
    let image = run.close(4096);
    assert_eq!(
        (&image[..40], &image[40..51]),
        (&[7; 40][..], &b"firstsecond"[..])
    );
    assert_eq!(image[40..].as_ptr(), first.as_ptr());
    drop((image, view));
    assert_eq!((pool.used(), &first[..]), (4096, &b"first"[..]));
    drop(first);
    assert_eq!(pool.used(), 0);
}

#[test]
#[should_panic(expected = "published")]
fn unpublished_bytes_are_refused() {
    let run = Growing::new(Pool::new(4096).try_get(1).unwrap(), 40);
    let _refused = run.view().bytes(40..41);
}

#[test]
fn many_threads_share_a_pool_without_losing_a_byte() {
    let pool = Pool::new(1 << 20);
    let threads: Vec<_> = (0..4_usize)
        .map(|seed| {
            let pool = pool.share(1 << 19);
            crate::tasks::thread("pool", move || {
                for round in 0..2000 {
                    let len = 1 + (round * 7919 + seed * 104_729) % 100_000;
                    if let Some(mut buffer) = pool.try_get(len) {
                        buffer[len - 1] = 1;
                        drop(buffer.freeze(len).slice(..len / 2));
                    }
                }
            })
            .unwrap()
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(pool.used(), 0);
    assert!(pool.kept() <= 1 << 19);
}
