// Question forms for strange schemas, beside those of generated worlds: rows without a name, values that references
// lead to, and counts over pairs.
import type { Form } from "../worlds/forms/index.ts";

/** The forms in this file. */
export const OWN_FORMS: readonly Form[] = [];
