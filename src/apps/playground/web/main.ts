// The playground's page: draws the episode's state and turns a person's input into actions.
import { messageOf } from "../../../errors.ts";
import { signed } from "../../../gym/evaluation/transcript.ts";
import { quoteName } from "../../../gym/sql/lexer.ts";
import { $, button, fill, fillOptions, h } from "../../web-shared/dom.ts";
import { wireThemeButton } from "../../web-shared/theme.ts";
import { createAskPanel } from "./ask-panel.ts";
import { createDatabaseView } from "./database-view.ts";
import { isReplay, wireDrops } from "./drops.ts";
import { EpisodeState } from "./episode-state.ts";
import { goldNode, turnNode, verdictNode } from "./episode-view.ts";
import { createModelPanel } from "./model-panel.ts";
import { type LinkedAction, linkText, parseLink } from "./permalink.ts";
import { createPicker } from "./question-picker.ts";
import { createReplayBar } from "./replay-bar.ts";
import { replaySchema } from "./replay-schema.ts";
import { drawSchema, namesIn } from "./schema-tree.ts";
import { wireSharing } from "./sharing.ts";
import { createEditor } from "./sql-editor.ts";
import { Tally } from "./tally.ts";
import { startClient } from "./worker-client.ts";
import { PLAYERS, type PlayerChoice } from "./worker-protocol.ts";

const status = $("status", HTMLElement);
const sampledText = $("saying", HTMLElement);
const client = startClient((event) => {
  if (event.event.startsWith("ask") || (event.event === "sampled" && asking.busy)) asking.onEvent(event);
  else if (event.event === "sampled") {
    sampledText.hidden = !episode.busy;
    sampledText.textContent = event.text;
  } else model.onEvent(event);
});
const episode = new EpisodeState(client, () => draw());
const tally = new Tally();
const picker = createPicker(episode, run);
const model = createModelPanel(client, episode, run, () => {
  draw();
  asking.draw();
});
const asking = createAskPanel(client, model);
const replayBar = createReplayBar(client, episode, run, pause);
wireDrops((files) => (files.every(({ name }) => isReplay(name)) ? replayBar.open(files[0]!) : asking.open(files)));
const databaseView = createDatabaseView(client, run);
const editor = createEditor($("argument", HTMLTextAreaElement), $("colours", HTMLElement), $("offers", HTMLElement));

/** Runs an action and shows its error. */
function run(work: () => Promise<void>): void {
  status.classList.remove("bad");
  status.textContent = "";
  work().catch((error: unknown) => {
    status.classList.add("bad");
    status.textContent = messageOf(error);
    draw();
  });
}

// ---------------------------------------------------------------- drawing

function draw(): void {
  const { started, replay } = episode;
  if (!started) return;
  picker.draw();
  for (const id of ["replay-bar", "picker-replay"]) $(id, HTMLElement).hidden = replay === null;
  for (const id of ["picker", "peek-label"]) $(id, HTMLElement).hidden = replay !== null;
  const isOver = episode.done || episode.gold !== null;
  document.body.classList.toggle("episode-over", replay === null && isOver);
  $("act", HTMLFormElement).hidden = replay !== null || episode.done;
  $("after", HTMLElement).hidden = replay !== null || !isOver || episode.playing;
  databaseView.draw(replay === null && isOver ? started : null);
  sampledText.hidden = true;
  if (replay) drawReplay(replay);
  else drawEpisode();
  drawPlayer();
}

function drawEpisode(): void {
  const { question, budget, schema } = episode.started!;
  const { steps, done, gold } = episode;
  const split = question.seen ? "a database with training questions" : "a database without training questions";
  $("asked", HTMLElement).textContent = question.question_text;
  $("about", HTMLElement).textContent =
    `${question.question_id}: ${question.difficulty}, ${question.database_name}, ${split}`;
  drawMeter(
    steps.length,
    budget,
    steps.reduce((sum, { observation }) => sum + (observation.reward ?? 0), 0),
  );
  drawTurns(steps.map((step) => turnNode(step)));
  fill(
    $("verdict", HTMLElement),
    episode.stuck &&
      h("p", { class: "verdict none" }, "The player cannot continue: the conversation fills its context window."),
    done ? verdictNode(episode.record, gold) : gold && h("div", { class: "verdict none" }, goldNode(gold)),
  );
  $("step", HTMLButtonElement).disabled = done || episode.busy || episode.playing;
  $("give-up", HTMLButtonElement).hidden = gold !== null;

  const described = new Set(
    steps.flatMap(({ action, observation }) =>
      action.action_type === "DESCRIBE" && observation.result !== "" ? [observation.result.split(":")[0]!] : [],
    ),
  );
  const all = $("peek", HTMLInputElement).checked || done;
  const known = (name: string) => all || described.has(name) || described.has(JSON.stringify(name));
  drawSchema($("schema", HTMLElement), schema, {
    known,
    onTable: (name) => (chosenType() === "QUERY" ? editor.insert(quoteName(name)) : useTable(name)),
    onColumn: (name) => {
      choose(chosenType() === "ANSWER" ? "ANSWER" : "QUERY");
      editor.insert(name);
    },
  });
  editor.names = namesIn(schema, known);
  drawTableButtons();
  const duel = tally.duel(questionKey());
  fill($("tally", HTMLElement), duel && h("b", {}, `${duel} `), tally.text);
  $("model-turn", HTMLButtonElement).disabled = model.training || episode.busy || (done && episode.by === "model");
  history.replaceState(null, "", `#${linkText(episode.link)}`);
}

