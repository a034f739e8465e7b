// Failures of the engine, which are not failures of the model.
import type { Player } from "../gym/players/index.ts";

/**
 * A model whose engine fails has not answered wrong: what it threw is kept, to be thrown when the episodes have ended.
 * Without that, episodes would merely be left out, and success counted over the rest.
 */
export function watchFailures(player: Player): { readonly player: Player; throwFirst(): void } {
  const failures: unknown[] = [];
  return {
    player: {
      name: player.name,
      prompt_id: player.prompt_id,
      start(episode) {
        const turn = player.start(episode);
        return async (observation) => {
          try {
            return await turn(observation);
          } catch (error) {
            failures.push(error);
            throw error;
          }
        };
      },
    },
    throwFirst() {
      if (failures.length > 0) throw failures[0];
    },
  };
}
