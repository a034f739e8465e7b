// The refusal of a request: HTTP status and message.

export class Problem extends Error {
  readonly status: 400 | 403 | 404 | 409 | 410 | 422 | 429 | 503;

  constructor(status: Problem["status"], message: string) {
    super(message);
    this.status = status;
  }
}
