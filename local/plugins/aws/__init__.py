"""Stand-in for the `aws` resource plug-in: a declarative table of resource types, carried out with boto3 on loopback only.

The genuine plug-in is always preferred. Where things are:
- `types/`: the table, one file a service; a row says which calls create, read, update and delete a resource, how its
  properties are called in AWS, and which changes replace it. `functions/`: the data sources.
- `row.py`: what a row can say. `lifecycle.py` carries rows out; `convert.py` renames and casts by botocore's service model.
- `schema.py`: names, nesting and required properties, taken from the genuine Python SDK and cached.
- `check.py`, `diff.py`, `naming.py`: what preview needs; none of them loads botocore.
- `provider.py`, `values.py`, `serve.py`: the engine's protocol.

A killed run and what it made: a creation with a client token is repeated with the same one, so the next `up` adopts what is
there (Lustre file systems and associations, EFS file systems and access points, EKS clusters, node groups, add-ons, access
entries and Pod Identity associations, capacity reservations, NAT gateways, VPC endpoints, launch templates, flow logs; as far
as the emulator honours the token). AWS has none for the rest (VPCs, subnets, security groups, roles, queues, buckets ...): the
engine's state then holds a pending creation with all its inputs, and the resource has to be looked up and taken over with
`pulumi refresh --import-pending-creates`, or deleted by hand.

What it does not do: nested fields that a program leaves out are not watched for drift; properties that AWS never tells
(a Lustre file system's security groups, for one) are taken as declared.
"""
