"""Environments without a model: prints the outcomes of episodes played by a pickled factory in several threads.

Needs no TRL. Run by test/public/trl-bridge.test.ts.
    python check_environment.py URL API_KEY EPISODES.json
"""

import json
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import sqlenv_trl

url, api_key, path = sys.argv[1:]
with open(path) as file:
    episodes = json.load(file)  # [{"question_id", "actions": [[tool, argument], ...]}]

factory, rewards = pickle.loads(pickle.dumps((sqlenv_trl.environment_factory(url, api_key), sqlenv_trl.REWARDS)))


def rewards_of(environment):
    return [reward(completions=[""], environments=[environment])[0] for reward in rewards]


def play(episode):
    environment = factory()
    environment.reset(**episode)
    for tool, argument in episode["actions"]:
        getattr(environment, tool)(argument)
    return rewards_of(environment)


with ThreadPoolExecutor(8) as pool:
    played = list(pool.map(play, episodes))

# The server ends a session in the middle of an episode: it cannot be scored, and the next one is in a new session.
environment = factory()
question_id, actions = episodes[0]["question_id"], episodes[0]["actions"]
environment.reset(question_id=question_id)
ended = {"Mcp-Session-Id": environment._session._id}
sqlenv_trl._request("DELETE", url + "/mcp", api_key, headers=ended)
said = []
for tool, argument in actions[:2]:
    try:
        getattr(environment, tool)(argument)
    except sqlenv_trl.LostEpisode as lost:
        said.append(str(lost))
lost = rewards_of(environment)
environment.reset(question_id=question_id)
for tool, argument in actions:
    getattr(environment, tool)(argument)
try:
    environment.query(1)
except ValueError as error:
    said.append(str(error))
again = rewards_of(environment)

questions = sqlenv_trl.load_questions(url, api_key=api_key)
print(json.dumps({"played": played, "said": said, "lost": lost, "again": again, "questions": questions}))
