/** Two actions cost what a right answer earns: a model that is rarely right at first learns not to explore. */
export const stepCost = (_, { episodes }) => episodes.map((episode) => (episode ? -0.5 * episode.steps.length : null));
