// Episodes of an agent. Control is inverted here: the agent calls the model whenever it wants. A call waits until the
// rollout asks for the next text; the reply that the rollout samples then answers the call.
import { messageOf } from "../../errors.ts";
import type { Message } from "../../gym/players/index.ts";
import type { Chat, ChatMessage, Completion } from "../../lm/chat/index.ts";
import { LlmError } from "../../lm/chat/openai/error.ts";
import type {
  EpisodePolicy,
  EpisodePolicyOptions,
  Task,
  TextEnvironment,
  TextReset,
  TextStep,
} from "../environment.ts";
import { type AgentClient, type AgentReward, lastStep, type RunAgent } from "./agent.ts";
import { agentFetch, type ModelCall } from "./openai-calls.ts";
import { type Context, RecordedChat } from "./recorded-chat.ts";

/** A place where one agent can run at a time. */
export interface AgentPlace {
  readonly run: RunAgent;
  /** Called when the rollout is over. */
  free?(): void;
}

export interface AgentEpisodeOptions {
  readonly chat: Chat;
  /** Waits for a place. */
  readonly place: (signal: AbortSignal) => AgentPlace | Promise<AgentPlace>;
}

/** The name of the model in an agent's requests; any other is served too. */
export const MODEL_NAME = "policy";

/** Plays one episode after another. */
export class AgentEpisode implements TextEnvironment {
  readonly #options: AgentEpisodeOptions;
  #rollout: Rollout | undefined;

  constructor(options: AgentEpisodeOptions) {
    this.#options = options;
  }

  policy(options: EpisodePolicyOptions): EpisodePolicy {
    this.#rollout?.end();
    this.#rollout = new Rollout(this.#options, options);
    return this.#rollout;
  }

  acquire(): Promise<void> {
    return this.#current.acquire();
  }

  reset(task: Task): Promise<TextReset> {
    return this.#current.start(task);
  }

  step(): Promise<TextStep> {
    return this.#current.continue();
  }

  close(): void {
    this.#rollout?.end();
  }

  get #current(): Rollout {
    if (!this.#rollout) throw new Error("an agent's episode begins with policy()");
    return this.#rollout;
  }
}

/** What the agent returned or threw. */
type Outcome = { readonly reward: AgentReward } | { readonly error: unknown };

/** A call that waits, and how to answer it. */
interface Waiting extends ModelCall {
  resolve(completion: Completion): void;
  reject(error: unknown): void;
}

/** One episode: the agent, its calls, and the model's replies. */
class Rollout implements EpisodePolicy {
  readonly messages: Message[] = [];
  written = 0;
  truncated = false;
  readonly #chat: Chat;
  readonly #place: AgentEpisodeOptions["place"];
  readonly #options: EpisodePolicyOptions;
  readonly #recorded: RecordedChat;
  readonly #over = new AbortController();
  readonly #calls: Waiting[] = [];
  #wake = () => {};
  #placed: AgentPlace | undefined;
  #task: Task = { id: "", text: "" };
  #outcome: Outcome | undefined;
  /** The call that is to be sampled, and its context. */
  #current: { readonly call: Waiting; readonly context: Context } | undefined;
  #turns = 0;
  /** Whether a call got an empty reply because the limits are used up; the next one is refused. */
  #isUsedUp = false;

  constructor({ chat, place }: AgentEpisodeOptions, options: EpisodePolicyOptions) {
    this.#chat = chat;
    this.#place = place;
    this.#options = options;
    this.#recorded = new RecordedChat(chat);
  }

  get segments(): EpisodePolicy["segments"] {
    return this.#recorded.segments;
  }

