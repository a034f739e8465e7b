// Response bodies with backpressure, so that a slow client holds no copy in memory.
import { createReadStream } from "node:fs";
import { Readable } from "node:stream";

const CHUNK = 65_536; // bytes

/** A file, read from disk while it is sent. */
export function streamFile(path: string): ReadableStream<Uint8Array> {
  return Readable.toWeb(createReadStream(path, { highWaterMark: CHUNK })) as ReadableStream<Uint8Array>;
}

/** A buffer shared by many responses. */
export function streamBytes(bytes: Uint8Array): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at < bytes.length) controller.enqueue(bytes.subarray(at, at + CHUNK));
      at += CHUNK;
      if (at >= bytes.length) controller.close();
    },
  });
}
