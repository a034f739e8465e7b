// `sqlenv serve --tinker`: serves the engine by the Tinker API, to remote engines and to the stock client.
import { once } from "node:events";
import { UsageError } from "../../../errors.ts";
import { isLoopback, type LogRecord } from "../../openenv/index.ts";
import { type DeviceFlags, deviceOptions } from "../options/device.ts";
import { interruptSignal } from "../terminal/interrupt.ts";
import { type Output, printable, styled } from "../terminal/output.ts";

export interface TinkerFlags extends Omit<DeviceFlags, "threads"> {
  readonly host: string;
  readonly model?: string;
  readonly modelThreads?: number;
  readonly checkpoints: string;
  readonly maxModels?: number;
  readonly allowedHost?: readonly string[];
  readonly trustProxy?: readonly string[];
  readonly quiet?: boolean;
}

export interface TinkerOptions {
  readonly port: number;
  readonly apiKeys: readonly string[];
  readonly onLog: (record: LogRecord) => void;
}

export async function serveTinker(flags: TinkerFlags, options: TinkerOptions, out: Output): Promise<void> {
  const { model: named, host, quiet = false, modelThreads } = flags;
  if (named === undefined)
    throw new UsageError({ what: "--tinker serves a model, and none is named", remedy: "for example --model starter" });
  // Imported here: a server without a model needs no engine.
  const { loadBaseModel, startTinkerServer } = await import("../../tinker/index.node.ts");
  const model = await loadBaseModel(named, deviceOptions({ ...flags, threads: modelThreads }));
  const { names } = model;
  const stop = interruptSignal();
  const server = await startTinkerServer(model, {
    host,
    port: options.port,
    checkpoints: flags.checkpoints,
    apiKeys: options.apiKeys,
    allowedHosts: flags.allowedHost,
    trustProxies: flags.trustProxy,
    maxModels: flags.maxModels,
    onLog: options.onLog,
  });
  if (!isLoopback(host) && options.apiKeys.length === 0)
    process.stderr.write(
      `${styled("yellow", `warning: anyone who reaches ${host} may train here; set --api-key-file or SQLENV_API_KEY to require a key`)}\n`,
    );
  if (!quiet) {
    out.line(`${printable(names[0]!)} for clients of the Tinker API: ${styled("cyan", server.url)}`);
    out.line(`  train on it: sqlenv train --engine ${server.url}`);
    out.line(`  checkpoints: ${printable(flags.checkpoints)}`);
    out.line("Ctrl-C stops it");
  }
  out.result({ url: server.url, port: server.port, pid: process.pid, model: names[0] });
  if (!stop.aborted) await once(stop, "abort");
  await server.close();
}
