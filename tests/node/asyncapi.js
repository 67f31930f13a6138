// Reads a document with the AsyncAPI authors' parser. Prints the messages and the faults that the
// parser finds.
import { Parser } from "@asyncapi/parser";
import { json } from "node:stream/consumers";

const { document: text } = await json(process.stdin);
const { document, diagnostics } = await new Parser().parse(text);
const isError = ({ severity }) => severity === 0;
process.stdout.write(JSON.stringify({
  faults: diagnostics.filter(isError).map(({ message, path }) => `${path.join(".")}: ${message}`),
  messages: document?.allMessages().all().map((message) => message.name()) ?? [],
}));
