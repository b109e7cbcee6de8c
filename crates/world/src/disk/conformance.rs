//! What every disk does, run by each implementation under a directory that is there and empty.

use std::io::ErrorKind;
use std::path::Path;

use super::{BLOCK, Disk, OpenOptions};
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

pub(super) fn run(disk: &dyn Disk, root: &Path) {
    bytes_come_back(disk, &root.join("plain"));
    for (name, dsync) in [("direct", false), ("direct-dsync", true)] {
        direct_transfers_are_of_blocks(disk, &root.join(name), dsync);
    }
    allocated_room_reads_as_zeros(disk, &root.join("room"));
    a_file_is_made_once(disk, &root.join("once"));
    rename_replaces(disk, root);
    directories_are_listed_in_order(disk, root);
    a_lock_is_held_by_one(disk, &root.join("lock"));
    an_open_file_outlives_its_name(disk, &root.join("gone"));
    a_nameless_file_gives_room_back_in_pieces(disk, &root.join("going"));
    assert!(disk.free_bytes(root).unwrap() > 0);
}

fn bytes_come_back(disk: &dyn Disk, path: &Path) {
    let file = disk.open(path, NEW).unwrap();
    assert!(file.is_empty().unwrap());
    file.write_at(b"abcdef", 0).unwrap();
    file.write_at(b"XYZ", 4).unwrap();
    file.write_at(b"far", 10_000).unwrap();
    file.sync_data().unwrap();
    assert_eq!(file.len().unwrap(), 10_003);
    let again = disk.open(path, OpenOptions::default()).unwrap();
    let mut buffer = [1; 9];
    assert_eq!(again.read_at(&mut buffer, 0).unwrap(), 9);
    assert_eq!(&buffer, b"abcdXYZ\0\0");
    assert_eq!(again.read_at(&mut buffer, 9_999).unwrap(), 4);
    assert_eq!(&buffer[..4], b"\0far");
    assert_eq!(again.read_at(&mut buffer, 20_000).unwrap(), 0);
    assert!(again.write_at(b"no", 0).is_err(), "opened for reading only");
}

fn direct_transfers_are_of_blocks(disk: &dyn Disk, path: &Path, dsync: bool) {
    let options = OpenOptions {
        direct: true,
        dsync,
        ..NEW
    };
    let file = disk.open(path, options).unwrap();
    file.allocate(2 * BLOCK as u64).unwrap();
    file.write_at(&blocks(4, 7), BLOCK as u64).unwrap();
    assert_eq!(file.len().unwrap(), 5 * BLOCK as u64);
    let mut read = blocks(8, 1);
    assert_eq!(file.read_at(&mut read, 0).unwrap(), 5 * BLOCK);
    assert!(read[..BLOCK].iter().all(|byte| *byte == 0));
    assert!(read[BLOCK..5 * BLOCK].iter().all(|byte| *byte == 7));
    let odd = blocks(2, 1);
    for refused in [
        file.write_at(&odd, 1),
        file.write_at(&odd[..100], 0),
        file.write_at(&odd[1..=BLOCK], 0),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}

fn allocated_room_reads_as_zeros(disk: &dyn Disk, path: &Path) {
    let file = disk.open(path, NEW).unwrap();
    file.write_at(b"start", 0).unwrap();
    file.allocate(100_000).unwrap();
    assert_eq!(file.len().unwrap(), 100_000);
    file.allocate(50_000).unwrap();
    assert_eq!(file.len().unwrap(), 100_000, "never shorter");
    let mut buffer = vec![1; 200_000];
    assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 100_000);
    assert_eq!(&buffer[..5], b"start");
    assert!(buffer[5..100_000].iter().all(|byte| *byte == 0));
}

fn a_file_is_made_once(disk: &dyn Disk, path: &Path) {
    let plain = OpenOptions {
        create_new: false,
        ..NEW
    };
    let absent = disk.open(path, plain).map(drop).unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::NotFound);
    assert!(!disk.exists(path));
    disk.open(path, NEW).unwrap();
    assert!(disk.exists(path));
    let present = disk.open(path, NEW).map(drop).unwrap_err();
    assert_eq!(present.kind(), ErrorKind::AlreadyExists);
    disk.open(path, plain).unwrap();
    disk.remove_file(path).unwrap();
    let gone = disk.remove_file(path).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
    let orphan = disk.open(&path.join("below"), NEW).map(drop).unwrap_err();
    assert_eq!(orphan.kind(), ErrorKind::NotFound);
}

fn rename_replaces(disk: &dyn Disk, root: &Path) {
    let (from, to) = (root.join("from"), root.join("to"));
    disk.open(&from, NEW).unwrap().write_at(b"new", 0).unwrap();
    disk.open(&to, NEW).unwrap().write_at(b"old", 0).unwrap();
    disk.rename(&from, &to).unwrap();
    disk.sync_dir(root).unwrap();
    assert!(!disk.exists(&from));
    let mut buffer = [0; 3];
    let file = disk.open(&to, OpenOptions::default()).unwrap();
    file.read_at(&mut buffer, 0).unwrap();
    assert_eq!(&buffer, b"new");
    let absent = disk.rename(&from, &to).unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::NotFound);
}

fn directories_are_listed_in_order(disk: &dyn Disk, root: &Path) {
    let top = root.join("top");
    let absent = disk.list(&top).unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::NotFound);
    disk.create_dir_all(&top.join("b/c")).unwrap();
    disk.create_dir_all(&top.join("b")).unwrap();
    disk.open(&top.join("z"), NEW).unwrap();
    disk.open(&top.join("a"), NEW).unwrap();
    disk.sync_dir(&top).unwrap();
    let names = disk.list(&top).unwrap();
    assert_eq!(names, ["a", "b", "z"].map(std::path::PathBuf::from));
    assert!(disk.exists(&top.join("b/c")));
    disk.remove_dir_all(&top).unwrap();
    disk.remove_dir_all(&top).unwrap();
    assert!(!disk.exists(&top) && !disk.exists(&top.join("b/c")));
}

fn a_lock_is_held_by_one(disk: &dyn Disk, path: &Path) {
    let absent = disk.lock(path).map(drop).unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::NotFound);
    disk.open(path, NEW).unwrap();
    let held = disk.lock(path).unwrap();
    let second = disk.lock(path).map(drop).unwrap_err();
    assert_eq!(second.kind(), ErrorKind::WouldBlock);
    drop(held);
    drop(disk.lock(path).unwrap());
}

fn an_open_file_outlives_its_name(disk: &dyn Disk, path: &Path) {
    let file = disk.open(path, NEW).unwrap();
    file.write_at(b"still", 0).unwrap();
    disk.remove_file(path).unwrap();
    let mut buffer = [0; 5];
    assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 5);
    assert_eq!(&buffer, b"still");
}

fn a_nameless_file_gives_room_back_in_pieces(disk: &dyn Disk, path: &Path) {
    let file = disk.open(path, NEW).unwrap();
    file.write_at(&[7; 10_000], 0).unwrap();
    disk.remove_file(path).unwrap();
    file.shrink(20_000).unwrap();
    assert_eq!(file.len().unwrap(), 10_000, "never longer");
    for len in [8192, 5000, 0] {
        file.shrink(len).unwrap();
        file.sync_data().unwrap();
        assert_eq!(file.len().unwrap(), len);
        let mut buffer = [0; 10_000];
        assert_eq!(file.read_at(&mut buffer, 0).unwrap(), len as usize);
        assert!(buffer[..len as usize].iter().all(|byte| *byte == 7));
    }
}
