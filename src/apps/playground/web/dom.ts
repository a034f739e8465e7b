// Elements from plain values. Text is text: nothing here parses markup, since what is shown comes from databases and models.
import { visible } from "../../reports/words.ts";

type Child = Node | string | number | null | false | undefined;
type Props = Readonly<Record<string, string | number | boolean | ((event: never) => void) | undefined>>;

/** An element with attributes, listeners (`onclick`) and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  set(element, props);
  add(element, children);
  return element;
}

/** The same for drawings. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set(element, props);
  add(element, children);
  return element;
}

function set(element: Element, props: Props): void {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value as unknown as EventListener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

function add(element: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : visible(String(child)));
  }
}

/** The page's element of that id, known to be of a kind. */
export function $<T extends Element>(id: string, kind: abstract new () => T): T {
  const element = document.getElementById(id);
  if (element instanceof kind) return element;
  throw new Error(`the page has no ${kind.name} #${id}`);
}

/** Puts these in place of what an element held. */
export function fill(element: Element, ...children: readonly Child[]): void {
  element.replaceChildren();
  add(element, children);
}

/** Chooses one of some values. */
export function options(
  select: HTMLSelectElement,
  values: readonly { value: string; text: string }[],
  chosen?: string,
) {
  fill(select, ...values.map(({ value, text }) => h("option", { value, selected: value === chosen }, text)));
}
