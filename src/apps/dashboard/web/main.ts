// The dashboard's frame: the run's state and the current view, updated live during training.

import { announce, button, fill, h, link } from "../../web-shared/dom.ts";
import { wireThemeButton } from "../../web-shared/theme.ts";
import type { RunListing } from "../server/schemas.ts";
import { chartsView } from "./charts-view.ts";
import { comparedRuns } from "./compared-runs.ts";
import { embeddedSource } from "./embedded-source.ts";
import { episodeView, groupView } from "./episode-view.ts";
import { episodesView } from "./episodes-view.ts";
import { keysDialog } from "./keys-dialog.ts";
import { overview } from "./overview-view.ts";
import { questionsView } from "./questions-view.ts";
import { currentRoute, hrefOf } from "./route.ts";
import { RunModel } from "./run-model.ts";
import { runName } from "./run-names.ts";
import { type FeedState, ServerSource, type Source } from "./run-source.ts";
import { progressOf, STATE_LABELS } from "./run-text.ts";
import { runsView } from "./runs-view.ts";
import type { Context, View } from "./view-types.ts";

const VIEWS: Readonly<Record<string, (context: Context) => View>> = {
  overview,
  charts: chartsView,
  episodes: episodesView,
  episode: episodeView,
  group: groupView,
  questions: questionsView,
  runs: runsView,
};
const TABS = [
  ["overview", "Overview"],
  ["charts", "Charts"],
  ["episodes", "Episodes"],
  ["questions", "Before and after"],
  ["runs", "Runs and settings"],
] as const;
const TITLES: Readonly<Record<string, string>> = {
  ...Object.fromEntries(TABS),
  episode: "Episode",
  group: "Group",
};
const TAB_OF: Readonly<Record<string, string>> = { episode: "episodes", group: "episodes" };

class Page {
  readonly #source: Source;
  #runs: readonly RunListing[] = [];
  readonly #loaded = new Map<string, Promise<RunModel>>();
  #run: RunModel | null = null;
  #view: View | null = null;
  #unfollow: () => void = () => {};
  #feed: FeedState = "open";
  #warned = 0;
  #tab = "";
  readonly #status = h("div", { class: "status" });
  readonly #tabs = h("nav", { class: "tabs", "aria-label": "views" });
  readonly #chooser = h("span", { class: "chooser" });
  readonly #keys = keysDialog(TABS.map(([, title]) => title));
  readonly #main = h("main", { id: "main", tabindex: -1 });

