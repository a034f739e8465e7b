// A request that is refused: its status and the words for the client.

export class Problem extends Error {
  readonly status: 400 | 403 | 404 | 409 | 410 | 422 | 429 | 503;

  constructor(status: Problem["status"], message: string) {
    super(message);
    this.status = status;
  }
}
