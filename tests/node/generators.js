// Generates clients from the served openapi.json with three generators and compiles two of them;
// with Modelina, generates models of some types' events from asyncapi.json. The input is both
// documents and the types' prefix; the output is the compiler's errors and the models' names. The
// compiler would take longer for openapi-zod-client's client than for all others together.

import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

import { TypeScriptGenerator } from "@asyncapi/modelina";
import { createClient } from "@hey-api/openapi-ts";
import { generateZodClientFromOpenAPI } from "openapi-zod-client";
import { generate } from "orval";
import ts from "typescript";

const { openapi, asyncapi, types } = await json(process.stdin);
// The generators report progress on standard output, which is reserved for the result.
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

  const clients = ["hey/index.ts", "orval.ts"].map((client) => join(folder, client));
  const program = ts.createProgram(clients, {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    lib: ["lib.es2022.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
    types: [],
  });
  const host = { getCanonicalFileName: (name) => name, getCurrentDirectory: () => "", getNewLine: () => "\n" };
  const { diagnostics } = ts.transpileModule(await readFile(join(folder, "zod.ts"), "utf8"), { reportDiagnostics: true });
  const complaints = ts.formatDiagnostics([...diagnostics, ...ts.getPreEmitDiagnostics(program)], host);

  for (const messages of [asyncapi.components.messages, asyncapi.channels.webhook.messages]) {
    Object.keys(messages).filter((type) => !type.startsWith(types)).forEach((type) => delete messages[type]);
  }
  const models = await new TypeScriptGenerator().generate(asyncapi);
  const names = models.map((model) => model.modelName);
  process.stdout.write = Object.getPrototypeOf(process.stdout).write;
  print(JSON.stringify({ complaints, names }));
} finally {
  await rm(folder, { recursive: true });
}
