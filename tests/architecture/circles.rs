//! Circular dependencies between one crate's files. Re-exports are resolved: a file that uses `crate::Thing` uses the
//! file that defines `Thing`, and a re-export itself does not count as a use.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    path::{Path, PathBuf},
};

use syn::{
    Attribute, Item, ItemMod, ItemUse, UseTree, Visibility,
    visit::{self, Visit},
};

type Module = Vec<String>;

/// A crate's files, keyed by module.
struct Sources(BTreeMap<Module, Contents>);

#[derive(Default)]
struct Contents {
    /// The paths in the file's code, absolute within the crate.
    named: Vec<Module>,
    /// The file's re-exports: each name, and the path behind it.
    reexported: BTreeMap<String, Module>,
    /// The modules whose items the file re-exports with a glob.
    everything_of: Vec<Module>,
}

struct Reader<'a> {
    module: &'a Module,
    contents: Contents,
}

impl Reader<'_> {
    /// The path within the crate; `None` for a path outside it.
    fn absolute(&self, path: &[String]) -> Option<Module> {
        let mut from = match path.first()?.as_str() {
            "crate" => Module::new(),
            "self" => self.module.clone(),
            "super" => self.module[..self.module.len().saturating_sub(1)].to_vec(),
            _ => return None,
        };
        let rest = path.iter().skip(1).skip_while(|part| {
            let up = *part == "super";
            if up {
                from.pop();
            }
            up
        });
        let rest: Vec<_> = rest.cloned().collect();
        from.extend(rest);
        Some(from)
    }

    fn used(&mut self, tree: &UseTree, mut prefix: Vec<String>, exported: bool) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.used(&path.tree, prefix, exported);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.used(tree, prefix.clone(), exported);
                }
            }
            UseTree::Name(name) => self.named_as(prefix, name.ident.to_string(), name.ident.to_string(), exported),
            UseTree::Rename(name) => {
                self.named_as(prefix, name.ident.to_string(), name.rename.to_string(), exported);
            }
            UseTree::Glob(_) => {
                let path = self.absolute(&prefix).or_else(|| exported.then(|| self.below(&prefix)));
                match path {
                    Some(path) if exported => self.contents.everything_of.push(path),
                    Some(path) => self.contents.named.push(path),
                    None => {}
                }
            }
        }
    }

    fn named_as(&mut self, mut path: Vec<String>, name: String, alias: String, exported: bool) {
        if name != "self" {
            path.push(name);
        }
        match self.absolute(&path) {
            Some(path) if exported => drop(self.contents.reexported.insert(alias, path)),
            Some(path) => self.contents.named.push(path),
            // `pub use child::Thing`, or `use child::Thing` for the module's own child.
            None if exported => drop(self.contents.reexported.insert(alias, self.below(&path))),
            None => self.contents.named.push(self.below(&path)),
        }
    }

    fn below(&self, path: &[String]) -> Module {
        self.module.iter().chain(path).cloned().collect()
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    let texts = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    texts
        .filter_map(|attribute| attribute.meta.require_list().ok())
        .any(|list| list.tokens.to_string().contains("test"))
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        // An inline module belongs to the file that contains it.
        if let Some((_, items)) = &item.content {
            for item in items {
                self.visit_item(item);
            }
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let exported = !matches!(item.vis, Visibility::Inherited);
        self.used(&item.tree, Vec::new(), exported);
    }

    /// `pub(super)` names a module without using it.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if let Some(absolute) = self.absolute(&parts) {
            self.contents.named.push(absolute);
        }
        visit::visit_path(self, path);
    }
}

impl Sources {
    fn read(folder: &Path) -> Self {
        let mut sources = BTreeMap::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(next) = folders.pop() {
            for path in fs::read_dir(&next).expect("a folder of the project").flatten().map(|entry| entry.path()) {
                if path.is_dir() && path.file_name().is_some_and(|name| name != "bin") {
                    folders.push(path);
                } else if let Some(module) = module_of(folder, &path) {
                    let text = fs::read_to_string(&path).expect("a file of the project");
                    let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                    let mut reader = Reader { module: &module, contents: Contents::default() };
                    reader.visit_file(&file);
                    let contents = reader.contents;
                    sources.insert(module, contents);
                }
            }
        }
        Self(sources)
    }

