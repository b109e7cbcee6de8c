use super::super::{BLOCK, conformance};
use super::*;
use crate::memory::{Buffer, Pool};

const NEW: OpenOptions = OpenOptions {
    write: true,
    create_new: true,
    direct: false,
    dsync: false,
};

fn blocks(count: usize, fill: u8) -> Buffer {
    assert!(count.is_power_of_two(), "a piece is a power of two long");
    let mut buffer = Pool::new(count * BLOCK).try_get(count * BLOCK).unwrap();
    buffer.fill(fill);
    buffer
}

fn read(disk: &Simulated, path: &str) -> Option<Vec<u8>> {
    let file = disk.open(Path::new(path), OpenOptions::default()).ok()?;
    let mut buffer = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut buffer, 0).unwrap();
    Some(buffer)
}

fn create(disk: &Simulated, path: &str, dsync: bool) -> Arc<dyn File> {
    let options = OpenOptions { dsync, ..NEW };
    let file = disk.open(Path::new(path), options).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    file
}

/// What a test finds over many seeds.
fn outcomes<T: Ord>(run: impl Fn(u64) -> T) -> BTreeSet<T> {
    (0..200).map(run).collect()
}

#[test]
fn simulated_disk_conforms() {
    let disk = Simulated::new(1);
    disk.create_dir_all(Path::new("/suite")).unwrap();
    conformance::run(&disk, Path::new("/suite"));
}

#[test]
fn synced_bytes_outlive_a_power_cut() {
    for seed in 0..50 {
        let disk = Simulated::new(seed);
        let file = create(&disk, "/a", false);
        file.write_at(&[7; 10_000], 0).unwrap();
        file.sync_data().unwrap();
        disk.cut_power();
        assert!(file.write_at(b"late", 0).is_err());
        assert_eq!(read(&disk.after_power_cut(), "/a"), Some(vec![7; 10_000]));
    }
}

#[test]
fn unsynced_sectors_survive_in_any_subset() {
    let found = outcomes(|seed| {
        let disk = Simulated::new(seed);
        let file = create(&disk, "/a", false);
        file.write_at(&blocks(2, 1), 0).unwrap();
        file.sync_data().unwrap();
        file.write_at(&blocks(2, 2), 0).unwrap();
        let after = read(&disk.after_power_cut(), "/a").unwrap();
        assert!(
            after
                .chunks(BLOCK)
                .all(|sector| sector.iter().all(|byte| *byte == sector[0]))
        );
        (after[0], after[BLOCK])
    });
    assert_eq!(found, BTreeSet::from([(1, 1), (1, 2), (2, 1), (2, 2)]));
}

#[test]
fn a_name_is_durable_once_its_directory_is_synced() {
    let found = outcomes(|seed| {
        let disk = Simulated::new(seed);
        let file = disk.open(Path::new("/a"), NEW).unwrap();
        file.write_at(b"bytes", 0).unwrap();
        file.sync_data().unwrap();
        read(&disk.after_power_cut(), "/a")
    });
    assert_eq!(found, BTreeSet::from([None, Some(b"bytes".to_vec())]));
}

#[test]
fn a_rename_is_old_or_new() {
    let found = outcomes(|seed| {
        let disk = Simulated::new(seed);
        for (name, bytes) in [("/slot", b"old"), ("/slot.new", b"new")] {
            create(&disk, name, true).write_at(bytes, 0).unwrap();
        }
        disk.rename(Path::new("/slot.new"), Path::new("/slot"))
            .unwrap();
        let after = disk.after_power_cut();
        (
            read(&after, "/slot").unwrap(),
            after.exists(Path::new("/slot.new")),
        )
    });
    let expected = [(b"old".to_vec(), true), (b"new".to_vec(), false)];
    assert_eq!(found, BTreeSet::from(expected));
}

#[test]
fn files_below_a_lost_directory_are_lost() {
    let found = outcomes(|seed| {
        let disk = Simulated::new(seed);
        disk.create_dir_all(Path::new("/t/0")).unwrap();
        disk.open(Path::new("/t/0/a"), NEW).unwrap();
        disk.sync_dir(Path::new("/t/0")).unwrap();
        disk.sync_dir(Path::new("/t")).unwrap();
        disk.after_power_cut().exists(Path::new("/t/0/a"))
    });
    assert_eq!(found, BTreeSet::from([false, true]));
}

#[test]
fn a_removed_tree_does_not_return_below_a_new_one() {
    for seed in 0..200 {
        let disk = Simulated::new(seed);
        disk.create_dir_all(Path::new("/t")).unwrap();
        disk.open(Path::new("/t/old"), NEW).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        disk.remove_dir_all(Path::new("/t")).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        disk.create_dir_all(Path::new("/t")).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        let after = disk.after_power_cut().list(Path::new("/t")).unwrap();
        assert_eq!(after, Vec::<PathBuf>::new());
    }
}

#[test]
fn a_file_below_a_directory_made_anew_is_durable_in_whatever_order_they_are_synced() {
    for seed in 0..50 {
        let disk = Simulated::new(seed);
        disk.create_dir_all(Path::new("/t/0")).unwrap();
        disk.open(Path::new("/t/0/old"), NEW).unwrap();
        for directory in ["/t/0", "/t", "/"] {
            disk.sync_dir(Path::new(directory)).unwrap();
        }
        disk.remove_dir_all(Path::new("/t/0")).unwrap();
        disk.create_dir_all(Path::new("/t/0")).unwrap();
        disk.open(Path::new("/t/0/new"), NEW).unwrap();
        for directory in ["/t/0", "/t", "/"] {
            disk.sync_dir(Path::new(directory)).unwrap();
        }
        let after = disk.after_power_cut();
        assert_eq!(after.list(Path::new("/t/0")).unwrap(), [Path::new("new")]);
    }
}

