// Reads a document with swagger-parser, which many client generators use. Prints the number of
// paths; a fault in the document makes the program fail.
import { json } from "node:stream/consumers";

import SwaggerParser from "@apidevtools/swagger-parser";

const { document } = await json(process.stdin);
const read = await SwaggerParser.validate(document);
process.stdout.write(JSON.stringify({ paths: Object.keys(read.paths).length }));
