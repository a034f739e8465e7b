// Errors of the LLM endpoint in the shape of OpenAI's API.

export type LlmStatus = 400 | 401 | 403 | 404 | 405 | 413 | 429 | 500 | 503;

export interface LlmErrorParts {
  readonly message: string;
  /** The request's key that is wrong, such as `messages.0.content`. */
  readonly param?: string | undefined;
  readonly code?: string | undefined;
}

/** Thrown to answer a request with an error. */
export class LlmError extends Error {
  readonly status: LlmStatus;
  readonly param: string | null;
  readonly code: string | null;

  constructor(status: LlmStatus, { message, param, code }: LlmErrorParts) {
    super(message);
    this.status = status;
    this.param = param ?? null;
    this.code = code ?? null;
  }

  get body(): object {
    const { message, param, code } = this;
    return { error: { message, type: typeOf(this.status), param, code } };
  }

  get response(): Response {
    const retry = this.status === 429 || this.status === 503 ? { "retry-after": "1" } : {};
    return Response.json(this.body, { status: this.status, headers: retry });
  }
}

function typeOf(status: number): string {
  if (status === 401) return "authentication_error";
  if (status === 403) return "permission_error";
  if (status === 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

/** Rewrites the server's own refusals, `{"detail": …}`, to this shape; keeps status and headers. */
export async function inLlmShape(response: Response): Promise<Response> {
  const { status } = response;
  if (status < 400) return response;
  const text = await response.text();
  const body = bodyOf(text);
  if (body && "error" in body) return new Response(text, response);
  const message = typeof body?.detail === "string" ? body.detail : "Internal Server Error";
  const headers = new Headers(response.headers);
  headers.set("content-type", "application/json");
  headers.delete("content-length");
  return new Response(JSON.stringify(new LlmError(status as LlmStatus, { message }).body), { status, headers });
}

function bodyOf(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
}
