//! Imports in the CPU planner: a pass imports the plan's IR and the analyses, and no other pass. The imports have no
//! circle, except among the files of one pass.

use std::collections::BTreeMap;

use crate::support::{code, files};

/// The planner.
const PLAN: &str = "compiler/src/backend/host/plan/";

/// Its module.
const ROOT: &str = "crate::backend::host::plan";

/// The folders that all passes use. In the other folders, each file or folder is one pass.
const SHARED: [&str; 2] = ["analysis", "plan_ir"];

/// The imports of a module.
#[derive(Debug, Default, PartialEq, Eq)]
struct Imports {
    /// The paths that it uses.
    used: Vec<String>,
    /// The paths that it exports again.
    exported: Vec<String>,
}

/// The modules of the planner, by their names below [`ROOT`].
fn modules() -> BTreeMap<String, Imports> {
    let module = |path: String| {
        let inside = path.trim_start_matches(PLAN).trim_end_matches(".rs");
        let name = if inside == "mod" { "" } else { inside.trim_end_matches("/mod") }.replace('/', "::");
        let own = if name.is_empty() { ROOT.to_owned() } else { format!("{ROOT}::{name}") };
        let text = code(&path);
        // Unit tests may use every module.
        let imports = imports(&own, text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default());
        (name, imports)
    };
    files(&[PLAN.trim_end_matches('/')], "rs").into_iter().map(module).collect()
}

/// The imports in the text of the module `own`, without comments.
fn imports(own: &str, text: &str) -> Imports {
    let mut imports = Imports::default();
    let absolute = |path: &str| match path.split_once("::") {
        Some(("crate", _)) => path.to_owned(),
        Some(("self", rest)) => format!("{own}::{rest}"),
        Some(("super", rest)) => format!("{}::{rest}", own.rsplit_once("::").map_or("", |(parent, _)| parent)),
        _ => format!("{own}::{path}"),
    };
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let statement = line.split_once("use ").filter(|(before, _)| before.is_empty() || before.starts_with("pub"));
        let Some((before, first)) = statement else {
            let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
            let paths = ["crate::", "super::"].iter().flat_map(|head| line.match_indices(head));
            let path = |(at, _): (usize, &str)| absolute(line[at..].split(|c| !is_part(c)).next().unwrap_or_default());
            imports.used.extend(paths.map(path));
            continue;
        };
        let mut tree = first.to_owned();
        while !tree.ends_with(';') {
            tree.push_str(lines.next().expect("a `use` ends with a semicolon").trim());
        }
        let mut paths = Vec::new();
        expand("", tree.trim_end_matches(';'), &mut paths);
        let list = if before.is_empty() { &mut imports.used } else { &mut imports.exported };
        list.extend(paths.iter().map(|path| absolute(path)));
    }
    imports
}

/// Writes out the paths of a tree such as `a::{b, c::d}`.
fn expand(before: &str, tree: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((head, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or(tree);
        if !path.is_empty() {
            paths.push(format!("{before}{path}").trim_end_matches("::self").to_owned());
        }
        return;
    };
    let inner = rest.trim_end().strip_suffix('}').expect("a tree that opens a brace closes it");
    let before = format!("{before}{head}");
    let (mut depth, mut from) = (0, 0);
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&before, &inner[from..at], paths);
                from = at + 1;
            }
            _ => {}
        }
    }
    expand(&before, &inner[from..], paths);
}

#[test]
fn imports_are_written_out() {
    let text = "use crate::{\n    a::{self, B, c::{D as E, F}},\n};\npub(crate) use g::H;\nuse super::I;\nfn f(j: &crate::k::J) { super::l() }\n";
    let used =
        ["crate::a", "crate::a::B", "crate::a::c::D", "crate::a::c::F", "crate::m::I", "crate::k::J", "crate::m::l"];
    let expected = Imports { used: used.map(str::to_owned).into(), exported: vec!["crate::m::n::g::H".to_owned()] };
    assert_eq!(imports("crate::m::n", text), expected);
}

/// The module of the planner that defines what a path names; `None` for a path outside of the planner.
fn definer<'a>(modules: &'a BTreeMap<String, Imports>, path: &str) -> Option<&'a str> {
    let inside = match path.strip_prefix(ROOT)? {
        "" => "",
        inside => inside.strip_prefix("::")?,
    };
    let parts: Vec<&str> = inside.split("::").collect();
    let longest = (0..=parts.len()).rev().find_map(|len| Some((len, modules.get_key_value(&parts[..len].join("::"))?)));
    let (len, (name, imports)) = longest?;
    let again = parts.get(len).and_then(|item| {
        imports.exported.iter().find(|path| path.rsplit_once("::").is_some_and(|(_, exported)| exported == *item))
    });
    again.map_or(Some(name), |path| definer(modules, path))
}

/// The pass that a module belongs to, or the module itself if it belongs to none.
fn unit(module: &str) -> String {
    let is_shared = SHARED.iter().any(|folder| is_in(module, folder));
    if is_shared { module.to_owned() } else { module.split("::").take(2).collect::<Vec<_>>().join("::") }
}

/// Whether a module is a folder or in it.
fn is_in(module: &str, folder: &str) -> bool {
    module.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// For each unit, the units whose items it uses.
fn units() -> BTreeMap<String, Vec<String>> {
    let modules = modules();
    let mut units = BTreeMap::<String, Vec<String>>::new();
    for (name, imports) in &modules {
        let own = unit(name);
        let used = imports.used.iter().filter_map(|path| definer(&modules, path)).map(unit);
        let others: Vec<String> = used.filter(|used| *used != own).collect();
        units.entry(own).or_default().extend(others);
    }
    units
}

#[test]
fn passes_do_not_know_each_other() {
    let is_shared = |module: &str| SHARED.iter().any(|folder| is_in(module, folder));
    let mut faults = Vec::new();
    for (unit, used) in units() {
        // The files beside the folders run passes, print plans and verify them.
        if !unit.contains("::") && !is_shared(&unit) {
            continue;
        }
        faults.extend(used.iter().filter(|used| !is_shared(used)).map(|used| format!("{unit} uses {used}")));
    }
    assert!(faults.is_empty(), "move what passes share into `analysis` or `plan_ir`\n{}", faults.join("\n"));
}

#[test]
fn imports_have_no_circle() {
    /// Searches for a circle through the last unit of `path`. Removes units that are in none.
    fn search(units: &mut BTreeMap<String, Vec<String>>, path: &mut Vec<String>) -> Option<String> {
        let last = path.last()?.clone();
        for used in units.get(&last).cloned().unwrap_or_default() {
            if let Some(at) = path.iter().position(|unit| *unit == used) {
                return Some(format!("{} → {used}", path[at..].join(" → ")));
            }
            path.push(used);
            if let Some(circle) = search(units, path) {
                return Some(circle);
            }
            path.pop();
        }
        units.remove(&last);
        None
    }
    let mut units = units();
    while let Some(first) = units.keys().next().cloned() {
        let circle = search(&mut units, &mut vec![first]);
        assert!(circle.is_none(), "imports have a circle: {}", circle.unwrap_or_default());
    }
}
