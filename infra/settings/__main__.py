"""`python -m infra.settings > infra/settings.schema.json` writes the schema that editors check stack files by."""

import json

from infra.settings.model import stack_file_schema

print(json.dumps(stack_file_schema(), indent=2))
