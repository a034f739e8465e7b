// The functions that the host calls. Each takes its share of the work as its last arguments (part, parts).
export { attention } from "./attention";
export { attentionBackward, repack, rowDots } from "./attention-backward";
export {
  adamW, addTo, biasBackward, embed, embedBackward, logProb, logProbBackward, rmsNorm, rmsNormBackward, rmsNormWeightBackward,
  sample, sumSquares, swiGlu, swiGluBackward,
} from "./elementwise";
export { gemm, gemmRows, pack, packRows } from "./gemm";
export { useHost } from "./host-commands";
export { headNormBackward, headNormWeightBackward, moveBlock, rotate, unrotate } from "./rotary";
