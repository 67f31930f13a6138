// An unsuccessful response in words: the service's Problem (RFC 9457), or why no response arrived.

/** The names and indexes in a JSON Pointer (RFC 6901). */
const steps = (pointer) => pointer.split("/").slice(1).map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));

/** The member of the body, the parameter or the header that a violation is about. */
export const inputOf = ({ pointer }) => steps(pointer)[0];

/** The display name of the value at a pointer: `/eventList/2` is `eventList[2]`. */
export const nameOf = (pointer) =>
  steps(pointer).reduce((name, step) => (/^\d+$/.test(step) ? `${name}[${step}]` : `${name}${name && "."}${step}`), "");

/** A violation that the panel finds itself. */
export const violationOf = (member, detail) => ({ in: "body", pointer: `/${member}`, detail });

export class Refusal extends Error {
  constructor({ status = 0, kind = "", title, detail, properties = {}, requestId = "" }) {
    super(detail || title);
    Object.assign(this, { status, kind, title, detail, properties, requestId });
  }

  /** The violations of a member of the body and of its elements, as the end of a sentence after its label. */
  violation(member) {
    return this.violations.filter((found) => inputOf(found) === member).map(({ detail }) => detail).join("; ");
  }

  /** This refusal without the violations of a changed member; `undefined` if no violation remains. */
  without(member) {
    const others = this.violations.filter((found) => inputOf(found) !== member);
    if (others.length === this.violations.length) return this;
    if (!others.length) return undefined;
    return new Refusal({ ...this, properties: { ...this.properties, violations: others } });
  }

  /** Whether the service is down or unreachable, so that the request may succeed in a moment. */
  get isOutage() {
    if (this.kind === "provider-revocation-failed") return false;
    return this.kind === "unreachable" || [502, 503, 504].includes(this.status);
  }

  get violations() {
    return this.properties.violations ?? [];
  }
}

/** The refusal in a response. */
export async function refusalOf(answer) {
  const requestId = answer.headers.get("x-request-id") ?? "";
  const problem = await answer.json().catch(() => ({}));
  return new Refusal({
    status: answer.status,
    kind: problem.kind ?? problem.error ?? "",
    title: problem.title ?? `The service responded with ${answer.status}`,
    detail: problem.detail ?? problem.error_description ?? "It gave no reason. Try again in a moment.",
    properties: problem.properties ?? {},
    requestId,
  });
}

/** The refusal of a request without any response. */
export const unreachable = () =>
  new Refusal({
    kind: "unreachable",
    title: "The service cannot be reached",
    detail: "Check your connection and try again. This page keeps your input.",
  });
