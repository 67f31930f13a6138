// Generates types from the served document with openapi-typescript, compiles them with code that
// uses them, and calls the service with openapi-fetch. The input is the bundle's settings as JSON,
// and the output is the client's results as JSON.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

import { use } from "./generated/use.ts";

const USE = fileURLToPath(new URL("./generated/use.ts", import.meta.url));

/** The compiler's diagnostics for a program, each of which is a failure. */
function diagnostics(program) {
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
  const faults = diagnostics(program);
  if (faults) throw new Error(`the generated types do not compile:\n${faults}`);
} finally {
  await rm(folder, { recursive: true });
}
console.log(JSON.stringify(await use(settings)));
