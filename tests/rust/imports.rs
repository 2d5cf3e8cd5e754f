//! Imports in the CPU back end: a pass of the planner imports the plan's IR and the analyses, and no other pass; and no
//! files import each other, directly or through others.

use std::collections::BTreeMap;

use crate::support::{code, files};

/// The back end.
const HOST: &str = "compiler/src/backend/host/";

/// Its module.
const ROOT: &str = "crate::backend::host";

/// The planner's module, below [`ROOT`].
const PLAN: &str = "plan";

/// The modules of the planner that all passes use. In the planner's other folders, each file or folder is one pass.
const SHARED: [&str; 2] = ["plan::analysis", "plan::plan_ir"];

/// The imports of a module.
#[derive(Debug, Default, PartialEq, Eq)]
struct Imports {
    /// The paths that it uses.
    used: Vec<String>,
    /// The paths that it exports again.
    exported: Vec<String>,
}

/// The modules of the back end, by their names below [`ROOT`].
fn modules() -> BTreeMap<String, Imports> {
    let module = |path: String| {
        let inside = path.trim_start_matches(HOST).trim_end_matches(".rs");
        let name = if inside == "mod" { "" } else { inside.trim_end_matches("/mod") }.replace('/', "::");
        let own = if name.is_empty() { ROOT.to_owned() } else { format!("{ROOT}::{name}") };
        let text = code(&path);
        // Unit tests may use every module.
        let imports = imports(&own, text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default());
        (name, imports)
    };
    let paths = files(&[HOST.trim_end_matches('/')], "rs").into_iter();
    paths.filter(|path| !path.starts_with(&format!("{HOST}tests/"))).map(module).collect()
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
    let declared = text.lines().filter_map(|line| line.strip_suffix(';')?.split_once("mod "));
    let children = declared.map(|(_, child)| format!("{child}::"));
    let heads: Vec<String> = ["crate::", "super::"].map(str::to_owned).into_iter().chain(children).collect();
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let statement = line.split_once("use ").filter(|(before, _)| before.is_empty() || before.starts_with("pub"));
        let Some((before, first)) = statement else {
            let starts = heads.iter().flat_map(|head| line.match_indices(head.as_str()).map(|(at, _)| at));
            let starts = starts.filter(|&at| !line[..at].ends_with(is_part));
            let path = |at: usize| absolute(line[at..].split(|c| !is_part(c)).next().unwrap_or_default());
            imports.used.extend(starts.map(path));
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
    let text = "mod o;\nuse crate::{\n    a::{self, B, c::{D as E, F}},\n};\npub(crate) use g::H;\nuse super::I;\n\
                fn f(j: &crate::k::J) { super::l() + o::p() }\n";
    let used = ["a", "a::B", "a::c::D", "a::c::F", "m::I", "k::J", "m::l", "m::n::o::p"];
    let used = used.map(|path| format!("crate::{path}")).into();
    let expected = Imports { used, exported: vec!["crate::m::n::g::H".to_owned()] };
    assert_eq!(imports("crate::m::n", text), expected);
}

/// The module of the back end that defines what a path names; `None` for a path outside of it.
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

/// For each module, the other modules whose items it uses.
fn used() -> BTreeMap<String, Vec<String>> {
    let modules = modules();
    let used_by = |(name, imports): (&String, &Imports)| {
        let used = imports.used.iter().filter_map(|path| definer(&modules, path));
        (name.clone(), used.filter(|used| used != name).map(str::to_owned).collect())
    };
    modules.iter().map(used_by).collect()
}

/// Whether a module is `outer` or in it.
fn is_in(module: &str, outer: &str) -> bool {
    module.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

#[test]
fn passes_do_not_know_each_other() {
    let is_shared = |module: &str| SHARED.iter().any(|shared| is_in(module, shared));
    let mut faults = Vec::new();
    for (module, used) in used() {
        let names: Vec<&str> = module.split("::").collect();
        // The files beside the folders run passes, print plans and verify them.
        let is_beside = names.len() < 3 && !is_shared(&module);
        if !is_in(&module, PLAN) || is_beside {
            continue;
        }
        let pass = names.iter().take(3).copied().collect::<Vec<_>>().join("::");
        let may_use = |used: &String| is_shared(used) || (!is_shared(&module) && is_in(used, &pass));
        faults.extend(used.iter().filter(|used| !may_use(used)).map(|used| format!("{module} uses {used}")));
    }
    assert!(faults.is_empty(), "move what passes share into `analysis` or `plan_ir`\n{}", faults.join("\n"));
}

#[test]
fn imports_have_no_circle() {
    /// Searches for a circle through the last module of `path`. Removes modules that are in none.
    fn search(used: &mut BTreeMap<String, Vec<String>>, path: &mut Vec<String>) -> Option<String> {
        let last = path.last()?.clone();
        for next in used.get(&last).cloned().unwrap_or_default() {
            if let Some(at) = path.iter().position(|module| *module == next) {
                return Some(format!("{} → {next}", path[at..].join(" → ")));
            }
            path.push(next);
            if let Some(circle) = search(used, path) {
                return Some(circle);
            }
            path.pop();
        }
        used.remove(&last);
        None
    }
    let mut used = used();
    while let Some(first) = used.keys().next().cloned() {
        let circle = search(&mut used, &mut vec![first]);
        assert!(circle.is_none(), "imports have a circle: {}", circle.unwrap_or_default());
    }
}
