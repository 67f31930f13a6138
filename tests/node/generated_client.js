// Makes types of the served document with openapi-typescript, compiles them with their use, and uses them with openapi-fetch:
// how the bundle is reached comes in as JSON, what the client saw goes out.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

import { use } from "./generated/use.ts";

const USE = fileURLToPath(new URL("./generated/use.ts", import.meta.url));

/** What the compiler has to say of a program, every word of which is a fault. */
function complaints(program) {
  const host = { getCanonicalFileName: (name) => name, getCurrentDirectory: () => "", getNewLine: () => "\n" };
  return ts.formatDiagnostics(ts.getPreEmitDiagnostics(program), host);
}

const settings = JSON.parse(await text(process.stdin));
const folder = await mkdtemp(join(tmpdir(), "waypost-types-"));
try {
  const types = join(folder, "waypost.d.ts");
  await writeFile(types, astToString(await openapiTS(new URL(settings.document))));
  const program = ts.createProgram([types, USE], {
    strict: true,
    noEmit: true,
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    lib: ["lib.es2022.d.ts", "lib.dom.d.ts"],
    types: [],
    paths: { waypost: [types] },
  });
  const faults = complaints(program);
  if (faults) throw new Error(`it does not compile:\n${faults}`);
} finally {
  await rm(folder, { recursive: true });
}
console.log(JSON.stringify(await use(settings)));
