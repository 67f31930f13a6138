// Generates a client from the served document with openapi-generator, compiles it with code that
// uses it, and runs the result. The input is the bundle's settings as JSON, and the output is the
// client's results as JSON.

import { execFile } from "node:child_process";
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import ts from "typescript";

const GENERATOR = fileURLToPath(new URL("../../.venv/bin/openapi-generator-cli", import.meta.url));
const USE = fileURLToPath(new URL("./generated/use_openapi_generator.ts", import.meta.url));
// Starting Java takes half of a run's time.
const JAVA = { JAVA_TOOL_OPTIONS: "-XX:+UseSerialGC -XX:TieredStopAtLevel=1" };

/** Compiles the client and the code that uses it into the folder, as Node.js modules. Diagnostics are failures. */
function compile(folder, use) {
  const program = ts.createProgram([use], {
    strict: true,
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.CommonJS,
    lib: ["lib.es2022.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
    types: [],
    rootDir: folder,
    outDir: folder,
  });
  const found = [...ts.getPreEmitDiagnostics(program), ...program.emit().diagnostics];
  const host = { getCanonicalFileName: (name) => name, getCurrentDirectory: () => "", getNewLine: () => "\n" };
  if (found.length) throw new Error(`the generated client does not compile:\n${ts.formatDiagnostics(found, host)}`);
}

const settings = JSON.parse(await text(process.stdin));
const folder = await mkdtemp(join(tmpdir(), "waypost-client-"));
let seen;
try {
  const input = ["-i", settings.document, "-o", join(folder, "client")];
  const options = { env: { ...process.env, ...JAVA } };
  await promisify(execFile)(GENERATOR, ["generate", "-g", "typescript-fetch", ...input], options);
  await copyFile(USE, join(folder, "use.ts"));
  await writeFile(join(folder, "package.json"), "{}");
  compile(folder, join(folder, "use.ts"));
  seen = await createRequire(import.meta.url)(join(folder, "use.js")).use(settings);
} finally {
  await rm(folder, { recursive: true });
}
console.log(JSON.stringify(seen));