#[test]
fn power_goes_in_the_middle_of_the_planned_write() {
    let found = outcomes(|seed| {
        let disk = Simulated::new(seed);
        let file = create(&disk, "/a", true);
        file.write_at(&blocks(2, 1), 0).unwrap();
        disk.cut_power_at(disk.operations() + 1);
        file.write_at(&blocks(2, 2), 0).unwrap_err();
        assert!(disk.is_cut() && file.sync_data().is_err());
        let after = read(&disk.after_power_cut(), "/a").unwrap();
        (after[0], after[BLOCK])
    });
    assert_eq!(found, BTreeSet::from([(1, 1), (1, 2), (2, 1), (2, 2)]));
}

#[test]
fn a_write_is_torn_at_the_byte() {
    let disk = Simulated::new(1);
    let file = create(&disk, "/a", true);
    file.write_at(&blocks(4, 1), 0).unwrap();
    disk.tear_at(disk.operations() + 1, BLOCK + 100);
    file.write_at(&blocks(4, 2), 0).unwrap_err();
    let after = read(&disk.after_power_cut(), "/a").unwrap();
    assert_eq!(after.iter().position(|byte| *byte == 1), Some(BLOCK + 100));
}

#[test]
fn after_a_failed_flush_a_later_one_keeps_nothing_more() {
    let found = outcomes(|seed| {
        let disk = Simulated::new(seed);
        let file = create(&disk, "/a", false);
        file.write_at(&blocks(1, 1), 0).unwrap();
        file.sync_data().unwrap();
        file.write_at(&blocks(1, 2), 0).unwrap();
        disk.fail_flush_at(disk.flushes() + 1, Failure::Device);
        assert_eq!(file.sync_data().unwrap_err().raw_os_error(), Some(5));
        file.sync_data().unwrap();
        assert_eq!(read(&disk, "/a").unwrap()[0], 2, "the cache calls it clean");
        read(&disk.after_power_cut(), "/a").unwrap()[0]
    });
    assert_eq!(found, BTreeSet::from([1, 2]));
}

#[test]
fn a_durable_write_that_failed_may_be_read_and_lost_with_the_power_unless_a_flush_returns() {
    let after = |flushes: bool| {
        outcomes(move |seed| {
            let disk = Simulated::new(seed);
            let file = create(&disk, "/a", true);
            file.write_at(&blocks(1, 1), 0).unwrap();
            disk.fail_flush_at(disk.flushes() + 1, Failure::Device);
            file.write_at(&blocks(1, 2), 0).unwrap_err();
            if flushes {
                file.sync_data().unwrap();
            }
            let seen = read(&disk, "/a").unwrap()[0];
            (seen, read(&disk.after_power_cut(), "/a").unwrap()[0])
        })
    };
    assert_eq!(after(false), BTreeSet::from([(1, 1), (2, 1), (2, 2)]));
    assert_eq!(after(true), BTreeSet::from([(1, 1), (2, 2)]));
}

#[test]
fn a_full_disk_refuses_and_recovers() {
    let disk = Simulated::new(1);
    disk.set_capacity(4 * BLOCK as u64);
    let file = create(&disk, "/a", false);
    file.allocate(3 * BLOCK as u64).unwrap();
    let other = create(&disk, "/b", false);
    let full = other.allocate(2 * BLOCK as u64).unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    other.write_at(&blocks(1, 1), 0).unwrap();
    assert_eq!(disk.free_bytes(Path::new("/")).unwrap(), 0);
    disk.remove_file(Path::new("/a")).unwrap();
    other.allocate(2 * BLOCK as u64).unwrap();
}

#[test]
fn a_crash_of_the_process_loses_nothing_and_keeps_nothing() {
    let disk = Simulated::new(3);
    let file = create(&disk, "/a", false);
    file.write_at(b"cached", 0).unwrap();
    let held = disk.lock(Path::new("/a")).unwrap();
    let next = disk.after_crash();
    file.write_at(b"zombie", 0).unwrap();
    assert_eq!(read(&next, "/a").unwrap(), b"cached");
    drop(next.lock(Path::new("/a")).unwrap());
    drop(held);
}

#[test]
fn a_flipped_byte_stays_flipped() {
    let disk = Simulated::new(1);
    create(&disk, "/a", true).write_at(b"abc", 0).unwrap();
    disk.flip(Path::new("/a"), 1, 1).unwrap();
    assert_eq!(read(&disk, "/a").unwrap(), b"acc");
    assert_eq!(read(&disk.after_power_cut(), "/a").unwrap(), b"acc");
}

#[test]
fn the_same_seed_gives_the_same_disk() {
    let run = || {
        let disk = Simulated::new(42);
        let file = create(&disk, "/a", false);
        for round in 0..50_u8 {
            file.write_at(&blocks(1, round), u64::from(round % 7) * BLOCK as u64)
                .unwrap();
        }
        let once = disk.after_power_cut();
        read(&once.after_power_cut(), "/a").unwrap()
    };
    assert_eq!(run(), run());
}
