//! Joins the modules of the page into one script, which a browser fetches in one round trip. Separate modules would
//! take several.
//!
//! Each module becomes a function that returns its exports, and imports read names from them, so two modules' names
//! cannot collide. The linker knows the forms of `import` and `export` that the panel uses, and refuses all others. A
//! bundler from npm would make Node a requirement of every build.

use std::collections::BTreeMap;

/// Each file's source, by path.
pub(crate) type Sources = BTreeMap<String, String>;

/// A translated module.
#[derive(Debug, Default)]
struct Module {
    /// The statements that read the imported names, and the rest of the module.
    body: String,
    /// The result's members, such as `name: local`.
    exports: Vec<String>,
}

/// The modules that are linked, in order of execution.
#[derive(Debug, Default)]
struct Linker {
    script: String,
    /// Each module's number; `None` while its imports are linked.
    numbers: BTreeMap<String, Option<usize>>,
}

/// The script of the entry module and its imports, which must include every `.js` file.
pub(crate) fn link(sources: &Sources, entry: &str) -> Result<String, String> {
    let mut linker = Linker::default();
    linker.module(sources, entry)?;
    match sources.keys().find(|path| path.ends_with(".js") && !linker.numbers.contains_key(*path)) {
        Some(path) => Err(format!("{path}: no module imports it")),
        None => Ok(linker.script),
    }
}

impl Linker {
    /// Links a module after its imports, and returns its number.
    fn module(&mut self, sources: &Sources, path: &str) -> Result<usize, String> {
        match self.numbers.get(path) {
            Some(Some(number)) => return Ok(*number),
            Some(None) => return Err(format!("{path}: it imports itself, by way of other modules")),
            None => {}
        }
        let source = sources.get(path).ok_or_else(|| format!("{path}: there is no such file"))?;
        self.numbers.insert(path.to_owned(), None);
        let result = if path.ends_with(".json") {
            format!("({{ default: {} }})", source.trim())
        } else {
            let Module { body, exports } = self.translated(sources, path, &without_comments(source))?;
            format!("(() => {{\n{}\nreturn {{ {} }};\n}})()", body.trim_end(), exports.join(", "))
        };
        let number = self.numbers.values().flatten().count();
        self.numbers.insert(path.to_owned(), Some(number));
        self.script += &format!("const ${number} = {result};\n");
        Ok(number)
    }

    fn translated(&mut self, sources: &Sources, path: &str, source: &str) -> Result<Module, String> {
        let refused = |what: &str| format!("{path}: the linker of functions/panel/build does not know `{what}`");
        for form in ["import(", "import.meta"] {
            if source.contains(form) {
                return Err(refused(form));
            }
        }
        let awaits = |line: &&str| !line.starts_with([' ', '/', '*']) && line.contains("await ");
        if let Some(line) = source.lines().find(awaits) {
            return Err(refused(line));
        }
        let mut module = Module::default();
        let mut rest = source;
        while let Some((at, keyword)) = next_statement(rest) {
            module.body += &rest[..at];
            let statement = &rest[at + keyword.len()..];
            let first_line = || refused(rest[at..].lines().next().unwrap_or_default());
            rest = match declared(statement) {
                Some(Declared { name, local, is_named }) if keyword == "export" => {
                    module.exports.push(member(name, local));
                    // An unnamed default export gets a name.
                    module.body += if is_named { "" } else { "const $default = " };
                    statement.trim_start().trim_start_matches("default ")
                }
                _ => {
                    let (clause, after) = statement.split_once(';').ok_or_else(first_line)?;
                    let names = match clause.split_once("from") {
                        Some((names, address)) => {
                            let address = quoted(address).ok_or_else(first_line)?;
                            let number = self.module(sources, &joined(path, address))?;
                            (names.trim(), Some(number))
                        }
                        None => (clause.trim(), None),
                    };
                    match (keyword, names) {
                        ("import", (names, Some(number))) => {
                            let read = imported(names).ok_or_else(first_line)?;
                            module.body += &format!("const {read} = ${number};");
                        }
                        ("export", (names, from)) => {
                            let base = from.map(|number| format!("${number}.")).unwrap_or_default();
                            let pairs = pairs(names).ok_or_else(first_line)?;
                            module
                                .exports
                                .extend(pairs.iter().map(|(local, name)| member(name, &format!("{base}{local}"))));
                        }
                        _ => return Err(first_line()),
                    }
                    after
                }
            };
        }
        module.body += rest;
        module.body = without_indentation(&module.body);
        Ok(module)
    }
}

/// An object's member, in its short form if the names are equal.
fn member(name: &str, value: &str) -> String {
    if name == value { name.to_owned() } else { format!("{name}: {value}") }
}

/// The source without comment lines, which are a tenth of the script.
fn without_comments(source: &str) -> String {
    let mut is_inside = false;
    let is_code = |line: &&str| {
        let line = line.trim();
        let begins = line.starts_with("/**");
        let was_inside = is_inside || begins;
        is_inside = was_inside && !line.ends_with("*/");
        !was_inside && !line.starts_with("//")
    };
    source.split_inclusive('\n').filter(is_code).collect()
}

/// The source without indentation and empty lines, which browsers also ignore in markup. No text in the panel contains
/// a line break from its source.
fn without_indentation(source: &str) -> String {
    source.split_inclusive('\n').map(|line| line.trim_start_matches(' ')).filter(|line| *line != "\n").collect()
}

