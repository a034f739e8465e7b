// Agents through the package: in this process, and in others over HTTP, with a real server and engine.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadModelAndTokenizer, MemoryStore, resolveConfig, startServer, trainAgent } from "sqlenv";
import { Rollouts } from "sqlenv/apps/openenv";
import {
  type AgentClient,
  type EpisodeLine,
  type GRPOConfigInput,
  type MetricLine,
  saveFreshModel,
  type Task,
} from "sqlenv/rl/node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../helpers/server-place.ts";
import { smallDataSet } from "../helpers/small-data.ts";

const folder = mkdtempSync(join(tmpdir(), "sqlenv-agents-"));
const data = await smallDataSet();
const tasksOf = (name: string, length: number): Task[] =>
  Array.from({ length }, (_, i) => ({ id: `${name}${i}`, text: `Say ${i}.`, answer: `${i}` }));
const tasks = { train: tasksOf("t", 18), eval: tasksOf("e", 2) };

beforeAll(async () => {
  const messages = tasks.train.map(({ text }) => [
    { role: "system" as const, content: "Speak." },
    { role: "user" as const, content: text },
    { role: "assistant" as const, content: `${text} ${text}` },
  ]);
  const shape = { hidden_size: 16, num_hidden_layers: 1, intermediate_size: 32 };
  await saveFreshModel(
    join(folder, "fresh"),
    messages.map((one) => ({ messages: one, weight: 1 })),
    shape,
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const config = (given: GRPOConfigInput = {}) =>
  resolveConfig({
    ...{ max_new_tokens: 12, max_completion_length: 64, max_context_tokens: 500, step_budget: 3 },
    ...{ per_device_train_batch_size: 16, gradient_accumulation_steps: 1, num_generations: 4, max_steps: 2 },
    ...{ logging_steps: 1, eval_steps: 0, eval_episodes: 2, final_eval_episodes: 2, learning_rate: 1e-3 },
    ...given,
  });

type Ids = readonly (readonly number[])[];

/** Two turns; pays by the characters that the model wrote. */
async function talk(
  { text }: Task,
  { baseURL, fetch }: Pick<AgentClient, "baseURL" | "fetch">,
  headers: HeadersInit = {},
) {
  const messages: object[] = [{ role: "user", content: text }];
  const ids: (readonly number[])[] = [];
  let reward = 0;
  for (let turn = 0; turn < 2; turn++) {
    const body = JSON.stringify({ model: "policy", messages, return_token_ids: true });
    const response = await fetch(`${baseURL}/chat/completions`, { method: "POST", body, headers });
    const { choices, prompt_token_ids } = await response.json();
    ids.push([...prompt_token_ids, ...choices[0].token_ids]);
    reward += choices[0].message.content.length / 100;
    messages.push(choices[0].message, { role: "user", content: "And?" });
  }
  return { reward, ids };
}

async function train(how: Pick<Parameters<typeof trainAgent>[0], "run" | "place">, given?: GRPOConfigInput) {
  const model = await loadModelAndTokenizer(join(folder, "fresh"), { device: "cpu", threads: 1 });
  const store = new MemoryStore();
  try {
    const result = await trainAgent({ ...how, model, tasks, store, config: config(given) });
    return { result, logs: store.logs, episodes: store.logs["episodes.jsonl"] as EpisodeLine[] };
  } finally {
    await model.engine.close();
  }
}

/** Serves rollouts while a training runs; `play` is an agent that is told where its rollouts are. */
async function trainOverHttp(
  play: (url: string, rollout: string, task: Task) => Promise<object>,
  given?: GRPOConfigInput,
) {
  const rollouts = new Rollouts();
  const server = await startServer(data, { port: 0, threads: 1, rollouts });
  let [playing, most] = [0, 0];
  const work = async (): Promise<void> => {
    const response = await fetch(`${server.url}/rollouts/next`, { method: "POST" });
    if (response.status === 410) return;
    if (response.status === 200) {
      const { rollout_id, task } = await response.json();
      most = Math.max(most, ++playing);
      const report = JSON.stringify(await play(server.url, rollout_id, task));
      playing--;
      await fetch(`${server.url}/rollouts/${rollout_id}/reward`, { method: "POST", body: report });
    }
    return work();
  };
  const workers = Array.from({ length: 20 }, work);
  try {
    const trained = await train({ place: rollouts.place }, given);
    return { ...trained, most };
  } finally {
    await server.close();
    await Promise.all(workers);
  }
}

const sorted = (ids: Ids) => ids.map((one) => JSON.stringify(one)).sort();

test("a training over HTTP and one in process have the same token ids and losses, with 16 agents at once", async () => {
  const here: (readonly number[])[] = [];
  const local = await train({
    run: async (task, openai) => {
      const { reward, ids } = await talk(task, openai);
      here.push(...ids);
      return reward;
    },
  });
  const there: (readonly number[])[] = [];
  let count = 0;
  const remote = await trainOverHttp(async (url, rollout, task) => {
    const [baseURL, headers] =
      count++ % 2 ? [`${url}/rollouts/${rollout}/v1`, {}] : [`${url}/v1`, { "x-rollout-id": rollout }];
    const { reward, ids } = await talk(task, { baseURL, fetch }, headers);
    there.push(...ids);
    return { reward };
  });
  expect(remote.most).toBeGreaterThanOrEqual(16);
  expect(sorted(there)).toEqual(sorted(here));
  expect(remote.logs["metrics.jsonl"]).toEqual(local.logs["metrics.jsonl"]);
  expect(remote.episodes).toEqual(local.episodes);
  const steps = (local.logs["metrics.jsonl"] as MetricLine[]).filter((line) => "loss" in line);
  expect(steps).toHaveLength(2);
  expect(steps.every((line) => Math.abs(line.grad_norm!) > 0)).toBe(true);
});

test("over HTTP, an agent without a reward, with an odd one or none in time is not scored; late ones are told", async () => {
  const answers: Record<string, [number, string]> = {};
  const { episodes } = await trainOverHttp(
    async (url, rollout, task) => {
      const send = async (path: string, body: string) => {
        const response = await fetch(`${url}${path}`, { method: "POST", body });
        return [response.status, await response.text()] as [number, string];
      };
      const isInTime = await talk(task, { baseURL: `${url}/rollouts/${rollout}/v1`, fetch }).catch(() => null);
      if (!isInTime) return { error: "late, on a busy machine" };
      const reward = `/rollouts/${rollout}/reward`;
      if (task.id.startsWith("e")) return { reward: 1 };
      if (answers.odd === undefined) {
        answers.odd = [0, ""];
        answers.odd = await send(reward, '{"reward": NaN}');
        answers.twice = await send(reward, '{"reward": 1}');
      } else if (answers.error === undefined) {
        answers.error = [0, ""];
        answers.error = await send(reward, '{"error": "the page was gone"}');
      } else if (answers.late === undefined) {
        answers.late = [0, ""];
        const isOver = async () => (await send(`/rollouts/${rollout}/v1/chat/completions`, "{}"))[0] === 404;
        await until(isOver);
        answers.late = await send(reward, '{"reward": 1}');
      }
      return { reward: 1 };
    },
    { environment_timeout: 3, max_steps: 1 },
  );
  const errors = episodes.flatMap(({ error, question_id }) => (error === null ? [] : [[question_id, error]]));
  const [odd, error, slow] = [
    /reward of task (t\d+) is not .*NaN/,
    /agent failed on task (t\d+): the page/,
    /allows: 3 seconds/,
  ];
  for (const wanted of [odd, error]) expect(errors.filter(([, text]) => wanted.test(text!))).toHaveLength(1);
  expect(errors.filter(([, text]) => slow.test(text!)).length).toBeGreaterThan(0); // on a busy machine others are late too
  expect(answers.odd).toEqual([400, expect.stringMatching(odd)]);
  expect(answers.error![0]).toBe(200);
  for (const [status, text] of [answers.twice!, answers.late!]) {
    expect(status).toBe(410);
    expect(text).toMatch(/the rollout of task t\d+ is over/);
  }
  expect(episodes.every(({ reward, error }) => reward === (error === null ? 1 : null))).toBe(true);
});

test("without a rollout's id, or with one that is not known, a call is refused in OpenAI's shape", async () => {
  const rollouts = new Rollouts();
  const server = await startServer(data, { port: 0, threads: 1, rollouts });
  const body = JSON.stringify({ model: "policy", messages: [{ role: "user", content: "x" }] });
  const ask = async (headers: HeadersInit) => {
    const response = await fetch(`${server.url}/v1/chat/completions`, { method: "POST", body, headers });
    return [response.status, (await response.json()).error.message];
  };
  expect(await ask({})).toEqual([400, expect.stringContaining("x-rollout-id")]);
  expect(await ask({ "x-rollout-id": "none" })).toEqual([404, "there is no rollout none"]);
  const reward = await fetch(`${server.url}/rollouts/none/reward`, { method: "POST", body: "{}" });
  expect([reward.status, await reward.json()]).toEqual([404, { detail: "there is no rollout none" }]);
  const waits = fetch(`${server.url}/rollouts/next`, { method: "POST" });
  while (!(await (await fetch(`${server.url}/metrics`)).text()).includes('route="/rollouts/:id/reward"'));
  await server.close();
  expect((await waits).status).toBe(410);
});
