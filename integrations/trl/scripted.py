"""Scripts that stand for a model in the checks: for each question several ways to play it, distinguishable by their first action."""

import json

ARGUMENTS = {"DESCRIBE": "table", "SAMPLE": "table", "QUERY": "sql", "ANSWER": "answer"}


class Scripts:
    """Says what a model that follows the scripts writes next, as tool calls or as text."""

    def __init__(self, path, tokenizer, as_text=False):
        with open(path) as file:
            self.all = json.load(file)  # [{"question_id", "question", "variants": [[[action_type, argument], ...], ...]}]
        self._tokenizer = tokenizer
        self._as_text = as_text
        self._begun = 0

    def next_ids(self, context):
        """The ids of the next turn: the first action that is missing in the context, then a word without an action."""
        text = self._tokenizer.decode(context)
        variants = next(script for script in self.all if f"Question: {script['question']}\n" in text)["variants"]
        places = [text.find(self._written(variant[0])) for variant in variants]
        if max(places) >= 0:
            variant = variants[min((at, i) for i, at in enumerate(places) if at >= 0)[1]]
        else:
            variant = variants[self._begun % len(variants)]
            self._begun += 1
        missing = [a for i, a in enumerate(variant) if text.count(self._written(a)) < variant[: i + 1].count(a)]
        said = self._written(missing[0]) if missing else "done"
        return self._tokenizer(said, add_special_tokens=False).input_ids + [self._tokenizer.eos_token_id]

    def variant_of(self, question_id, completion):
        """The number of the variant that a completion followed, given as a text or as messages with tool calls."""
        first = completion
        if not isinstance(completion, str):
            call = completion[0]["tool_calls"][0]["function"]
            first = self._written([call["name"].upper(), *call["arguments"].values()])
        variants = next(script for script in self.all if script["question_id"] == question_id)["variants"]
        return next(i for i, actions in enumerate(variants) if first.startswith(self._written(actions[0])))

    def _written(self, action):
        action_type, argument = action
        if self._as_text:
            return f"{action_type}: {argument}"
        call = {"name": action_type.lower(), "arguments": {ARGUMENTS[action_type]: argument}}
        return f"<tool_call>\n{json.dumps(call)}\n</tool_call>"
