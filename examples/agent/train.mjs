// Trains the model that agent.mjs calls. The bundled starter has no tools: first it is shown episodes as tool calls (SFT),
// most of which guess; then it learns by the agent's reward alone (GRPO). README.md says how to run it.
import {
  createSqlEnvironment,
  createTurnEncoder,
  demonstrations,
  loadModelAndTokenizer,
  loadSqlite,
  mixtureSchema,
  parseAction,
  practiceSet,
  RunFolder,
  resolveConfig,
  STARTER_FORMS,
  trainAgent,
  writeReport,
} from "sqlenv";
import { encodeTranscript, presetNamed, trainSft } from "sqlenv/rl/node";
import { SYSTEM, sqlAgent, TOOLS } from "./agent.mjs";

/** A chat template with tools: their names in the system's turn, calls in <tool_call>. */
const TEMPLATE = `{%- for message in messages %}
{{- '<|im_start|>' + ('user' if message.role == 'tool' else message.role) + '\\n' + message.content }}
{%- if loop.first and tools %}{{ '\\nCall by <tool_call>:' }}{% for tool in tools %}{{ ' ' + tool.function.name }}{% endfor %}{% endif %}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}`;

const tools = Object.keys(TOOLS).map((name) => ({ type: "function", function: { name } }));

/** An episode in text as one with tool calls. */
function withCalls(transcript) {
  const [, ...turns] = transcript.messages;
  const messages = turns.map(({ role, content }, i) => {
    if (role !== "assistant") return { role: i === 0 ? "user" : "tool", content };
    const { action_type, argument } = parseAction(content).action;
    const name = action_type.toLowerCase();
    const call = JSON.stringify({ name, arguments: { [TOOLS[name]]: argument } })
      .replaceAll('":', '": ')
      .replace('","', '", "');
    return { role, content: `<tool_call>${call}</tool_call>` };
  });
  return { ...transcript, messages: [{ role: "system", content: SYSTEM }, ...messages], tools };
}

async function* encoded(turns) {
  const players = [
    { player: "teacher", share: 50 },
    { player: "guesser", share: 35 },
    { player: "flailer", share: 15 },
  ];
  const mixture = mixtureSchema.parse({ seed: "agent", players, questions_per_world: 8, forms: "starter" });
  for await (const transcript of demonstrations(mixture)) yield encodeTranscript(withCalls(transcript), turns);
}

const [run = "runs/agent", steps = "40", sft = "60"] = process.argv.slice(2);
await loadSqlite();
const starter = await loadModelAndTokenizer("starter", { device: "cpu" });
const model = { ...starter, chatTemplate: TEMPLATE, turns: createTurnEncoder(starter.tokenizer, TEMPLATE) };
const onStep = ({ step, loss }) => step % 10 === 0 && console.log(`SFT step ${step}, loss ${loss.toFixed(3)}`);
await trainSft(model.engine, encoded(model.turns), {
  steps: Number(sft),
  learning_rate: 2e-3,
  batch_tokens: 4096,
  onStep,
});

const data = practiceSet({ seed: 42, forms: STARTER_FORMS });
const config = resolveConfig({
  ...presetNamed("starter"),
  model_name: "starter",
  reward_weights: null,
  max_steps: Number(steps),
  max_new_tokens: 128,
  max_completion_length: 640,
  max_context_tokens: 1536,
});
const sql = createSqlEnvironment({ data, config });
const tasks = { train: sql.tasks("train"), eval: sql.tasks("eval") };
const callbacks = [
  {
    on_step_end: ({ state }, { timing, episodes }) =>
      console.log(
        `step ${state.step}, solved ${episodes.filter(({ correctness }) => correctness === 1).length} of ${episodes.length}, ${timing.step_time.toFixed(1)} s`,
      ),
  },
];
const result = await trainAgent({
  model,
  tasks,
  run: sqlAgent(data),
  name: "sql-agent",
  config,
  store: new RunFolder(run),
  callbacks,
});
await model.engine.saveModel(`${run}/model`);
await model.engine.close();
console.log((await writeReport(run)).headline, `in ${result.seconds.toFixed(0)} s`);
