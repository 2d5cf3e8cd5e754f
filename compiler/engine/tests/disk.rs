//! The disk cache: an intact entry is found again, a damaged one is never an error.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, SystemTime},
};

use weft_artifact::{ArgType, ArrayType, DType, Layout};
use weft_compiler::{
    pipeline::Output,
    request::{Captured, FunctionDef, Keep, Options, Overloads, Request, Target},
    source::SourceFile,
    syntax,
};
use weft_engine::{About, Caller, Digest, DiskCache, Engine};

/// A test's own folder, removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("disk-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).expect("the folder for tests can be written");
        Self(path)
    }

    fn cache(&self, limit: u64) -> DiskCache {
        DiskCache::new(self.0.join("cache"), limit)
    }

    /// All files in it.
    fn files(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.0.clone()];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("it is there") {
                let path = entry.expect("it can be read").path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).expect("only this test removes it");
    }
}

const LIMIT: u64 = 1 << 30;

fn request(number: u64, globals: &[(&str, Captured)]) -> Request {
    let text = format!("def k{number}(r):\n    r[0] = {number}\n");
    let source = SourceFile::new("k.py", text);
    let function = FunctionDef {
        ast: syntax::parse_function(&source, 0, None).expect("the text of a function"),
        source: Arc::new(source),
        globals: globals.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        defaults: [].into(),
        signatures: Vec::new(),
        inline: false,
        typing: None,
        gpu: None,
        backward: None,
        number: 0,
    };
    let array = ArrayType { dtype: DType::F32, ndim: 1, layout: Layout::C, readonly: false };
    Request {
        function: Arc::new(function),
        overloads: Overloads::default(),
        args: vec![ArgType::Array(array)],
        target: Target::Sm(90, ""),
        options: Options::default(),
        keep: Keep::default(),
    }
}

fn key(number: u64) -> Digest {
    Digest::of(&request(number, &[]))
}

fn about() -> About {
    let [name, args, target, build] = ["k", "array(float32, 1d, C)", "sm_90", "0.1-abc"].map(str::to_owned);
    About { name, args, target, build }
}

fn caller(on_disk: bool) -> Caller<'static> {
    Caller { on_disk, watch: None, poll: &|| false, begin: &|| None }
}

/// Compiles with an engine of its own, as another process would. Returns the code, and whether it was cached.
fn compiled(cache: &DiskCache, request: &Request) -> (Vec<u8>, bool) {
    let engine = Engine::with_cache(Some(cache.clone()));
    let made = engine.compile_polled(request, &caller(true)).expect("no caller cancels it").expect("a good kernel");
    let output: Arc<Output> = made.outcome.made().expect("it calls no overloads");
    (output.artifact.code.clone(), made.was_cached)
}

#[test]
fn another_process_finds_what_was_compiled() {
    let folder = Folder::new();
    let cache = folder.cache(LIMIT);
    let (first, second) = (request(1, &[]), request(2, &[]));
    let code = compiled(&cache, &first).0;
    assert_eq!(compiled(&cache, &first), (code, true));
    assert!(!compiled(&cache, &second).1);
    let [newest, oldest] = cache.entries().expect("it can be read").try_into().expect("two entries");
    let names = [newest, oldest].map(|entry| entry.about.expect("it is whole").name);
    assert!(names.contains(&"k1".to_owned()) && names.contains(&"k2".to_owned()), "{names:?}");
}

#[test]
fn a_caller_can_leave_the_disk_alone() {
    let folder = Folder::new();
    let engine = Engine::with_cache(Some(folder.cache(LIMIT)));
    let made = engine.compile_polled(&request(1, &[]), &caller(false));
    made.expect("no caller cancels it").expect("a good kernel");
    assert_eq!(folder.files(), Vec::<PathBuf>::new());
}

#[test]
fn errors_and_addresses_of_the_process_are_not_kept() {
    let folder = Folder::new();
    let engine = Engine::with_cache(Some(folder.cache(LIMIT)));
    let mut wrong = request(1, &[]);
    wrong.args.clear();
    engine.compile(&wrong).expect_err("an argument is missing");
    let array = ArrayType { dtype: DType::F32, ndim: 1, layout: Layout::C, readonly: false };
    let on_device = Captured::DeviceArray(array, 4096, vec![1], vec![4]);
    // Also if the array belongs to a device function.
    let inner = request(3, &[("r0", on_device.clone())]).function;
    for value in [on_device, Captured::Function(inner)] {
        engine.compile(&request(2, &[("x", value)])).expect("a good kernel");
    }
    assert_eq!(folder.files(), Vec::<PathBuf>::new());
}

