// Counters in Prometheus' text format, for GET /metrics.

type Labels = Readonly<Record<string, string | number>>;

/** Upper bounds of the latency histogram's buckets, in seconds. */
const BARS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const HELP: Readonly<Record<string, string>> = {
  sqlenv_sessions_total: "Sessions opened, by kind",
  sqlenv_sessions_refused_total: "Sessions refused, by reason",
  sqlenv_messages_total: "Messages answered, by type",
  sqlenv_errors_total: "Error replies, by code",
  sqlenv_http_requests_total: "HTTP requests, by route and status",
  sqlenv_completions_total: "Completions of the LLM endpoint, by reason of their end",
  sqlenv_threads_lost_total: "Environment threads that had to be replaced",
};

/** The server's counters. */
export class Metrics {
  readonly #counters = new Map<string, Map<string, number>>();
  readonly #bars = new Float64Array(BARS.length + 1);
  #seconds = 0;

  count(name: keyof typeof HELP & string, labels: Labels = {}): void {
    const series = this.#counters.get(name) ?? new Map<string, number>();
    this.#counters.set(name, series);
    const key = Object.entries(labels)
      .map(([label, value]) => `${label}="${String(value).replace(/[\\"\n]/g, "_")}"`)
      .join(",");
    series.set(key, (series.get(key) ?? 0) + 1);
  }

  /** Records a message's latency, from arrival to reply. */
  time(seconds: number): void {
    this.#seconds += seconds;
    const bar = BARS.findIndex((end) => seconds <= end);
    this.#bars[bar < 0 ? BARS.length : bar]!++;
  }

  /** The metrics page; `values` are the current gauges. */
  text(values: Readonly<Record<string, readonly [help: string, value: number]>>): string {
    const lines: string[] = [];
    for (const [name, [help, value]] of Object.entries(values))
      lines.push(
        `# HELP ${name} ${help}`,
        `# TYPE ${name} ${name.endsWith("_total") ? "counter" : "gauge"}`,
        `${name} ${value}`,
      );
    for (const [name, series] of this.#counters) {
      lines.push(`# HELP ${name} ${HELP[name]}`, `# TYPE ${name} counter`);
      for (const [key, value] of series) lines.push(`${name}${key && `{${key}}`} ${value}`);
    }
    const name = "sqlenv_message_seconds";
    lines.push(`# HELP ${name} Seconds from a message to its reply`, `# TYPE ${name} histogram`);
    let sum = 0;
    for (const [i, end] of [...BARS, "+Inf"].entries()) {
      sum += this.#bars[i]!;
      lines.push(`${name}_bucket{le="${end}"} ${sum}`);
    }
    lines.push(`${name}_sum ${this.#seconds}`, `${name}_count ${sum}`);
    return `${lines.join("\n")}\n`;
  }
}
