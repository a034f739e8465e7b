// The visitor's own data: reads files, shows their tables, asks the model a question and shows how it got its answer,
// and trains the model on questions written about the data.
import { messageOf } from "../../../errors.ts";
import { quoteName } from "../../../gym/sql/lexer.ts";
import { cut } from "../../reports/format.ts";
import { $, button, fill, h } from "../../web-shared/dom.ts";
import { turnNode } from "./episode-view.ts";
import type { ModelPanel } from "./model-panel.ts";
import { count } from "./rate.ts";
import { drawSchema } from "./schema-tree.ts";
import { sqlNodes } from "./sql-editor.ts";
import type { Client } from "./worker-client.ts";
import type { OwnAnswer, OwnDatabase, OwnQuestions, ShownResult, WorkerEvent } from "./worker-protocol.ts";

export interface AskPanel {
  /** Whether a question is being answered. */
  readonly busy: boolean;
  /** Reads files that were dropped or chosen. */
  open(files: readonly File[]): void;
  onEvent(event: WorkerEvent): void;
  /** Shows that a training has begun or ended. */
  draw(): void;
}

const SHOWN_ANSWER = 2000; // characters
const SHOWN_NOTES = 12;

export function createAskPanel(client: Client, model: ModelPanel): AskPanel {
  const note = $("ask-note", HTMLElement);
  const askButton = $("ask", HTMLButtonElement);
  const stopButton = $("ask-stop", HTMLButtonElement);
  const writeButton = $("write", HTMLButtonElement);
  const teachButton = $("teach", HTMLButtonElement);
  const question = $("ask-question", HTMLInputElement);
  const turns = $("ask-turns", HTMLElement);
  const saying = $("ask-saying", HTMLElement);
  const answerBox = $("ask-answer", HTMLElement);
  let database: OwnDatabase | undefined;
  let questions: OwnQuestions | undefined;
  let busy = false;
  let suggested = "";

  const draw = () => {
    const isIdle = !busy && !model.training;
    askButton.disabled = !isIdle;
    stopButton.hidden = !(busy && asking);
    writeButton.disabled = !isIdle;
    teachButton.disabled = !isIdle;
    $("own-files", HTMLInputElement).disabled = !isIdle;
    $("own", HTMLElement).classList.toggle("open", database !== undefined);
    $("ask-form", HTMLFormElement).hidden = database === undefined;
    $("own-data", HTMLElement).hidden = database === undefined;
    $("own-training", HTMLElement).hidden = database === undefined;
    teachButton.hidden = questions === undefined;
    $("own-steps-label", HTMLElement).hidden = questions === undefined;
  };
  let asking = false;
  /** Runs an action, and shows its error beside it. */
  const run = async (work: () => Promise<void>) => {
    if (busy || model.training) return;
    busy = true;
    note.classList.remove("bad");
    draw();
    try {
      await work();
    } catch (error) {
      note.classList.toggle("bad", messageOf(error) !== "stopped");
      note.textContent = messageOf(error) === "stopped" ? "Stopped." : messageOf(error);
    } finally {
      busy = asking = false;
      saying.hidden = true;
      draw();
    }
  };

  const open = (files: readonly File[]) =>
    run(async () => {
      note.textContent = `Reading ${count(files.length, "file")}…`;
      database = await client.call("openOwn", files);
      questions = undefined;
      const { name, schema, notes } = database;
      note.textContent = `${cut(name, 100)}: ${count(schema.length, "table")}, in this tab only. Nothing was uploaded.`;
      drawSchema($("own-schema", HTMLElement), schema, {
        known: () => true,
        onTable: (table) => void browse(table, 0),
      });
      fill($("own-rows", HTMLElement));
      fill($("own-notes", HTMLElement), notesNode("Read differently than it was written", notes));
      fill($("written", HTMLElement));
      clear();
      if (["", suggested].includes(question.value)) question.value = suggestion(schema[0]!.name);
      suggested = suggestion(schema[0]!.name);
      draw();
      question.focus({ preventScroll: true });
    });

  const browse = async (table: string, offset: number) => {
    const columns = database!.schema.find(({ name }) => name === table)!.columns.map(({ name }) => name);
    const { rows, error } = await client.call("browseOwn", { table, offset });
    fill(
      $("own-rows", HTMLElement),
      h("p", { class: "note" }, `${quoteName(table)}: its first ${count(rows.length, "row")}`),
      error === null ? resultTable({ columns, rows, more: 0 }) : h("p", { class: "error" }, error),
    );
  };

  const clear = () => {
    fill(turns);
    turns.hidden = true;
    fill(answerBox);
  };
  const ask = () =>
    run(async () => {
      asking = true;
      clear();
      draw();
      note.textContent = "Loading the model…";
      await model.ready();
      const samples = Number($("ask-samples", HTMLSelectElement).value);
      note.textContent = "The model explores…";
      const told = await client.call("ask", { question: question.value, samples });
      note.textContent = "";
      drawAnswer(told);
    });

  const drawAnswer = ({ answer, sql, result, agreement, unsure, others }: OwnAnswer) => {
    const isSure = unsure === null && answer !== null;
    const text = answer === null ? "No answer" : cut(answer, SHOWN_ANSWER);
    const list = others.map(({ answer: other, samples }) =>
      h("li", {}, h("code", {}, other === null ? "no answer" : cut(other, 200)), ` (${count(samples, "sample")})`),
    );
    fill(
      answerBox,
      h(
        "div",
        { class: `verdict ${isSure ? "good" : "unsure"}` },
        h("p", { class: "result" }, h("code", {}, text)),
        unsure && h("p", { class: "unsure-text" }, `Unsure: ${unsure.text}.`),
        sql === null
          ? h("p", { class: "note" }, answer === null ? "" : "No single query gave it.")
          : h(
              "p",
              {},
              h("span", { class: "note" }, "by the query "),
              h("code", {}, ...sqlNodes(cut(sql, SHOWN_ANSWER))),
            ),
        result && resultTable(result),
        agreement !== null &&
          answer !== null &&
          unsure?.reason !== "samples_disagree" &&
          h("p", { class: "note" }, `${agreement}.`),
        list.length > 0 &&
          h("details", {}, h("summary", { class: "note" }, "what samples answered instead"), h("ul", {}, ...list)),
      ),
    );
  };

  const write = () =>
    run(async () => {
      note.textContent = "Writing questions, and checking each…";
      questions = await client.call("writeQuestions", null);
      const { train, eval: tests, examples, left_out } = questions;
      note.textContent = "";
      fill(
        $("written", HTMLElement),
        h(
          "p",
          {},
          `${count(train, "question")} to train on and ${tests} for tests. Some of them, to ask or to reword:`,
        ),
        h(
          "ul",
          { class: "examples" },
          ...examples.map((text) =>
            h(
              "li",
              {},
              button(
                text,
                () => {
                  question.value = text;
                  question.focus();
                },
                { class: "name" },
              ),
            ),
          ),
        ),
        notesNode("Not asked about", left_out),
      );
    });

  const teach = () =>
    run(async () => {
      const { watched } = questions!;
      const steps = Math.max(1, Math.floor(Number($("own-steps", HTMLInputElement).value)) || 40);
      busy = false; // the training has its own button to stop
      note.textContent = "The training is shown at the top of the page.";
      await model.teach({ steps, watched });
      note.textContent = "Taught. Ask again.";
    });

  $("ask-form", HTMLFormElement).addEventListener("submit", (event) => {
    event.preventDefault();
    void ask();
  });
  stopButton.addEventListener("click", () => void client.call("stop", null));
  writeButton.addEventListener("click", () => void write());
  teachButton.addEventListener("click", () => void teach());
  $("own-files", HTMLInputElement).addEventListener("change", (event) => {
    const input = event.target as HTMLInputElement;
    const files = [...(input.files ?? [])];
    if (files.length > 0) void open(files);
    input.value = ""; // the same files may be chosen again
  });
  draw();

  return {
    get busy() {
      return asking;
    },
    open: (files) => {
      $("ask-panel", HTMLElement).scrollIntoView({ block: "nearest" });
      void open(files);
    },
    onEvent(event) {
      if (event.event === "asked") clear();
      else if (event.event === "sampled") {
        saying.hidden = false;
        saying.textContent = event.text;
      } else if (event.event === "askStep") {
        saying.hidden = true;
        turns.hidden = false;
        turns.append(turnNode(event.step, { rewards: false }));
      } else if (event.event === "askSample") {
        note.textContent = `Do samples agree? ${event.done} of ${event.total} asked.`;
      }
    },
    draw,
  };
}

function suggestion(table: string): string {
  return `How many ${cut(table, 60)} are there?`;
}

function notesNode(title: string, notes: readonly string[]): HTMLElement | null {
  if (notes.length === 0) return null;
  const more = notes.length - SHOWN_NOTES;
  return h(
    "details",
    {},
    h("summary", { class: "note" }, `${title}: ${count(notes.length, "note")}`),
    h(
      "ul",
      {},
      ...notes.slice(0, SHOWN_NOTES).map((one) => h("li", {}, cut(one, 300))),
      more > 0 && h("li", {}, `and ${more} more`),
    ),
  );
}

function resultTable({ columns, rows, more }: ShownResult): HTMLElement {
  const body = rows.map((row) =>
    h("tr", {}, ...row.map((cell) => h("td", { class: cell === "NULL" ? "null" : "" }, cell))),
  );
  return h(
    "div",
    { class: "scroll", tabindex: 0 },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ...columns.map((name) => h("th", {}, cut(name, 200))))),
      h("tbody", {}, ...body),
    ),
    more !== 0 && h("p", { class: "note" }, more === null ? "and more rows" : `and ${count(more, "row")} more`),
  );
}
