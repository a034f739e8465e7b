// The list of keys, shown by "?".
import { button, h } from "../../web-shared/dom.ts";

/** A dialog that lists the keys; `views` are the titles of the views, in order. */
export function keysDialog(views: readonly string[]): HTMLDialogElement {
  const keys: readonly (readonly [key: string, does: string])[] = [
    ...views.map((title, i) => [String(i + 1), title] as const),
    ["/", "in the list of episodes: search"],
    ["j, k", "next and previous episode or question, in the list's order and filter"],
    ["← →", "in a chart: move along the line"],
    ["Enter", "in a chart: the episodes of that step"],
    ["+ − 0", "in a chart: zoom in, zoom out, show everything"],
    ["?", "this list"],
  ];
  const dialog = h(
    "dialog",
    { class: "keys card", "aria-labelledby": "keys-title" },
    h("h2", { id: "keys-title" }, "Keys"),
    h(
      "dl",
      {},
      keys.map(([key, does]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, does)]),
    ),
    button("Close", () => dialog.close()),
  );
  return dialog;
}
