// All question forms.
import { COUNT_FORMS } from "./count.ts";
import { FOLLOW_FORMS } from "./follow.ts";
import type { Form } from "./form.ts";
import { GROUP_FORMS } from "./group.ts";
import { JOIN_FORMS } from "./join.ts";
import { LIST_FORMS } from "./list.ts";
import { MEASURE_FORMS } from "./measure.ts";
import { NEST_FORMS } from "./nest.ts";
import { PARENT_FORMS } from "./parent.ts";
import { RANK_FORMS } from "./rank.ts";
import { SET_FORMS } from "./set-operations.ts";

export type { Draft, Form } from "./form.ts";

export const FORMS: readonly Form[] = [
  ...COUNT_FORMS,
  ...LIST_FORMS,
  ...MEASURE_FORMS,
  ...RANK_FORMS,
  ...GROUP_FORMS,
  ...FOLLOW_FORMS,
  ...PARENT_FORMS,
  ...NEST_FORMS,
  ...SET_FORMS,
  ...JOIN_FORMS,
];