#[test]
fn no_damage_is_believed() {
    let folder = Folder::new();
    let cache = folder.cache(LIMIT);
    let content = b"what was compiled".to_vec();
    cache.write(&key(1), &about(), &content);
    let [file] = folder.files().try_into().expect("one file");
    let whole = fs::read(&file).expect("it is there");
    assert_eq!(cache.read(&key(1)), Some(content.clone()));
    for place in 0..whole.len() {
        for flip in [1, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[place] ^= flip;
            fs::write(&file, damaged).expect("it can be written");
            assert_eq!(cache.read(&key(1)), None, "byte {place} was changed");
        }
        fs::write(&file, &whole[..place]).expect("it can be written");
        assert_eq!(cache.read(&key(1)), None, "the first {place} bytes");
    }
    fs::write(&file, [&*whole, b"\0"].concat()).expect("it can be written");
    assert_eq!(cache.read(&key(1)), None, "a byte more");
    // An entry of another key.
    cache.write(&key(2), &about(), &content);
    let other = folder.files().into_iter().find(|path| *path != file).expect("two files");
    fs::copy(&other, &file).expect("it can be written");
    assert_eq!(cache.read(&key(1)), None);
    // A folder instead of a file.
    fs::remove_file(&file).expect("it is there");
    fs::create_dir(&file).expect("it can be made");
    assert_eq!(cache.read(&key(1)), None);
}

#[test]
fn what_is_removed_is_not_there() {
    let folder = Folder::new();
    let cache = folder.cache(LIMIT);
    cache.remove(&key(1));
    for number in [1, 2] {
        cache.write(&key(number), &about(), b"code");
    }
    cache.remove(&key(1));
    assert_eq!((cache.read(&key(1)), cache.read(&key(2))), (None, Some(b"code".to_vec())));
    assert_eq!(folder.files().len(), 1);
}

#[test]
fn what_is_damaged_is_compiled_again_and_replaced() {
    let folder = Folder::new();
    let cache = folder.cache(LIMIT);
    let request = request(1, &[]);
    let code = compiled(&cache, &request).0;
    let [file] = folder.files().try_into().expect("one file");
    let whole = fs::read(&file).expect("it is there");
    fs::write(&file, &whole[..whole.len() / 2]).expect("it can be written");
    assert_eq!(cache.entries().expect("it can be read").len(), 1);
    assert_eq!(compiled(&cache, &request), (code.clone(), false));
    assert_eq!(fs::read(&file).expect("it is there"), whole);
    // An intact entry whose content is not an encoded outcome.
    cache.write(&Digest::of(&request), &about(), b"nothing of weft's");
    assert_eq!(compiled(&cache, &request), (code.clone(), false));
    assert_eq!(compiled(&cache, &request), (code, true));
}

#[test]
fn a_folder_that_cannot_be_written_is_no_error() {
    let folder = Folder::new();
    let in_the_way = folder.0.join("file");
    fs::write(&in_the_way, "").expect("it can be written");
    for cache in [DiskCache::new(in_the_way.join("cache"), LIMIT), DiskCache::new("/proc/weft".into(), LIMIT)] {
        assert!(!compiled(&cache, &request(1, &[])).1);
        assert!(!compiled(&cache, &request(1, &[])).1);
        cache.write(&key(1), &about(), b"x");
        assert_eq!(cache.read(&key(1)), None);
    }
    // A shard that is a file.
    let cache = folder.cache(LIMIT);
    fs::create_dir(cache.folder()).expect("it can be made");
    for digit in "0123456789abcdef".chars() {
        fs::write(cache.folder().join(digit.to_string()), "").expect("it can be written");
    }
    assert!(!compiled(&cache, &request(1, &[])).1);
    assert!(cache.entries().is_err());
    assert!(cache.clear().is_err());
}

#[test]
fn what_was_used_longest_ago_goes_first() {
    let folder = Folder::new();
    // Each has 4 KiB; a shard holds sixteen.
    let cache = folder.cache(16 * (16 * 4096));
    let content = vec![7; 4096 - 256];
    let kept = |number| cache.read(&key(number)).is_some();
    let long_ago = SystemTime::now() - Duration::from_hours(48);
    for number in 0..600 {
        cache.write(&key(number), &about(), &content);
        let bytes: u64 = cache.entries().expect("it can be read").iter().map(|entry| entry.bytes).sum();
        assert!(bytes <= cache.limit() + cache.limit() / 8, "{bytes} bytes after {number}");
        // The first entry is used all the time, the others never.
        assert!(kept(0), "the first is gone after {number}");
        for file in folder.files() {
            let age = fs::metadata(&file).and_then(|known| known.modified()).expect("it is there");
            if age.elapsed().unwrap_or_default() < Duration::from_hours(1) && !file.ends_with(key(0).to_string()) {
                let at = long_ago + Duration::from_secs(number);
                fs::File::open(&file).and_then(|file| file.set_modified(at)).expect("it is ours");
            }
        }
    }
    assert!(kept(599), "the last one is cached");
    assert!(!kept(1), "an old one is gone");
    assert!(cache.entries().expect("it can be read").len() > 128, "half of the room is used at least");
}

