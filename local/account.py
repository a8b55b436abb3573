"""What an AWS account holds before a platform comes to it: the role its administrators take on.

AWS refuses an access entry for a role that does not exist; on AWS the organisation has made it, so here the local stack does.
"""

import json

import boto3

from local.aws.emulator import Endpoint

ADMIN_ROLE = "platform-admin"


def prepare_account(endpoint: Endpoint) -> None:
    """Have the administrators' role in the emulator's account."""
    iam = boto3.client(
        "iam", endpoint_url=endpoint.url, region_name=endpoint.region, aws_access_key_id="local", aws_secret_access_key="local"
    )
    trust = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{endpoint.account}:root"}, "Action": "sts:AssumeRole"}],
    }
    try:
        iam.get_role(RoleName=ADMIN_ROLE)
    except iam.exceptions.NoSuchEntityException:
        iam.create_role(RoleName=ADMIN_ROLE, AssumeRolePolicyDocument=json.dumps(trust))
