"""What counts as an upload of a folder: words and variables, not any mention of a bucket."""

import pytest

from guardrails.node import Node
from guardrails.upload import uploads

pytestmark = pytest.mark.unit

UPLOADS = [
    "train --upload s3://b/run",
    "train --upload",
    "train --upload --epochs 3",
    "train --upload_to=s3://b/run",
    "train checkpoint.upload=s3://b/run",
    "train +trainer.upload_uri=s3://b/run",
    "train --output-uri s3://b/run",
    "train --remote $S3_RUN",
    "train --backup-to=${BUCKET}/run",
    "UPLOAD_URI=s3://b/run train",
    "python3 upload.py",
    "python3 -m tools.uploader /state",
    "hf upload team/model /state",
    "python3 -c \"upload_file('/state/run')\"",
    "python3 -c \"s3 = client(); s3.upload_file('/state/run')\"",
    "aws s3 sync /state s3://b/run",
    "aws s3 sync --exclude '*.tmp' /state/run s3://b/run --delete",
    "aws s3 cp --recursive /state/run/last s3://b/run --storage-class STANDARD",
    "aws s3 sync . s3://b/run",
    "s5cmd cp '/state/*' s3://b/run/",
    "rclone sync /state remote:b/run",
    "/usr/bin/rsync -a /state/ host:/backup",
    "aws s3 sync /state $BUCKET/run",
    "aws s3 sync s3://b/data /data; train; aws s3 sync /state s3://b/run;",
    "train --push_to_hub",
    "train --push_to_hub true --hub_strategy every_save",
    "train --hub-strategy=checkpoint --push-to-hub=True",
    "train --push_to_hub true --hub_strategy all_checkpoints",
]
NONE = [
    "train",
    "train --data s3://b/data",
    "train data.path=s3://b/upload",
    "train --data /data/upload",
    "train --data /data/uploads/a.jsonl",
    "train --resume-from-checkpoint s3://b/run",
    "train --init_checkpoint=s3://b/run",
    "train --checkpoint-load-path s3://b/run",
    "train --save /state --output-dir $OUT",
    "train --no-upload",
    "UPLOAD=0 train --data /data/upload/a",
    "train # then upload",
    "train --upload=false",
    "train checkpoint.upload=null",
    "train --upload 0",
    "aws s3 sync s3://b/data /state",
    "aws s3 cp --region us-east-1 s3://b/data /data",
    "aws s3 sync /data s3://b/data",
    "aws s3 sync /state-of-others s3://b/data",
    "cp -r /state /backup",
    "aws s3 cp s3://b/data data; train --save /state --data s3://b/data",
    "aws s3 cp s3://b/data data && train --save /state --data s3://b/data",
    "train --push_to_hub false --hub_strategy checkpoint",
    "train --push_to_hub true --hub_strategy end",
    "train --hub_strategy checkpoint",
]


@pytest.mark.parametrize("line", UPLOADS)
def test_it_is_an_upload(line: str) -> None:
    assert uploads(Node({"command": ["sh", "-c", line]}), "/state/run")


@pytest.mark.parametrize("line", NONE)
def test_it_is_none(line: str) -> None:
    assert not uploads(Node({"command": ["sh", "-c", line]}), "/state/run")


@pytest.mark.parametrize(
    ("name", "value", "is_one"),
    [("CHECKPOINT_UPLOAD", "s3://b/run", True), ("OUTPUT", "s3://b/run", True), ("UPLOAD", "0", False), ("DATA", "s3://b/run", False)],
)
def test_a_variable_may_say_it(name: str, value: str, is_one: bool) -> None:
    assert uploads(Node({"command": ["train"], "env": [{"name": name, "value": value}]}), "/state/run") is is_one
