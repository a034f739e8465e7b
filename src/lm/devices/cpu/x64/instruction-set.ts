// Instruction sets that machine code is made for, the widest last.
export const INSTRUCTION_SETS = ["avx2", "avx512"] as const;
export type InstructionSet = (typeof INSTRUCTION_SETS)[number];

export const INSTRUCTION_SET_NAMES: Readonly<Record<InstructionSet, string>> = { avx2: "AVX2", avx512: "AVX-512" };
