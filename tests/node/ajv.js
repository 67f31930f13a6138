// Compiles every event type's schema with ajv in strict mode, and validates its samples. The input
// is the list of types, each with `value`, `schema` and `samples`; the output is the list of
// errors.
import Ajv from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { json } from "node:stream/consumers";

const complaints = [];
const ajv = addFormats(new Ajv({ strict: true, allErrors: true }));
for (const { value, schema, samples } of await json(process.stdin)) {
  try {
    const valid = ajv.compile(schema);
    for (const sample of samples) {
      if (!valid(sample)) complaints.push(`${value}: ${ajv.errorsText(valid.errors)}`);
    }
  } catch (error) {
    complaints.push(`${value}: ${error.message}`);
  }
}
process.stdout.write(JSON.stringify({ complaints }));