  constructor(source: Source) {
    this.#source = source;
    fill(
      document.getElementById("app")!,
      h(
        "a",
        {
          class: "skip",
          href: "#main",
          on: {
            click: (event) => {
              event.preventDefault();
              this.#main.focus();
            },
          },
        },
        "Skip to the content",
      ),
      h(
        "header",
        { class: "top" },
        h("div", { class: "brand" }, h("b", {}, "SQLEnv"), this.#chooser),
        this.#tabs,
        button("?", () => this.#keys.showModal(), { class: "theme", title: "keys (?)", "aria-label": "keys" }),
        wireThemeButton(h("button", { type: "button", class: "theme" })),
      ),
      this.#status,
      this.#main,
      this.#keys,
    );
    window.addEventListener("hashchange", () => void this.show());
    window.addEventListener("comparedchange", () => this.#frame());
    window.addEventListener("renamed", () => this.#frame());
    document.addEventListener("keydown", (event) => this.#onKey(event));
    window.addEventListener("themechange", () => this.#view?.update?.());
  }

  /** Shows the view of the current URL. */
  async show(): Promise<void> {
    const route = currentRoute();
    try {
      if (!this.#runs.some(({ id }) => id === route.run)) this.#runs = await this.#source.runs();
      const listing = this.#runs.find(({ id }) => id === route.run) ?? this.#runs[0];
      if (!listing) throw new Error("there is no run yet");
      if (route.run !== listing.id) {
        const { view, rest, params } = route;
        history.replaceState(null, "", hrefOf(listing.id, view, rest, Object.fromEntries(params)));
      }
      if (route.view === "runs") this.#runs = await this.#source.runs();
      if (this.#run?.id !== listing.id) await this.#open(listing.id);
      if (currentRoute().view !== route.view) return; // navigated away meanwhile
      this.#view?.destroy?.();
      const make = VIEWS[route.view] ?? overview;
      const run = this.#run!;
      this.#view = make({ source: this.#source, route, run, runs: this.#runs, others: () => this.#others(run.id) });
      fill(this.#main, this.#view.element);
      this.#frame();
      window.scrollTo(0, 0);
      performance.mark("shown");
    } catch (error) {
      fill(this.#main, h("p", { class: "warning" }, `This could not be shown: ${(error as Error).message}`));
    }
  }

  async #open(id: string): Promise<void> {
    this.#unfollow();
    const { run, more } = await RunModel.load(this.#source, id);
    this.#run = run;
    this.#warned = run.summary.warnings.length;
    await more;
    this.#unfollow = this.#source.follow(id, run.summary.cursor, {
      onEvent: (event) => {
        run.apply(event);
        this.#frame();
        this.#view?.update?.();
      },
      onReset: () => {
        this.#run = null;
        this.#loaded.clear();
        void this.show();
      },
      onState: (state) => {
        this.#feed = state;
        this.#frame();
      },
    });
  }

  async #others(current: string): Promise<readonly RunModel[]> {
    const ids = comparedRuns(current).filter((id) => this.#runs.some((run) => run.id === id));
    return Promise.all(
      ids.map((id) => {
        const known = this.#loaded.get(id);
        if (known) return known;
        const loading = RunModel.load(this.#source, id).then(async ({ run, more }) => {
          await more;
          return run;
        });
        this.#loaded.set(id, loading);
        return loading;
      }),
    );
  }

  /** Updates the frame: run, view tabs and status. */
  #frame(): void {
    const run = this.#run;
    if (!run) return;
    const { summary } = run;
    const { view, rest } = currentRoute();
    const progress = summary.state === "training" ? `${summary.step}/${summary.total_steps ?? "?"} ` : "";
    const which = view === "episode" ? ` ${rest[0]}` : view === "group" ? ` of step ${rest[0]}` : "";
    document.title = `${progress}${TITLES[view] ?? TITLES.overview}${which} · ${runName(run.id)} · SQLEnv`;
    const listed = this.#runs.map(({ id }) => runName(id)).join() + run.id;
    if (this.#chooser.dataset.runs !== listed) {
      this.#chooser.dataset.runs = listed;
      const select = h(
        "select",
        { "aria-label": "run" },
        this.#runs.map(({ id }) => h("option", { value: id, selected: id === run.id }, runName(id))),
      );
      select.addEventListener("change", () => {
        location.hash = hrefOf(select.value, currentRoute().view);
      });
      fill(this.#chooser, this.#runs.length > 1 ? select : h("span", {}, runName(run.id)));
    }
    const active = TAB_OF[view] ?? (view in VIEWS ? view : "overview");
    const focused = [...this.#tabs.children].indexOf(document.activeElement as Element);
    fill(
      this.#tabs,
      TABS.map(([name, title], i) =>
        link(hrefOf(run.id, name), title, {
          "aria-current": name === active ? "page" : undefined,
          title: `key ${i + 1}`,
        }),
      ),
    );
    if (focused >= 0) (this.#tabs.children[focused] as HTMLElement).focus();
    if (this.#tab !== active) showTab(this.#tabs);
    this.#tab = active;
    const live = summary.state !== "finished" && summary.state !== "stopped";
    const connection =
      this.#feed === "lost" ? h("span", { class: "lost", role: "alert" }, "connection lost, trying again …") : null;
    const share = summary.total_steps ? summary.step / summary.total_steps : 0;
    const reward = run.last("metrics", "reward");
    fill(
      this.#status,
      h("span", { class: `state ${summary.state}` }, STATE_LABELS[summary.state]),
      live ? h("progress", { max: 1, value: share, "aria-label": "steps done" }) : null,
      progressOf(summary).map((fact) => h("span", {}, fact)),
      live && reward !== null ? h("span", {}, `reward ${reward.toFixed(3)}`) : null,
      summary.model_name ? h("span", { class: "dim" }, `model ${summary.model_name}`) : null,
      summary.warnings.length > 0
        ? link(
            hrefOf(run.id, "overview"),
            `⚠ ${summary.warnings.length} ${summary.warnings.length === 1 ? "warning" : "warnings"}`,
            { class: "bell" },
          )
        : null,
      connection,
    );
    if (summary.warnings.length > this.#warned) announce(`Warning: ${summary.warnings.at(-1)!.message}`);
    this.#warned = summary.warnings.length;
  }

  #onKey(event: KeyboardEvent): void {
    const target = event.target as Element;
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest(TYPED_INTO)) return;
    if (event.key === "?") {
      if (this.#keys.open) this.#keys.close();
      else this.#keys.showModal();
      return;
    }
    if (this.#keys.open) return;
    const tab = TABS[Number(event.key) - 1];
    if (tab && this.#run && !target.closest(".canvas")) location.hash = hrefOf(this.#run.id, tab[0]);
    else this.#view?.onKey?.(event);
  }
}

/** Controls that take keys themselves; a checkbox takes only the space bar. */
const TYPED_INTO = "input:not([type=checkbox]), select, textarea";

/** On a phone the tabs scroll sideways: the current one is brought into view. */
function showTab(tabs: HTMLElement): void {
  const current = tabs.querySelector<HTMLElement>("[aria-current]");
  if (current) tabs.scrollLeft = current.offsetLeft - tabs.offsetLeft - (tabs.clientWidth - current.clientWidth) / 2;
}

void new Page((await embeddedSource()) ?? new ServerSource()).show();