#[test]
fn a_use_is_noted() {
    let folder = Folder::new();
    let cache = folder.cache(LIMIT);
    cache.write(&key(1), &about(), b"x");
    let [file] = folder.files().try_into().expect("one file");
    let long_ago = SystemTime::now() - Duration::from_hours(72);
    fs::File::open(&file).and_then(|file| file.set_modified(long_ago)).expect("it is ours");
    assert!(cache.read(&key(1)).is_some());
    let used = cache.entries().expect("it can be read")[0].used;
    assert!(used.elapsed().unwrap_or_default() < Duration::from_hours(1));
}

#[test]
fn an_entry_that_is_too_large_is_not_kept() {
    let folder = Folder::new();
    let cache = folder.cache(16 * 4096);
    cache.write(&key(1), &about(), &[0; 4096]);
    assert_eq!(folder.files(), Vec::<PathBuf>::new());
}

#[test]
fn clearing_removes_entries_and_nothing_else() {
    let folder = Folder::new();
    let cache = folder.cache(LIMIT);
    assert_eq!(cache.clear().expect("there is none"), (0, 0));
    for number in 0..40 {
        cache.write(&key(number), &about(), b"x");
    }
    let bytes: u64 = cache.entries().expect("it can be read").iter().map(|entry| entry.bytes).sum();
    let first = folder.files().remove(0);
    let shard = first.parent().expect("it is in a shard").to_owned();
    let unfinished = shard.join(format!("{}.12.0.ab.tmp", key(1)));
    let others = [cache.folder().join("thesis.txt"), shard.join("data"), shard.join("0".repeat(63))];
    for file in others.iter().chain([&unfinished]) {
        fs::write(file, "mine").expect("it can be written");
    }
    assert_eq!(cache.clear().expect("all of it is ours"), (40, bytes));
    let mut left = folder.files();
    left.sort();
    let mut expected = others.to_vec();
    expected.sort();
    assert_eq!(left, expected);
    assert_eq!(cache.entries().expect("it can be read"), []);
}

/// Writes the same forty entries until it is killed. The test below runs it in its own process.
#[test]
#[ignore = "writes until it is killed: another test runs it"]
fn write_for_ever() {
    let Ok(folder) = env::var("WEFT_TEST_FOLDER") else { return };
    let cache = DiskCache::new(folder.into(), LIMIT);
    let keys: Vec<_> = (0..40).map(key).collect();
    for round in 0_u64.. {
        for (number, key) in keys.iter().enumerate() {
            cache.write(key, &about(), &content(number, round));
        }
    }
}

/// Some kilobytes that repeat the entry's number and round.
fn content(number: usize, round: u64) -> Vec<u8> {
    let part: Vec<u8> = [number as u64, round].into_iter().flat_map(u64::to_le_bytes).collect();
    part.repeat(4_000)
}

#[test]
fn a_writer_that_is_killed_leaves_nothing_that_is_believed() {
    let folder = Folder::new();
    let cache = folder.cache(LIMIT);
    let this = env::current_exe().expect("this program has a path");
    for kill in 0..25 {
        cache.clear().expect("all of it is ours");
        let mut writers: Vec<_> = (0..2)
            .map(|_| {
                let mut command = Command::new(&this);
                command.args(["--exact", "write_for_ever", "--ignored", "--test-threads=1"]);
                command.env("WEFT_TEST_FOLDER", cache.folder()).stdout(Stdio::null()).stderr(Stdio::null());
                command.spawn().expect("this program runs")
            })
            .collect();
        // Kills the writers at a different time in each iteration.
        while cache.entries().expect("it can be read").len() < 1 + kill {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_micros(97 * kill as u64));
        for writer in &mut writers {
            writer.kill().expect("it writes for ever");
            writer.wait().expect("it is ours");
        }
        let mut reads = 0;
        for number in 0..40 {
            let Some(found) = cache.read(&key(number)) else { continue };
            reads += 1;
            let round = u64::from_le_bytes(found[8..16].try_into().expect("eight bytes"));
            assert!(found == content(number as usize, round), "entry {number} is of round {round}, but not all of it");
        }
        let entries = cache.entries().expect("it can be read").len();
        assert_eq!(reads, entries, "an entry that is there is whole");
        assert!((1 + kill..=40).contains(&entries), "{entries} entries of forty");
    }
    cache.clear().expect("all of it is ours");
    assert_eq!(folder.files(), Vec::<PathBuf>::new());
}
