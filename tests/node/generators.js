// Generates clients from the served openapi.json with three generators and compiles them, and models of all events from
// asyncapi.json with Modelina. Input: both documents; output: the compiler's complaints, and the models' names.

import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

import { TypeScriptGenerator } from "@asyncapi/modelina";
import { createClient } from "@hey-api/openapi-ts";
import { generateZodClientFromOpenAPI } from "openapi-zod-client";
import { generate } from "orval";
import ts from "typescript";

const { openapi, asyncapi } = await json(process.stdin);
// The generators report their progress on standard output, which is for the result.
const print = console.log;
console.log = console.info = console.warn = console.error;
process.stdout.write = process.stderr.write.bind(process.stderr);

const folder = await mkdtemp(join(tmpdir(), "waypost-generated-"));
try {
  const document = join(folder, "openapi.json");
  await writeFile(document, JSON.stringify(openapi));
  await symlink(fileURLToPath(new URL("node_modules", import.meta.url)), join(folder, "node_modules"));

  await createClient({ input: document, output: join(folder, "hey"), logs: { level: "silent" } });
  await generate({ input: document, output: { target: join(folder, "orval.ts"), client: "fetch" } });
  await generateZodClientFromOpenAPI({ openApiDoc: openapi, distPath: join(folder, "zod.ts") });

  // The client of openapi-zod-client uses the libraries of its generator, which are older than those of the others.
  const older = join(folder, "node_modules/openapi-zod-client/node_modules");
  const clients = ["hey/index.ts", "orval.ts", "zod.ts"].map((client) => join(folder, client));
  const program = ts.createProgram(clients, {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    lib: ["lib.es2022.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
    types: [],
    paths: { zod: [join(older, "zod")], "@zodios/core": [join(older, "@zodios/core")] },
  });
  const host = { getCanonicalFileName: (name) => name, getCurrentDirectory: () => "", getNewLine: () => "\n" };
  const complaints = ts.formatDiagnostics(ts.getPreEmitDiagnostics(program), host);

  const models = await new TypeScriptGenerator().generate(asyncapi);
  const names = models.map((model) => model.modelName);
  process.stdout.write = Object.getPrototypeOf(process.stdout).write;
  print(JSON.stringify({ complaints, names }));
} finally {
  await rm(folder, { recursive: true });
}
