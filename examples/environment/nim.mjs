// An environment of your own: Nim. Two players take 1 to 3 stones in turn; who takes the last one wins. A model with random
// weights sees games that were played at random (SFT), which teach it the rules, then learns to win by reward (GRPO).
// README.md says how to run it.
import { loadModelAndTokenizer, random, resolveConfig, runTraining } from "sqlenv";
import { writeReport } from "sqlenv/apps/reports/node";
import { encodeTranscript, RunFolder, saveFreshModel, trainSft } from "sqlenv/rl/node";

const SYSTEM = "Take 1, 2 or 3.";

/** One game against an opponent that plays at random. @implements {import("sqlenv/rl").TextEnvironment} */
export class Nim {
  reset({ id, text }) {
    this.stones = Number.parseInt(id, 10);
    this.opponent = random("opponent", id);
    return { text };
  }

  step(reply) {
    const taken = Number(reply);
    const isLegal = [1, 2, 3].includes(taken) && taken <= this.stones;
    if (!isLegal) return { text: "", reward: 0, done: true };
    this.stones -= taken;
    if (this.stones === 0) return { text: "", reward: 1, done: true };
    this.stones -= this.opponent.int(1, Math.min(3, this.stones));
    return { text: `${this.stones}`, reward: 0, done: this.stones === 0 };
  }
}

/** Games from 4 to 19 stones against 40 opponents each: the id of a game is "stones opponent". */
const tasks = Array.from({ length: 640 }, (_, i) => {
  const stones = 4 + (i % 16);
  return { id: `${stones} ${Math.floor(i / 16)}`, text: `${stones}` };
});

/** A game in which both play at random, as a conversation. */
function randomGame(task, seed) {
  const player = random("player", task.id, seed);
  const game = new Nim();
  const messages = [{ role: "system", content: SYSTEM }];
  for (let { text, done } = game.reset(task); !done; ) {
    const content = `${player.int(1, Math.min(3, Number(text)))}`;
    messages.push({ role: "user", content: text }, { role: "assistant", content });
    ({ text, done } = game.step(content));
  }
  return { messages, weight: 1 };
}

const [run = "runs/nim", steps = "150"] = process.argv.slice(2);
const config = resolveConfig({
  model_name: `${run}/fresh`,
  max_steps: Number(steps),
  learning_rate: 1e-3,
  per_device_train_batch_size: 256, // 16 games × 16 episodes
  num_generations: 16,
  gradient_accumulation_steps: 1,
  scale_rewards: "none",
  step_budget: 10,
  max_new_tokens: 4,
  max_completion_length: 64,
  max_context_tokens: 512,
  eval_steps: 25,
  final_eval_episodes: null,
  logging_steps: 1,
});
const games = Array.from({ length: 16 }, (_, seed) => tasks.map((task) => randomGame(task, seed))).flat();
await saveFreshModel(config.model_name, games, { hidden_size: 64, num_hidden_layers: 2, intermediate_size: 128 });
const model = await loadModelAndTokenizer(config.model_name);
const transcripts = games.map((game) => encodeTranscript(game, model.turns));
await trainSft(model.engine, transcripts, { steps: 130, learning_rate: 3e-3 });

const options = { model, env: () => new Nim(), name: "nim", tasks, system: SYSTEM, config };
const result = await runTraining({ ...options, store: new RunFolder(run) });
await model.engine.saveModel(`${run}/model`);
await model.engine.close();
console.log((await writeReport(run)).headline, `in ${result.seconds.toFixed(0)} s`);
