// Finds and loads the three libraries that the CUDA device needs: the driver, NVRTC and cuBLAS. They come with the
// NVIDIA driver, the CUDA toolkit, or PyTorch's `nvidia-*` wheels; all these places are searched, newest version first.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { messageOf, SqlEnvError } from "../../../errors.ts";

/** A loaded library: turns C prototypes into callable functions. */
export interface Library {
  readonly path: string;
  func(prototype: string): (...args: unknown[]) => unknown;
}

/** The part of koffi that this module uses. */
export interface Ffi {
  load(path: string): Omit<Library, "path">;
  view(address: bigint | number, length: number): ArrayBuffer;
  address(value: unknown): bigint;
}

export type LibraryName = "driver" | "nvrtc" | "cublas";

const FILES: Record<LibraryName, readonly RegExp[]> = {
  driver: [/^libcuda\.so\.1$/, /^libcuda\.so$/],
  nvrtc: [/^libnvrtc\.so(\.\d+)+$/, /^libnvrtc\.so$/],
  cublas: [/^libcublas\.so(\.\d+)+$/, /^libcublas\.so$/],
};

const REMEDIES: Record<LibraryName, string> = {
  driver: "install the NVIDIA driver (nvidia-smi must work), or use --device cpu",
  nvrtc: "install the CUDA toolkit or `pip install nvidia-cuda-nvrtc`, or set CUDA_HOME, or use --device cpu",
  cublas: "install the CUDA toolkit or `pip install nvidia-cublas`, or set CUDA_HOME, or use --device cpu",
};

/** Loads the foreign function interface, an optional dependency that may be missing. */
export function loadFfi(): Ffi {
  try {
    return createRequire(import.meta.url)("koffi") as Ffi;
  } catch (cause) {
    throw new SqlEnvError("no_cuda", {
      what: "the package koffi, through which CUDA is called, is not installed",
      remedy: "npm install koffi, or use --device cpu",
      cause,
    });
  }
}

/** Loads a library from the first path that works. */
export function loadLibrary(ffi: Ffi, name: LibraryName): Library {
  const tried: string[] = [];
  for (const path of candidatesOf(name)) {
    try {
      const library = ffi.load(path);
      return { path, func: (prototype) => library.func(prototype) };
    } catch (error) {
      tried.push(`${path} (${messageOf(error).split("\n")[0]})`);
    }
  }
  throw new SqlEnvError("no_cuda", {
    what: `the ${name === "driver" ? "CUDA driver library" : name === "nvrtc" ? "NVRTC library" : "cuBLAS library"} was not found`,
    value: tried.join(", ") || "no file found",
    remedy: REMEDIES[name],
  });
}

/** Paths to try, in order; the last is the bare name, for the system's loader. */
export function candidatesOf(name: LibraryName): string[] {
  const found = foldersOf(name).flatMap((folder) => {
    const files = listOf(folder);
    return FILES[name]
      .flatMap((pattern) => files.filter((file) => pattern.test(file)).sort(newestFirst))
      .map((file) => join(folder, file));
  });
  const bare = name === "driver" ? ["libcuda.so.1"] : [];
  return [...new Set([...found, ...ldconfigOf(name), ...bare])];
}

function foldersOf(name: LibraryName): string[] {
  const { CUDA_HOME, CUDA_PATH, LD_LIBRARY_PATH = "", VIRTUAL_ENV, PYTHONPATH = "" } = process.env;
  const listed = LD_LIBRARY_PATH.split(delimiter).filter(Boolean);
  if (name === "driver")
    return [...listed, "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/wsl/lib", "/usr/local/nvidia/lib64"];
  const toolkits = [CUDA_HOME, CUDA_PATH, ...globbed("/usr/local", /^cuda(-[\d.]+)?$/), "/opt/cuda"].filter(
    Boolean,
  ) as string[];
  return [
    ...listed,
    ...toolkits.flatMap((home) => [join(home, "lib64"), join(home, "targets/x86_64-linux/lib")]),
    ...sitePackages([VIRTUAL_ENV, ...PYTHONPATH.split(delimiter)]).flatMap(wheelFolders),
  ];
}

/** Folders of Python packages: in the active environment, of the `python3` on the path, and the usual ones. */
function sitePackages(roots: readonly (string | undefined)[]): string[] {
  const homes = [...roots, ...pythonPrefixes(), join(homedir(), ".local"), "/usr/local", "/usr"].filter(
    Boolean,
  ) as string[];
  return homes.flatMap((home) => [
    ...(home.endsWith("-packages") ? [home] : []),
    ...globbed(join(home, "lib"), /^python3/).flatMap((lib) => [
      join(lib, "site-packages"),
      join(lib, "dist-packages"),
    ]),
  ]);
}

function pythonPrefixes(): string[] {
  const folders = (process.env.PATH ?? "").split(delimiter);
  return folders
    .filter((folder) => folder.endsWith("/bin") && existsSync(join(folder, "python3")))
    .map((folder) => join(folder, ".."));
}

/** Library folders inside the nvidia wheels: nvidia/cublas/lib, nvidia/cu13/lib, … */
function wheelFolders(site: string): string[] {
  return globbed(join(site, "nvidia"), /./).map((folder) => join(folder, "lib"));
}

function globbed(folder: string, pattern: RegExp): string[] {
  return listOf(folder)
    .filter((name) => pattern.test(name))
    .sort(newestFirst)
    .map((name) => join(folder, name));
}

function listOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function ldconfigOf(name: LibraryName): string[] {
  try {
    const text = execFileSync("/sbin/ldconfig", ["-p"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    return text.split("\n").flatMap((line) => {
      const [file, path] = [line.trim().split(" ")[0]!, line.split("=> ")[1]];
      return path && FILES[name].some((pattern) => pattern.test(file)) ? [path.trim()] : [];
    });
  } catch {
    return [];
  }
}

function newestFirst(a: string, b: string): number {
  return b.localeCompare(a, undefined, { numeric: true });
}
