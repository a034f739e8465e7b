// Names of data sets that need no import, in one list for help, suggestions and `data list`.

/** Data sets generated from a seed, and the selection of Spider. */
export const DATA_SET_NAMES = ["bundled", "practice", "starter", "spider10"] as const;