function drawReplay({ list, index, at }: NonNullable<typeof episode.replay>): void {
  const { record } = list[index]!;
  $("asked", HTMLElement).textContent = record.question;
  $("about", HTMLElement).textContent = [record.question_id, record.difficulty, record.database_name, record.player]
    .filter(Boolean)
    .join(", ");
  const shown = record.steps.slice(0, at);
  const budget = shown.length > 0 ? shown.length + shown.at(-1)!.observation.budget_remaining : record.steps.length;
  drawMeter(
    at,
    Math.max(budget, record.steps.length),
    shown.reduce((sum, { observation }) => sum + (observation.reward ?? 0), 0),
  );
  drawTurns(shown.map((step) => turnNode(step)));
  fill($("verdict", HTMLElement), at === record.steps.length ? verdictNode(record, null) : null);
  const schema = replaySchema(record, at);
  drawSchema($("schema", HTMLElement), schema, {
    known: (name) => schema.some((table) => table.name === name && table.columns.length > 0),
  });
  replayBar.draw(episode.replay!);
}

/** DESCRIBE and SAMPLE take a table: one button for each. */
function drawTableButtons(): void {
  const type = chosenType();
  const needsTable = type === "DESCRIBE" || type === "SAMPLE";
  const names = needsTable ? episode.started!.schema.map(({ name }) => name) : [];
  const isBlocked = episode.done || episode.busy || episode.playing;
  const buttons = names.map((name) => button(quoteName(name), () => step(name), { disabled: isBlocked }));
  fill($("table-buttons", HTMLElement), ...buttons);
}

function drawMeter(taken: number, budget: number, sum: number): void {
  $("budget-text", HTMLElement).textContent = `${taken} of ${budget} steps`;
  const bar = $("budget", HTMLProgressElement);
  [bar.max, bar.value] = [budget, taken];
  $("sum", HTMLElement).textContent = taken === 0 ? "" : `reward ${signed(Math.round(sum * 1e9) / 1e9)}`;
}

function drawTurns(turns: readonly HTMLElement[]): void {
  const list = $("turns", HTMLElement);
  list.hidden = turns.length === 0;
  fill(list, ...turns);
}

function drawPlayer(): void {
  const { name } = player();
  const playButton = $("play", HTMLButtonElement);
  playButton.textContent = episode.playing ? "Pause" : "Play";
  const waits = name === "model" && model.training;
  playButton.disabled = waits || (episode.busy && !episode.playing);
  $("move", HTMLButtonElement).disabled =
    waits || episode.busy || episode.playing || (episode.done && episode.by === name);
  $("decoding-label", HTMLElement).hidden = name !== "model";
  const startsOver = episode.steps.length > 0 && episode.by !== name ? " Starts the episode over." : "";
  $("player-note", HTMLElement).textContent = waits
    ? "The model is being trained; the other players are free."
    : `${PLAYER_NOTES[name]}${startsOver}`;
}

const PLAYER_NOTES: Readonly<Record<PlayerChoice["name"], string>> = {
  random: "Acts at random: the baseline.",
  looker: "Describes and samples one table, then answers a value from it.",
  keyword: "Matches the question's words with tables, columns and values.",
  oracle: "Knows the gold query: the upper bound.",
  model: "Reads what you read, and writes its own actions.",
};

// ---------------------------------------------------------------- acting

const types = [...document.querySelectorAll<HTMLInputElement>("input[name=type]")];

function chosenType(): LinkedAction["action_type"] {
  return types.find(({ checked }) => checked)!.value as LinkedAction["action_type"];
}

interface ActionWords {
  readonly hint: string;
  readonly placeholder: string;
  readonly button: string;
}

const WORDS: Readonly<Record<LinkedAction["action_type"], ActionWords>> = {
  DESCRIBE: { hint: "Shows a table's columns. Choose a table:", placeholder: "or type its name", button: "Describe" },
  SAMPLE: { hint: "Shows a table's first rows. Choose a table:", placeholder: "or type its name", button: "Sample" },
  QUERY: { hint: "Runs one SELECT on the database.", placeholder: "SELECT … FROM …", button: "Run query" },
  ANSWER: {
    hint: "Ends the episode. One value; a list a, b, c; or one row per line with cells separated by |.",
    placeholder: "your answer",
    button: "Answer",
  },
};

