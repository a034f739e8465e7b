// What the host calls. Every function takes its share as (part, parts) last.
export { attention } from "./attention";
export { attentionBackward, repack, rowDots } from "./attention-backward";
export {
  adamW, addTo, biasBackward, embed, embedBackward, logProb, logProbBackward, rmsNorm, rmsNormBackward, rmsNormWeightBackward,
  sample, sumSquares, swiGlu, swiGluBackward,
} from "./elementwise";
export { gemm, gemmRows, pack, packRows } from "./gemm";
export { useHost } from "./host";
export { headNormBackward, headNormWeightBackward, moveBlock, rotate, unrotate } from "./rotary";
