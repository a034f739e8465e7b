"""Lists every field of TRL's GRPOConfig with its default, those of transformers' TrainingArguments included.

    python test/reference/trl_config.py      # needs trl; writes test/reference/trl-grpo-config.json

Defaults are those of the dataclass, before `__post_init__` replaces some by what follows from others. Inherited fields
are listed apart.
"""

import dataclasses
import enum
import json
from pathlib import Path

import transformers
import trl
from trl import GRPOConfig


def default_of(field):
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    assert field.default is not dataclasses.MISSING, field.name
    return field.default.value if isinstance(field.default, enum.Enum) else field.default


inherited = {field.name for field in dataclasses.fields(transformers.TrainingArguments)}
fields = [field for field in dataclasses.fields(GRPOConfig) if field.init]
listed = lambda among: {field.name: default_of(field) for field in fields if (field.name in inherited) == among}
out = {
    "note": f"GRPOConfig of TRL {trl.__version__} on transformers {transformers.__version__}; made by trl_config.py",
    "own": listed(False),
    "inherited": listed(True),
}
path = Path(__file__).with_name("trl-grpo-config.json")
path.write_text(json.dumps(out, indent=1, ensure_ascii=False) + "\n")
print(f"{path.name}: {len(out['own'])} of TRL, {len(out['inherited'])} of transformers")
