// A training in twenty lines: the bundled model, or any other, learns the bundled questions. README.md says how to run it.
import {
  buildTrainer,
  bundledDataSet,
  LiveVisualizationCallback,
  loadModelAndTokenizer,
  loadQuestionPrompts,
  loadSqlite,
  presetNamed,
  resolveConfig,
  runTrainingWithMetrics,
  sampleRandomBaseline,
} from "sqlenv";

const [name = "starter", steps = "20"] = process.argv.slice(2);
await loadSqlite();
const config = resolveConfig({ ...presetNamed("starter"), max_steps: Number(steps) });
const data = bundledDataSet();
console.log(`${loadQuestionPrompts(data, config).length} questions to train on`);

const baseline = await sampleRandomBaseline(data, config); // 8 episodes of a player that acts at random
console.log(`right at random: ${baseline.filter(({ correctness }) => correctness === 1).length} of ${baseline.length}`);

const model = await loadModelAndTokenizer(name);
const live = new LiveVisualizationCallback({ reward_every: 1, transcript_every: 10 });
const { rewards } = await runTrainingWithMetrics(buildTrainer({ model, data, config, callbacks: [live] }));
console.log(`reward ${rewards[0]?.reward.toFixed(3)} at the start, ${rewards.at(-1)?.reward.toFixed(3)} at the end`);
await model.engine.saveModel("trained"); // a Hugging Face folder
await model.engine.close();
