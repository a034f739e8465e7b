// DOM elements built by code. Text from databases and models is inserted as text, never parsed as markup.
import type { Shape } from "../reports/behaviour-chart.ts";
import { visible } from "../reports/format.ts";

export type Child = Node | string | number | null | undefined | false | readonly Child[];

type Listeners = { [E in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[E]) => void };

export interface Props {
  readonly class?: string | undefined;
  readonly on?: Listeners;
  /** CSS custom properties, such as `--share`. */
  readonly vars?: Readonly<Record<string, string | number>>;
  readonly [attribute: string]: unknown;
}

/** An HTML element; attributes that are false, null or undefined are left out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  return build(document.createElement(tag), props, children);
}

/** An SVG element, with the same arguments as `h`. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[K] {
  return build(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);
}

/** A shape of a chart, as an SVG element. */
export function shapeNode({ tag, attributes, children = [] }: Shape): SVGElement {
  return svg(
    tag,
    attributes,
    children.map((child) => (typeof child === "string" ? child : shapeNode(child))),
  );
}

function build<E extends HTMLElement | SVGElement>(element: E, props: Props, children: Child): E {
  const { on = {}, vars = {}, ...attributes } = props;
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined && value !== false && value !== null)
      element.setAttribute(name, value === true ? "" : String(value));
  for (const [name, value] of Object.entries(vars)) element.style.setProperty(name, String(value));
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener as EventListener);
  append(element, children);
  return element;
}

/** Adds children; control characters in text are made visible. */
export function append(parent: Element, children: Child): void {
  if (children === null || children === undefined || children === false) return;
  if (Array.isArray(children)) for (const child of children as readonly Child[]) append(parent, child);
  else parent.append(children instanceof Node ? children : visible(String(children)));
}

/** Replaces an element's children. */
export function fill(parent: Element, ...children: readonly Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

const KEYS = new WeakMap<Element, string>();

/** Replaces an element's children only when the shown data has changed, so that a reader's selection survives. */
export function refill(parent: Element, shown: unknown, make: () => Child): void {
  const key = JSON.stringify(shown);
  if (KEYS.get(parent) === key) return;
  KEYS.set(parent, key);
  fill(parent, make());
}

export function link(href: string, text: Child, props: Props = {}): HTMLAnchorElement {
  return h("a", { href, ...props }, text);
}

export function button(text: Child, onClick: (event: MouseEvent) => void, props: Props = {}): HTMLButtonElement {
  return h("button", { type: "button", ...props, on: { click: onClick } }, text);
}

/** Replaces the options of a select. */
export function fillOptions(
  select: HTMLSelectElement,
  values: readonly { readonly value: string; readonly text: string }[],
  selected?: string,
): void {
  fill(
    select,
    values.map(({ value, text }) => h("option", { value, selected: value === selected }, text)),
  );
}

/** The page's element with that id; throws unless it is of the given class. */
export function $<T extends Element>(id: string, kind: abstract new () => T): T {
  const element = document.getElementById(id);
  if (element instanceof kind) return element;
  throw new Error(`the page has no ${kind.name} #${id}`);
}

/** Announces a text to screen readers. */
export function announce(text: string): void {
  let region = document.getElementById("announcer");
  if (!region) {
    region = h("div", { id: "announcer", class: "hidden", "aria-live": "polite" });
    document.body.append(region);
  }
  region.textContent = visible(text);
}
