// Asks the sidecar of a pod, by its check API. It needs Node 18 or later, and nothing else.
import { request } from "node:http";
import { text } from "node:stream/consumers";

/** Where the sidecar of the same pod answers. */
export const defaultURL = "http://127.0.0.1:15010";

/** The socket of pods with the annotation config.weir.dev/check-socket. */
export const defaultSocket = "unix:///var/run/weir.dev/check.sock";

/** An answer that decides nothing: detail names the field that is wrong, and the cure. */
export class CheckError extends Error {
  constructor(status, title, detail) {
    super(`${status} ${title}: ${detail}`);
    this.name = "CheckError";
    Object.assign(this, { status, title, detail });
  }
}

/** Asks a sidecar. It retries nothing: a check that was counted would be counted twice. */
export class Client {
  #server;
  #timeout;

  constructor({ url = defaultURL, timeoutMs = 2000 } = {}) {
    if (url.startsWith("unix://")) {
      this.#server = { socketPath: url.slice("unix://".length) };
    } else {
      const { hostname, port } = new URL(url);
      this.#server = { host: hostname.replace(/^\[|\]$/g, ""), port: port || 80 };
    }
    this.#timeout = timeoutMs;
  }

  /** Decides a request, and counts it. A refusal is a decision; an error decides nothing. */
  check(query) {
    return this.#ask("/v1/check", query);
  }

  /** Says what is left for up to 16 queries, and takes nothing. */
  peek(...queries) {
    return this.#ask("/v1/peek", { limits: queries });
  }

  /** Says when the costs of up to 16 queries will be admitted, and takes nothing. */
  forecast(...queries) {
    return this.#ask("/v1/forecast", { limits: queries });
  }

  async #ask(path, question) {
    const body = Buffer.from(JSON.stringify(question));
    const answer = await new Promise((resolve, reject) => {
      request({
        ...this.#server,
        path,
        method: "POST",
        headers: { "content-type": "application/json", "content-length": body.length },
        signal: AbortSignal.timeout(this.#timeout),
      }, resolve).on("error", reject).end(body);
    });
    const said = await text(answer);
    if (answer.statusCode === 200 || answer.statusCode === 429) {
      return JSON.parse(said);
    }
    let problem = {};
    try {
      problem = JSON.parse(said);
    } catch {
      // The status says enough.
    }
    throw new CheckError(answer.statusCode, problem.title ?? answer.statusMessage, problem.detail ?? "the sidecar gives no reason");
  }
}
