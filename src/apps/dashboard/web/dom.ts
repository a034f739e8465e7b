// Elements made by code. Whatever comes from a database or a model is text here, never markup.
import { visible } from "../../reports/words.ts";

export type Child = Node | string | number | null | undefined | false | readonly Child[];

type Listeners = { [E in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[E]) => void };

export interface Props {
  readonly class?: string | undefined;
  readonly on?: Listeners;
  /** Custom properties, such as `--share`. */
  readonly vars?: Readonly<Record<string, string | number>>;
  readonly [attribute: string]: unknown;
}

/** An element; attributes that are false or undefined are left out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  const { on = {}, vars = {}, class: name, ...attributes } = props;
  if (name) element.className = name;
  for (const [key, value] of Object.entries(attributes))
    if (value !== undefined && value !== false && value !== null)
      element.setAttribute(key, value === true ? "" : String(value));
  for (const [key, value] of Object.entries(vars)) element.style.setProperty(key, String(value));
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener as EventListener);
  append(element, children);
  return element;
}

/** Adds children; text is shown as it is, with control characters made visible. */
export function append(parent: Element, children: Child): void {
  if (children === null || children === undefined || children === false) return;
  if (Array.isArray(children)) for (const child of children as readonly Child[]) append(parent, child);
  else parent.append(children instanceof Node ? children : visible(String(children)));
}

/** Puts these in place of what an element holds. */
export function fill(parent: Element, ...children: readonly Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

const KEYS = new WeakMap<Element, string>();

/** Fills an element again only when what it shows has changed: a reader may be in the middle of it. */
export function refill(parent: Element, shown: unknown, make: () => Child): void {
  const key = JSON.stringify(shown);
  if (KEYS.get(parent) === key) return;
  KEYS.set(parent, key);
  fill(parent, make());
}

/** A link to an address inside the page. */
export function link(href: string, text: Child, props: Props = {}): HTMLAnchorElement {
  return h("a", { href, ...props }, text);
}

export function button(text: Child, onClick: (event: MouseEvent) => void, props: Props = {}): HTMLButtonElement {
  return h("button", { type: "button", ...props, on: { click: onClick } }, text);
}

/** Says something to those who listen rather than look. */
export function announce(text: string): void {
  let region = document.getElementById("announcer");
  if (!region) {
    region = h("div", { id: "announcer", class: "hidden", "aria-live": "polite" });
    document.body.append(region);
  }
  region.textContent = visible(text);
}