function choose(type: LinkedAction["action_type"]): void {
  for (const input of types) input.checked = input.value === type;
  editor.isSql = type === "QUERY";
  const { hint, placeholder, button: label } = WORDS[type];
  $("hint", HTMLElement).textContent = hint;
  $("step", HTMLButtonElement).textContent = label;
  const area = $("argument", HTMLTextAreaElement);
  area.placeholder = placeholder;
  area.rows = type === "QUERY" ? 3 : 1;
  if (episode.started) drawTableButtons();
}

function useTable(name: string): void {
  editor.text = name;
  editor.focus();
}

/** Takes the chosen action. */
function step(argument = editor.text): void {
  if (episode.done || episode.busy || argument.trim() === "") return;
  const action_type = chosenType();
  run(async () => {
    await episode.act({ action_type, argument });
    if (episode.steps.at(-1)?.observation.error === null && action_type !== "QUERY") editor.text = "";
    countAttempt();
    $("turns", HTMLElement).lastElementChild?.scrollIntoView({ block: "nearest" });
  });
}

function questionKey(): string {
  const { data, started } = episode;
  return `${data.kind}:${data.seed}:${started!.question.question_id}`;
}

/** Adds a finished episode to the score; one restored from a link or played after seeing the answer is not. */
function countAttempt(): void {
  if (!episode.done || (episode.by === "person" && episode.peeked)) return;
  tally.count(episode.by, questionKey(), episode.record.correctness === 1);
  draw();
}

function pause(): number {
  return Number($("pace", HTMLSelectElement).value);
}

function player(): PlayerChoice {
  const name = $("player", HTMLSelectElement).value as PlayerChoice["name"];
  return {
    name,
    seed: episode.seed,
    temperature: name === "model" ? Number($("decoding", HTMLSelectElement).value) : 0,
  };
}

function playOneStep(): void {
  if (episode.busy || episode.playing) return;
  run(async () => {
    if (episode.replay) episode.show(null);
    if (player().name === "model") await model.ready();
    await episode.playStep(player());
    countAttempt();
  });
}

function play(): void {
  if (episode.playing) {
    episode.playing = false;
    draw();
    return;
  }
  run(async () => {
    if (episode.replay) episode.show(null);
    if (player().name === "model") await model.ready();
    await episode.play(player(), pause);
    countAttempt();
  });
}

function startOver(): void {
  run(() => episode.begin({ question_id: episode.started!.question.question_id }));
}

for (const input of types) input.addEventListener("change", () => choose(chosenType()));
$("act", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault();
  step();
});
$("argument", HTMLTextAreaElement).addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  step();
});
for (const id of ["again", "again-after"]) $(id, HTMLButtonElement).addEventListener("click", startOver);
$("next-question", HTMLButtonElement).addEventListener("click", picker.next);
$("model-turn", HTMLButtonElement).addEventListener("click", () => {
  $("player", HTMLSelectElement).value = "model";
  play();
});
$("give-up", HTMLButtonElement).addEventListener("click", () => run(() => episode.reveal()));
$("peek", HTMLInputElement).addEventListener("change", draw);
$("move", HTMLButtonElement).addEventListener("click", playOneStep);
$("play", HTMLButtonElement).addEventListener("click", play);
$("player", HTMLSelectElement).addEventListener("change", drawPlayer);
fillOptions(
  $("player", HTMLSelectElement),
  PLAYERS.map((name) => ({ value: name, text: name })),
  "keyword",
);

wireSharing(episode, run);

// ---------------------------------------------------------------- keys and start

document.addEventListener("keydown", (event) => {
  const target = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, select, textarea")) return;
  const chosen = types.find(({ value }) => value[0]!.toLowerCase() === event.key);
  if (chosen) {
    choose(chosen.value as LinkedAction["action_type"]);
    editor.focus();
    event.preventDefault();
  } else if (event.key === "n") playOneStep();
  else if (event.key === "p") episode.replay ? replayBar.toggle() : play();
  else if (event.key === "x") picker.next();
  else if (event.key === "ArrowLeft") replayBar.move(-1);
  else if (event.key === "ArrowRight") replayBar.move(1);
});
/** Restores the address's permalink; `data-ready` marks the end, for tests. */
async function follow(): Promise<void> {
  delete document.body.dataset.ready;
  try {
    await episode.follow(parseLink(location.hash));
  } finally {
    document.body.dataset.ready = "";
  }
}

window.addEventListener("hashchange", () => run(follow));
wireThemeButton($("theme", HTMLButtonElement));
choose("DESCRIBE");
run(async () => {
  status.textContent = "Starting SQLite…";
  const { player: named } = parseLink(location.hash);
  if (PLAYERS.some((name) => name === named)) $("player", HTMLSelectElement).value = named!;
  await follow();
  status.textContent = "";
});