/// The position and keyword of the next `import` or `export`, at the start of a line or after a statement.
fn next_statement(text: &str) -> Option<(usize, &'static str)> {
    let found = |keyword: &'static str| {
        let at = text.match_indices(keyword).map(|(at, _)| at).find(|at| {
            let begins = text[..*at].chars().next_back().is_none_or(|before| ['\n', ';', '}'].contains(&before));
            begins && text[at + keyword.len()..].starts_with([' ', '{', '"'])
        });
        at.map(|at| (at, keyword))
    };
    found("import").into_iter().chain(found("export")).min()
}

/// A declaration that is exported.
struct Declared<'a> {
    name: &'a str,
    local: &'a str,
    is_named: bool,
}

fn declared(statement: &str) -> Option<Declared<'_>> {
    let statement = statement.trim_start();
    if let Some(value) = statement.strip_prefix("default ") {
        let local = named(value, &["async function ", "function ", "class "]);
        return Some(Declared { name: "default", local: local.unwrap_or("$default"), is_named: local.is_some() });
    }
    let local = named(statement, &["const ", "async function ", "function ", "class "])?;
    Some(Declared { name: local, local, is_named: true })
}

/// The name after one of these beginnings.
fn named<'a>(text: &'a str, beginnings: &[&str]) -> Option<&'a str> {
    let rest = beginnings.iter().find_map(|beginning| text.strip_prefix(beginning))?;
    let name = rest.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_' && letter != '$').next()?;
    (!name.is_empty()).then_some(name)
}

/// The pattern that reads imported names: of the default export, or of a list.
fn imported(names: &str) -> Option<String> {
    if names.starts_with('{') {
        let members = pairs(names)?.into_iter().map(|(name, local)| member(name, local));
        return Some(format!("{{ {} }}", members.collect::<Vec<_>>().join(", ")));
    }
    is_name(names).then(|| format!("{{ default: {names} }}"))
}

/// The members of `{ a, b as c }`, each with its alias.
fn pairs(list: &str) -> Option<Vec<(&str, &str)>> {
    let members = list.strip_prefix('{')?.strip_suffix('}')?.split(',').map(str::trim);
    let members =
        members.filter(|member| !member.is_empty()).map(|member| member.split_once(" as ").unwrap_or((member, member)));
    members.map(|(one, other)| (is_name(one) && is_name(other)).then_some((one, other))).collect()
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '$')
}

/// The text between quotes, which `with { type: "json" }` may follow.
fn quoted(address: &str) -> Option<&str> {
    let address = address.trim().trim_end_matches(r#" with { type: "json" }"#);
    address.strip_prefix('"')?.strip_suffix('"').filter(|address| address.starts_with('.') && !address.contains('"'))
}

/// Resolves a relative address against the file that contains it.
fn joined(file: &str, address: &str) -> String {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in address.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linked(files: &[(&str, &str)]) -> Result<String, String> {
        let sources = files.iter().map(|(path, source)| ((*path).to_owned(), (*source).to_owned())).collect();
        link(&sources, "main.js")
    }

    #[test]
    fn every_form_of_the_panel_is_linked_after_its_imports() {
        let script = linked(&[
            (
                "main.js",
                "// Text.\n/** One. */\n  /**\n   * import a\n   */\nimport Page from \"./pages/one.js\";\nimport {\n  a, b as c,\n} from \"./lib.js\";\nPage(a, c);\n",
            ),
            (
                "pages/one.js",
                "import table from \"../words.json\" with { type: \"json\" };\nexport default function Page() {}\n",
            ),
            ("words.json", "[1]\n"),
            (
                "lib.js",
                "export const a = 1;\nexport async function b() {\n  await a;\n}\nexport { x } from \"./small.js\";\n",
            ),
            ("small.js", "var n=1;function f(){}export{n as x,f as y};"),
        ]);
        let expected = "const $0 = ({ default: [1] });\n\
            const $1 = (() => {\nconst { default: table } = $0;\nfunction Page() {}\nreturn { default: Page };\n})();\n\
            const $2 = (() => {\nvar n=1;function f(){}\nreturn { x: n, y: f };\n})();\n\
            const $3 = (() => {\nconst a = 1;\nasync function b() {\nawait a;\n}\nreturn { a, b, x: $2.x };\n})();\n\
            const $4 = (() => {\nconst { default: Page } = $1;\nconst { a, b: c } = $3;\nPage(a, c);\nreturn {  };\n})();\n";
        assert_eq!(script, Ok(expected.to_owned()));
    }

    #[test]
    fn an_unnamed_default_export_gets_a_name() {
        let script = linked(&[("main.js", "var t=1;export default function(s){return t}\n")]).expect("known");
        assert!(script.contains("const $default = function(s){return t}\nreturn { default: $default };"), "{script}");
    }

    #[test]
    fn unknown_syntax_is_refused() {
        for source in [
            "export let a = 1;",
            "export * from \"./a.js\";",
            "import * as a from \"./a.js\";",
            "import a, { b } from \"./a.js\";",
            "import \"./a.js\";",
            "import { a } from \"preact\";",
            "export const { a } = b;",
            "const a = await b;",
            "const a = () => import(\"./a.js\");",
            "import.meta.url;",
        ] {
            let refusal = linked(&[("main.js", source), ("a.js", "")]).expect_err(source);
            assert!(refusal.starts_with("main.js: "), "{refusal}");
        }
    }

    #[test]
    fn circles_missing_files_and_unused_modules_are_refused() {
        let circle = [("main.js", "import { b } from \"./b.js\";"), ("b.js", "import { a } from \"./main.js\";")];
        assert!(linked(&circle).expect_err("a circle").contains("imports itself"));
        assert!(linked(&circle[..1]).expect_err("no file").contains("b.js: there is no such file"));
        assert!(linked(&[("main.js", ""), ("b.js", "")]).expect_err("unused").contains("b.js: no module imports it"));
    }
}
