"""Stand-in for the `aws` resource plug-in: a declarative table of resource types, carried out with boto3 on loopback only.

The genuine plug-in is always preferred. Where things are:
- `types/`: the table, one file a service; a row says which calls create, read, update and delete a resource, how its
  properties are called in AWS, and which changes replace it. `functions/`: the data sources.
- `row.py`: what a row can say. `lifecycle.py` carries rows out; `convert.py` renames and casts by botocore's service model.
- `schema.py`: names, nesting and required properties, taken from the genuine Python SDK and cached.
- `check.py`, `diff.py`, `naming.py`: what preview needs; none of them loads botocore.
- `provider.py`, `values.py`, `serve.py`: the engine's protocol.
"""
