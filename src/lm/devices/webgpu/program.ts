// A compute shader with names for its arguments: WGSL is generated around its body.

type Element = "f32" | "i32" | "u32";

/** What a kernel is made of; see `program`. */
export interface ProgramParts {
  readonly name: string;
  /** Buffers that it only reads, then those that it writes (and may read). */
  readonly reads?: Readonly<Record<string, Element>>;
  readonly writes: Readonly<Record<string, Element>>;
  readonly ints?: readonly string[];
  readonly floats?: readonly string[];
  /** Invocations per workgroup. @default 256 */
  readonly threads?: number;
  /** Declarations before the entry point: workgroup memory, functions. */
  readonly top?: string;
  readonly body: string;
}

/** A kernel: `code` is compiled once by a device. */
export interface Program {
  readonly name: string;
  readonly code: string;
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  /** Names of the words in its uniform buffer: each buffer's first element, then ints, then floats. */
  readonly ints: readonly string[];
  readonly floats: readonly string[];
}

/**
 * Generates a kernel's WGSL. A buffer `x` is read by `x(i)` and, if it is in `writes`, written by `set_x(i, value)`:
 * a binding may start before the buffer's first element, because its address must be a multiple of 256 bytes. `p` holds
 * the ints and floats, `group` the workgroup's coordinates, `groups` their number, `lane` the invocation in the group.
 */
export function program(parts: ProgramParts): Program {
  const { name, reads = {}, writes, ints = [], floats = [], threads = 256, top = "", body } = parts;
  const buffers = [
    ...Object.entries(reads).map(([buffer, type]) => ({ buffer, type, access: "read" })),
    ...Object.entries(writes).map(([buffer, type]) => ({ buffer, type, access: "read_write" })),
  ];
  const fields = [
    ...buffers.map(({ buffer }) => `${buffer}_at: u32`),
    ...ints.map((int) => `${int}: u32`),
    ...floats.map((float) => `${float}: f32`),
  ];
  const bindings = buffers.map(
    ({ buffer, type, access }, i) =>
      `@group(0) @binding(${i + 1}) var<storage, ${access}> ${buffer}_: array<${type}>;
fn ${buffer}(i: u32) -> ${type} { return ${buffer}_[p.${buffer}_at + i]; }` +
      (access === "read"
        ? ""
        : `\nfn set_${buffer}(i: u32, value: ${type}) { ${buffer}_[p.${buffer}_at + i] = value; }`),
  );
  const code = `struct Params { ${fields.join(", ")} }
@group(0) @binding(0) var<uniform> p: Params;
${bindings.join("\n")}
${top}
@compute @workgroup_size(${threads})
fn main(
  @builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {${body}}
`;
  return { name, code, reads: Object.keys(reads), writes: Object.keys(writes), ints, floats };
}

/** Body of a kernel that computes numbers one by one: `each` has the index `i`, below `p.count`. */
export function elementwise(parts: Omit<ProgramParts, "body" | "threads"> & { readonly each: string }): Program {
  const body = `
  for (var i = group.x * 256u + lane; i < p.count; i += groups.x * 256u) {${parts.each}}
`;
  return program({ ...parts, ints: ["count", ...(parts.ints ?? [])], body });
}

/**
 * WGSL functions that reduce one number from each of a workgroup's `threads` invocations, a square number. All
 * invocations must call them.
 */
export function reductions(threads: number, ...names: readonly ("sum" | "max")[]): string {
  const side = Math.sqrt(threads);
  const combine = { sum: (other: string) => `total + ${other}`, max: (other: string) => `max(total, ${other})` };
  const functions = names.map(
    (name) => `
fn all_${name}(lane: u32, value: f32) -> f32 {
  workgroupBarrier();
  parts[lane] = value;
  workgroupBarrier();
  var total = parts[lane % ${side}u];
  if (lane < ${side}u) {
    for (var i = 1u; i < ${side}u; i++) { total = ${combine[name](`parts[lane + ${side}u * i]`)}; }
    totals[lane] = total;
  }
  workgroupBarrier();
  total = totals[0];
  for (var i = 1u; i < ${side}u; i++) { total = ${combine[name]("totals[i]")}; }
  return total;
}`,
  );
  const memory = `var<workgroup> parts: array<f32, ${threads}>;\nvar<workgroup> totals: array<f32, ${side}>;`;
  return `${memory}${functions.join("")}`;
}