    /// The file that defines the item at a path, through re-exports.
    fn home_of(&self, path: &Module, depth: usize) -> Option<Module> {
        let end = (0..=path.len()).rev().find(|end| self.0.contains_key(&path[..*end]))?;
        let module = path[..end].to_vec();
        let rest = &path[end..];
        let contents = &self.0[&module];
        let (Some(name), true) = (rest.first(), depth < 8) else { return Some(module) };
        if let Some(behind) = contents.reexported.get(name) {
            let behind = behind.iter().chain(&rest[1..]).cloned().collect();
            return self.home_of(&behind, depth + 1);
        }
        Some(module)
    }

    /// For each file, the files that it uses.
    fn uses(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        let uses = |(module, contents): (&'_ Module, &'_ Contents)| {
            let homes = contents.named.iter().filter_map(|path| self.home_of(path, 0));
            homes.filter(|home| home != module).collect()
        };
        self.0.iter().map(|(module, contents)| (module, uses((module, contents)))).collect()
    }

    /// The shortest circle through each file that is part of one, without repetitions.
    fn circles(&self) -> Vec<Vec<String>> {
        let uses = self.uses();
        let mut found: BTreeMap<BTreeSet<Module>, Vec<String>> = BTreeMap::new();
        for start in uses.keys() {
            let mut before: BTreeMap<Module, Module> = BTreeMap::new();
            let mut queue = VecDeque::from([(*start).clone()]);
            while let Some(at) = queue.pop_front() {
                for next in uses.get(&at).into_iter().flatten() {
                    if next == *start {
                        let mut circle = vec![at.clone()];
                        while let Some(earlier) = before.get(circle.last().expect("begun")) {
                            circle.push(earlier.clone());
                        }
                        circle.reverse();
                        let names = circle.iter().chain([next]).map(|module| module.join("::")).collect();
                        found.entry(circle.into_iter().collect()).or_insert(names);
                        queue.clear();
                        break;
                    }
                    if next != *start && !before.contains_key(next) {
                        before.insert(next.clone(), at.clone());
                        queue.push_back(next.clone());
                    }
                }
            }
        }
        found.into_values().collect()
    }
}

/// A file's module; `None` for a test file and for `main.rs`.
fn module_of(folder: &Path, path: &Path) -> Option<Module> {
    let inside = path.strip_prefix(folder).ok()?.with_extension("");
    let mut module: Module = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let rust = path.extension().is_some_and(|extension| extension == "rs");
    let last = module.last()?.clone();
    if !rust || last.ends_with("_tests") || last == "main" {
        return None;
    }
    if last == "mod" || last == "lib" {
        module.pop();
    }
    Some(module)
}

fn crates() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let shared =
        fs::read_dir(root.join("shared")).expect("a folder of the project").flatten().map(|entry| entry.path());
    shared.chain(["cli", "operator", "operator/waypost-admin", "local"].map(|folder| root.join(folder))).collect()
}

#[test]
fn no_two_files_of_a_crate_use_each_other_in_a_circle() {
    let mut found = Vec::new();
    for folder in crates() {
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        for circle in Sources::read(&folder.join("src")).circles() {
            found.push(format!("{name}: {}", circle.join(" → ")));
        }
    }
    assert!(found.is_empty(), "files use each other in circles:\n{}", found.join("\n"));
}

#[test]
fn a_circle_is_found_through_a_re_export() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("written");
    write("lib.rs", "mod a;\nmod b;\npub use a::A;\npub use b::B;\n");
    write("a.rs", "use crate::B;\npub struct A(B);\n");
    write("b.rs", "pub struct B;\n#[cfg(test)]\nmod tests { use crate::A; }\n");
    assert!(Sources::read(folder.path()).circles().is_empty(), "a unit test may use a higher module");
    write("b.rs", "pub struct B;\nimpl B { fn of(a: &super::a::A) -> &Self { &a.0 } }\n");
    assert_eq!(Sources::read(folder.path()).circles(), [["a", "b", "a"].map(str::to_owned)]);
}
