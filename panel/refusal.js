// An answer that is no success, in words: a Problem (RFC 9457) of the service, or why there was no answer.

export class Refusal extends Error {
  constructor({ status = 0, kind = "", title, detail, properties = {}, requestId = "" }) {
    super(detail || title);
    Object.assign(this, { status, kind, title, detail, properties, requestId });
  }

  /** What is wrong with a member of the body, or of one of its elements; as the end of a sentence. */
  violation(field) {
    const about = (name) => name === field || name.startsWith(`${field}[`) || name.startsWith(`${field}.`);
    return this.violations.filter(({ field: name }) => about(name)).map(({ message }) => message).join("; ");
  }

  /** The same without what is wrong with a member, which was changed since; nothing, if nothing else was wrong. */
  without(field) {
    const others = this.violations.filter(({ field: name }) => name.split(/[[.]/)[0] !== field);
    if (others.length === this.violations.length) return this;
    if (!others.length) return undefined;
    return new Refusal({ ...this, properties: { ...this.properties, violations: others } });
  }

  get violations() {
    return this.properties.violations ?? [];
  }
}

/** The refusal that an answer holds. */
export async function refusalOf(answer) {
  const requestId = answer.headers.get("x-request-id") ?? "";
  const problem = await answer.json().catch(() => ({}));
  return new Refusal({
    status: answer.status,
    kind: problem.kind ?? problem.error ?? "",
    title: problem.title ?? `The service answered ${answer.status}`,
    detail: problem.detail ?? problem.error_description ?? "It said no more than that. Try again in a moment.",
    properties: problem.properties ?? {},
    requestId,
  });
}

/** There was no answer at all. */
export const unreachable = () =>
  new Refusal({
    kind: "unreachable",
    title: "The service cannot be reached",
    detail: "No answer came. Look at your connection, and try again; what you typed is still here.",
  });