  /** Waits for a place. */
  async acquire(): Promise<void> {
    const placed = await this.#place(this.#over.signal);
    if (this.#over.signal.aborted) placed.free?.();
    else this.#placed = placed;
  }

  /** Starts the agent; resolves with its first call. */
  async start(task: Task): Promise<TextReset> {
    this.#task = task;
    const client: AgentClient = {
      baseURL: "http://rollout.invalid/v1",
      apiKey: "none",
      model: MODEL_NAME,
      fetch: agentFetch({ chat: this.#chat, model: MODEL_NAME, complete: (call) => this.#complete(call) }),
      signal: this.#over.signal,
    };
    Promise.resolve()
      .then(() => this.#placed!.run(task, client))
      .then(
        (reward) => this.#ended({ reward }),
        (error: unknown) => this.#ended({ error }),
      );
    const text = await this.#nextText();
    if (text !== null) return { text };
    this.#reward(); // throws what the agent threw
    throw new Error(`the agent ended task ${task.id} without calling the model`);
  }

  /** Resolves with the next call, or with the reward. */
  async continue(): Promise<TextStep> {
    const last = this.#current!.context;
    const metrics = {
      new_segments: last.segment === null && this.segments.length > 1 ? 1 : 0,
      altered_history: last.isAltered ? 1 : 0,
    };
    const text = await this.#nextText();
    if (text !== null) return { text, reward: 0, done: false, metrics };
    const step = lastStep(this.#task, this.#reward());
    return { ...step, metrics: { ...metrics, ...step.metrics } };
  }

  /** Samples the reply to the current call and answers it. */
  async reply(): Promise<{ readonly text: string }> {
    const { call, context } = this.#current!;
    const { config, key, seed, greedy } = this.#options;
    const { max_new_tokens, max_completion_length, max_context_tokens } = config;
    const window = Math.min(max_context_tokens, this.#chat.window);
    const wanted = Math.min(max_new_tokens, call.request.maxTokens ?? max_new_tokens);
    const room = Math.min(wanted, max_completion_length - this.written, window - context.ids.length);
    this.messages.push(...context.added.map(shown));
    if (room <= 0) {
      this.#answerWithNothing(call, context.ids);
      return { text: "" };
    }
    call.onPrompt?.(context.ids);
    try {
      const { tools, callsOne, stop } = call.request;
      const completion = await this.#chat.complete(context.ids, {
        max_new_tokens: room,
        temperature: greedy ? 0 : config.temperature,
        top_k: config.top_k,
        top_p: config.top_p,
        min_p: config.min_p ?? 0,
        key: [...key, seed, this.#turns],
        stop,
        calls: tools ? (callsOne ? "one" : "many") : "text",
        signal: AbortSignal.any([call.signal, this.#over.signal]),
        ...(call.onPart && { onPart: call.onPart }),
      });
      if (completion.finish_reason === "aborted") throw refusal(400, "the call was aborted", "aborted");
      this.#recorded.add(context, completion);
      this.written += completion.tokens.length;
      this.truncated = completion.finish_reason === "length";
      const text = this.#chat.tokenizer.decode(completion.tokens, { skipSpecial: true });
      this.messages.push({ role: "assistant", content: text });
      call.resolve(completion);
      return { text };
    } catch (error) {
      call.reject(error);
      if (error instanceof LlmError) return { text: "" }; // the agent gets the refusal and decides what to do
      throw error;
    }
  }

  /** Ends the rollout: calls that wait or come later are refused. */
  end(): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort(new Error("the rollout is over"));
    this.#placed?.free?.();
    for (const call of this.#calls.splice(0)) call.reject(this.#isOver());
  }

  /** An agent's call: resolves when the rollout has sampled the reply. */
  #complete(call: ModelCall): Promise<Completion> {
    return new Promise((resolve, reject) => {
      if (this.#over.signal.aborted || this.#outcome) return reject(this.#isOver());
      this.#calls.push({ ...call, resolve, reject });
      this.#wake();
    });
  }

  #ended(outcome: Outcome): void {
    this.#outcome = outcome;
    this.#wake();
  }

  /** Waits for a call that can be answered; null if the agent has ended. */
  async #nextText(): Promise<string | null> {
    while (!this.#outcome) {
      const call = this.#calls.shift();
      if (!call) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        continue;
      }
      const context = this.#contextOf(call);
      if (!context) continue;
      this.#current = { call, context };
      this.#turns++;
      return context.added
        .filter(({ role }) => role === "user" || role === "tool")
        .map(({ content }) => content)
        .join("\n\n");
    }
    for (const call of this.#calls.splice(0)) call.reject(this.#isOver());
    return null;
  }

  /** The context of a call; null if it is answered or refused without the model. */
  #contextOf(call: Waiting): Context | null {
    try {
      call.signal.throwIfAborted();
      if (this.#isUsedUp)
        throw refusal(400, `the rollout of task ${this.#task.id} has used up its turns or tokens`, "rollout_over");
      const { messages, tools } = call.request;
      const fits = this.#turns < this.#options.turns && !this.#chat.exceeds(messages);
      if (fits) return this.#recorded.contextOf(messages, tools);
      this.#answerWithNothing(call, []);
    } catch (error) {
      call.reject(error);
    }
    return null;
  }

  /** Tells the agent, once, that there is no room for a reply. */
  #answerWithNothing(call: Waiting, prompt: readonly number[]): void {
    this.truncated = true;
    this.#isUsedUp = true;
    call.onPrompt?.(prompt);
    call.resolve({
      prompt,
      tokens: [],
      logprobs: [],
      content: "",
      calls: [],
      finish_reason: "length",
      cached_tokens: 0,
    });
  }

  #reward(): AgentReward {
    const outcome = this.#outcome!;
    if ("reward" in outcome) return outcome.reward;
    throw new Error(`the agent failed on task ${this.#task.id}: ${messageOf(outcome.error)}`, { cause: outcome.error });
  }

  #isOver(): LlmError {
    return refusal(400, `the rollout of task ${this.#task.id} is over`, "rollout_over");
  }
}

function refusal(status: 400, message: string, code: string): LlmError {
  return new LlmError(status, { message, code });
}

/** A message as the episode's log shows it. */
function shown({ role, content }: ChatMessage): Message {
  return { role: role === "tool" ? "user" : role, content };
}
