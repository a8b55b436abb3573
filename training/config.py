"""TrainConfig: everything that decides what a run computes and where it keeps it.

Written as JSON (`--config file.json`), built in Python (`training.recipes`) or by the workloads project, which checks it at preview and
mounts it into the pods. Standard library only. Every refusal names the path, the value and what is allowed.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, Self

from training.batch import BatchError, BatchPlan, plan_batch
from training.layout import Layout, check_nodes, plan_layout
from training.schema import ConfigError, Range, Section, apply_override

Positive = Annotated[int, Range(at_least=1)]
Count = Annotated[int, Range(at_least=0)]
_RUN_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
_BUCKET_URL = re.compile(r"s3://[a-z0-9][-.a-z0-9]{1,61}[a-z0-9](/[^/]+)*/?")
_BYTE_VOCABULARY = 256
_NOT_IN_DEEPSPEED = {
    "tensor": "which flattens the parameters that tensor ranks share",
    "context": "whose ranks all take samples of their own",
    "pipeline": "whose pipelines take a model of another form and at most ZeRO-1",
    "expert": "whose experts are a layer of its own, with other routing and checkpoints",
}
S3_SCHEME = "s3://"
"""What an address in S3 begins with."""
_SCHEME = re.compile(r"[a-z0-9]+://")
_S3_URL = re.compile(r"s3://[a-z0-9][-.a-z0-9]{1,61}[a-z0-9](/.*)?")
# What only the transformer of our own has from the configuration.
_OWN_SHAPE = (
    "dim",
    "num_layers",
    "num_heads",
    "num_kv_heads",
    "ffn_dim",
    "num_experts",
    "rope_theta",
    "norm_eps",
    "dropout",
    "document_end",
)


@dataclass(frozen=True, kw_only=True)
class HuggingFaceConfig(Section):
    """Causal language model of the transformers library; used when model.kind is huggingface."""

    source: str | None = None
    """Folder with config.json and safetensors files, the same on every host; or a model's name on a hub that every host reaches."""
    revision: str | None = None
    """Branch, tag or commit on the hub; nothing means its main branch."""
    weights: Literal["pretrained", "random"] = "pretrained"
    """pretrained: start from the folder's weights. random: only its architecture, filled from the seed."""
    digest: str | None = None
    """Identity of the model, which a resume compares. Filled in at the start; one that is given must be the folder's."""


@dataclass(frozen=True, kw_only=True)
class AdapterConfig(Section):
    """Parameter-efficient fine-tuning of a Hugging Face model: its own weights are frozen, low-rank additions are trained and saved."""

    kind: Literal["none", "lora", "qlora"] = "none"
    """none: all weights are trained. lora: low-rank adapters. qlora: the same over weights quantised to 4 bits (NF4)."""
    rank: Positive = 16
    """Inner width of each adapter."""
    alpha: Annotated[float, Range(above=0)] = 32.0
    """Adapters are scaled by alpha / rank."""
    dropout: Annotated[float, Range(at_least=0, below=1)] = 0.0
    """Dropout before each adapter while training."""
    targets: tuple[str, ...] = ()
    """Names, or ends of names, of the layers that get an adapter; none means every linear layer but the head."""

    def check(self) -> None:
        if self.kind == "none":
            for name in ("rank", "alpha", "dropout", "targets"):
                if getattr(self, name) != getattr(type(self), name):
                    raise ConfigError(name, getattr(self, name), "its default when adapter.kind is none")


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Section):
    """The model: a decoder-only transformer of this shape, or one of the transformers library."""

    kind: Literal["transformer", "huggingface"] = "transformer"
    """transformer: the one that the keys below describe. huggingface: the one in huggingface.source, which brings its own shape."""
    huggingface: HuggingFaceConfig = field(default_factory=HuggingFaceConfig)
    """Where a Hugging Face model comes from."""
    adapter: AdapterConfig = field(default_factory=AdapterConfig)
    """What of a Hugging Face model is trained."""
    vocab_size: Positive = 256
    """Token ids that the model knows; 256 is enough for bytes. That of a Hugging Face model is read from its folder."""
    dim: Positive = 128
    """Width of the residual stream."""
    num_layers: Positive = 4
    """Transformer blocks."""
    num_heads: Positive = 4
    """Query heads; dim must be a multiple of it."""
    num_kv_heads: Positive = 2
    """Key and value heads shared by groups of query heads; num_heads must be a multiple of it."""
    ffn_dim: Positive = 384
    """Inner width of the SwiGLU feed-forward part; of each expert where there are experts."""
    num_experts: Annotated[int, Range(at_least=2)] | None = None
    """Feed-forward networks of each block, among which a router chooses for each token; nothing means one, without a router."""
    experts_per_token: Positive = 2
    """Experts that each token goes to; at most num_experts."""
    capacity_factor: Annotated[float, Range(above=0)] | None = None
    """Room of each expert for each sample, as a multiple of its even share. Choices beyond it are dropped, the last positions first: the
    token then does without that expert. Nothing means room for all."""
    balance_weight: Annotated[float, Range(at_least=0)] = 0.01
    """Weight of the load-balancing loss: summed over blocks, mean over samples. It is trained on, but not part of the loss shown."""
    rope_theta: Annotated[float, Range(above=0)] = 10000.0
    """Base of the rotary position frequencies."""
    norm_eps: Annotated[float, Range(above=0)] = 1e-5
    """Epsilon of RMSNorm."""
    dropout: Annotated[float, Range(at_least=0, below=1)] = 0.0
    """Dropout on attention and residuals while training; evaluation always uses none."""
    attention: Literal["auto", "flash", "efficient", "math"] = "auto"
    """Kernel family of scaled dot product attention; auto lets PyTorch choose. The choice is logged."""
    document_end: Count | None = None
    """Token id that ends a document. With it, attention stays within documents and positions start anew in each, so that documents packed
    into a sample do not see each other. Nothing means that they do."""
    activation_checkpointing: Literal["none", "full", "selective"] = "none"
    """Whether blocks keep their activations or recompute them in the backward pass (never the reentrant form): full recomputes all,
    selective keeps the results of matrix products and attention."""
    compile: bool = False
    """Compile each block with torch.compile at its first use; minutes at the start, and a C++ compiler on the CPU."""

    def check(self) -> None:
        self._check_kind()
        if self.dim % self.num_heads:
            raise ConfigError("dim", self.dim, f"a multiple of num_heads = {self.num_heads}")
        if self.dim // self.num_heads % 2:
            raise ConfigError("dim", self.dim, f"dim / num_heads even, for rotary pairs; with num_heads = {self.num_heads} it is odd")
        if self.num_heads % self.num_kv_heads:
            raise ConfigError("num_kv_heads", self.num_kv_heads, f"a divisor of num_heads = {self.num_heads}")
        self._check_documents()
        self._check_experts()

    def _check_documents(self) -> None:
        if self.document_end is None:
            return
        if self.document_end >= self.vocab_size:
            raise ConfigError("document_end", self.document_end, f"a token id, below vocab_size = {self.vocab_size}")
        if self.attention == "flash":
            raise ConfigError("attention", self.attention, "auto, efficient or math when document_end is set: flash kernels take no mask")

    def _check_kind(self) -> None:
        if self.kind == "huggingface":
            if not self.huggingface.source:
                raise ConfigError("huggingface.source", self.huggingface.source, "a folder or a hub's name when model.kind is huggingface")
            for name in _OWN_SHAPE:
                if getattr(self, name) != getattr(type(self), name):
                    raise ConfigError(
                        name, getattr(self, name), "its default when model.kind is huggingface: the model's config.json has it"
                    )
            return
        for name in ("huggingface", "adapter"):
            if (value := getattr(self, name)) != type(value)():
                raise ConfigError(name, value.to_mapping(), "its defaults when model.kind is transformer; set model.kind to huggingface")

    def _check_experts(self) -> None:
        if self.num_experts is None:
            for name in ("experts_per_token", "capacity_factor", "balance_weight"):
                if getattr(self, name) != getattr(type(self), name):
                    raise ConfigError(name, getattr(self, name), "its default when num_experts is nothing: the model has no router")
        elif self.compile:
            raise ConfigError("compile", True, "false when num_experts is set: how many tokens an expert gets breaks the graph")
        elif self.experts_per_token > self.num_experts:
            raise ConfigError("experts_per_token", self.experts_per_token, f"at most num_experts = {self.num_experts}")
        elif self.capacity_factor and self.capacity_factor * self.experts_per_token > self.num_experts:
            allowed = f"at most num_experts / experts_per_token = {self.num_experts / self.experts_per_token:g}, which is room for all"
            raise ConfigError("capacity_factor", self.capacity_factor, f"{allowed}, or nothing for no limit")


@dataclass(frozen=True, kw_only=True)
class DataConfig(Section):
    """What is read, and how it is cut into samples."""

    files: tuple[str, ...] = ()
    """Files, folders or glob patterns, read in sorted order; none means the text that this Python installation holds."""
    encoding: Literal["bytes", "uint16", "uint32"] = "bytes"
    """bytes: each byte is a token. uint16, uint32: the files are little-endian arrays of token ids."""
    shards: str | None = None
    """Token shards made by `python -m training.tokenize`, in place of files: their folder, or s3://bucket/prefix with a copy of it."""
    cache_directory: str = "/tmp/trainyard-shards"
    """Folder on a local disk for shards from S3, shared by all ranks of a host."""
    cache_gb: Annotated[float, Range(above=0)] = 50.0
    """Room for them, in 10^9 bytes: the shards of two windows of shuffle_shards, or all of them if that is nothing."""
    verify: Literal["contents", "sizes"] = "contents"
    """What of the shards is held against their index before the first step, shared out over the ranks: checksums, or sizes alone."""
    shuffle_shards: Positive | None = None
    """Shards whose samples are mixed with each other; the order of the shards is shuffled too. Nothing mixes all samples."""
    sequence_length: Positive = 256
    """Tokens per sample."""
    max_tokens: Positive | None = None
    """Read at most this many tokens from the start of the corpus; nothing means all of them."""
    eval_every_nth: Annotated[int, Range(at_least=2)] = 50
    """One sample in this many is held out for evaluation and never trained on."""
    workers: Count = 0
    """Processes per rank that read ahead while the step computes; 0 reads in the rank itself, when a batch is due."""
    prefetch: Positive = 2
    """Micro-batches that each worker reads ahead."""
    timeout_seconds: Positive = 300
    """How long a worker may take for a micro-batch before the run fails."""

    def check(self) -> None:
        if self.shards is None:
            if self.shuffle_shards is not None:
                raise ConfigError("shuffle_shards", self.shuffle_shards, "nothing without data.shards: files are not shuffled by part")
            return
        if self.files:
            raise ConfigError("files", list(self.files), "nothing when data.shards is given; the two are different corpora")
        if self.encoding != "bytes":
            raise ConfigError("encoding", self.encoding, "its default when data.shards is given: the shards' index says what they hold")
        if _SCHEME.match(self.shards) and not _S3_URL.fullmatch(self.shards):
            raise ConfigError("shards", self.shards, "a folder, or s3://bucket/prefix")


@dataclass(frozen=True, kw_only=True)
class BatchConfig(Section):
    """Batch identity: global = micro x accumulation x data-parallel replicas. State micro and at most one of the others."""

    micro: Positive = 8
    """Samples per replica and forward pass."""
    accumulation: Positive | None = None
    """Micro-batches per optimizer step; derived from global_batch if that is given, else 1."""
    global_batch: Positive | None = None
    """Samples per optimizer step over all replicas."""


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig(Section):
    """AdamW; matrices decay, norms do not."""

    lr: Annotated[float, Range(above=0)] = 3e-3
    """Peak learning rate."""
    betas: tuple[Annotated[float, Range(at_least=0, below=1)], Annotated[float, Range(at_least=0, below=1)]] = (0.9, 0.95)
    """Decay of the first and second moment."""
    eps: Annotated[float, Range(above=0)] = 1e-8
    """Added to the root of the second moment."""
    weight_decay: Annotated[float, Range(at_least=0)] = 0.1
    """Decoupled weight decay."""
    clip_norm: Annotated[float, Range(above=0)] | None = 1.0
    """Global gradient norm above which gradients are scaled down; nothing leaves them as they are."""


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig(Section):
    """Learning rate by optimizer step: linear warm-up, then a cosine down to a floor, where it stays."""

    warmup_steps: Count = 10
    """Optimizer steps from 0 to the peak; fewer than decay_steps."""
    decay_steps: Positive | None = None
    """Optimizer step at which the floor is reached; nothing means the run's steps."""
    floor: Annotated[float, Range(at_least=0, at_most=1)] = 0.1
    """Final rate as a share of the peak."""


@dataclass(frozen=True, kw_only=True)
class EngineConfig(Section):
    """How the training state is spread over the ranks."""

    kind: Literal["ddp", "fsdp", "deepspeed"] = "ddp"
    """ddp: plain PyTorch, replicated (also the single-process engine). fsdp: PyTorch's FSDP2, sharded. deepspeed: ZeRO."""
    zero_stage: Literal[0, 1, 2, 3] | None = None
    """DeepSpeed only, and required there: 1 shards optimizer state, 2 gradients too, 3 parameters too."""
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Arithmetic of the forward and backward pass. Master weights and optimizer state stay fp32. fp16 alone scales the loss: an update
    whose gradients overflow is skipped, counts as a step, and halves the scale."""
    loss_scale_power: Annotated[int, Range(at_least=0, at_most=32)] = 16
    """fp16 only: the loss is multiplied by 2 to this power at first."""
    loss_scale_window: Positive = 1000
    """fp16 only: steps in a row without overflow after which the scale doubles."""

    reduce_precision: Literal["fp32", "bf16"] = "fp32"
    """FSDP only: arithmetic of the sums of gradients over the ranks. bf16 halves their traffic."""
    sync_gradients: Literal["step", "micro_batch"] = "step"
    """FSDP only: sum gradients over the ranks once per optimizer step, or with each micro-batch, which costs traffic but keeps no whole
    gradient on any rank in between."""
    offload_optimizer: Literal["none", "cpu"] = "none"
    """Where optimizer state lives and the update is computed: on the device or in host memory. DeepSpeed: ZeRO stages 1 to 3. FSDP moves
    parameters along with it."""
    offload_parameters: Literal["none", "cpu"] = "none"
    """Where sharded parameters live between uses: on the device or in host memory. DeepSpeed: ZeRO stage 3."""

    def check(self) -> None:
        self._check_zero()
        self._check_fsdp()
        self._check_offload()

    def _check_offload(self) -> None:
        optimizer, parameters = self.offload_optimizer, self.offload_parameters
        if self.kind == "fsdp" and optimizer != parameters:
            raise ConfigError("offload_parameters", parameters, f"{optimizer}, as offload_optimizer: FSDP moves both or none")
        if self.kind == "deepspeed" and optimizer != "none" and not self.zero_stage:
            raise ConfigError("offload_optimizer", optimizer, "none with zero_stage 0: only sharded optimizer state can be offloaded")
        if self.kind == "deepspeed" and parameters != "none" and self.zero_stage != 3:
            raise ConfigError("offload_parameters", parameters, f"none with zero_stage {self.zero_stage}: only stage 3 shards parameters")
        for name in ("offload_optimizer", "offload_parameters"):
            if self.kind == "ddp" and getattr(self, name) != "none":
                raise ConfigError(name, getattr(self, name), "none when kind is ddp; fsdp and deepspeed can offload")

    def _check_fsdp(self) -> None:
        if self.kind == "fsdp":
            return
        for name, default in (("reduce_precision", "fp32"), ("sync_gradients", "step")):
            if getattr(self, name) != default:
                raise ConfigError(name, getattr(self, name), f"{default} when kind is {self.kind}; only fsdp has it")

    def _check_zero(self) -> None:
        if self.kind == "deepspeed" and self.zero_stage is None:
            raise ConfigError("zero_stage", None, "0, 1, 2 or 3 when kind is deepspeed")
        if self.kind != "deepspeed" and self.zero_stage is not None:
            raise ConfigError("zero_stage", self.zero_stage, f"nothing when kind is {self.kind}; ZeRO needs kind deepspeed")
        self._check_precision()

    def _check_precision(self) -> None:
        if self.precision == "fp16" and self.zero_stage == 0:
            raise ConfigError(
                "precision", "fp16", "fp32 or bf16 with zero_stage 0, where DeepSpeed does not save the loss scale; or kind ddp"
            )
        for name in ("loss_scale_power", "loss_scale_window"):
            if self.precision != "fp16" and getattr(self, name) != getattr(type(self), name):
                raise ConfigError(name, getattr(self, name), f"its default when precision is {self.precision}; only fp16 scales the loss")

    def __str__(self) -> str:
        return f"{self.kind} ZeRO-{self.zero_stage} {self.precision}" if self.kind == "deepspeed" else f"{self.kind} {self.precision}"


@dataclass(frozen=True, kw_only=True)
class ParallelConfig(Section):
    """Ranks along each axis of the device mesh: world size = pipeline x replicate x shard x context x tensor, the last one between
    neighbours."""

    replicate: Positive | None = None
    """Data-parallel replicas, each with a whole copy of the state. Nothing means what the other axes leave over."""
    shard: Positive | None = None
    """Data-parallel ranks that divide the state among them. Nothing means what the other axes leave over, for the engine that shards."""
    tensor: Positive = 1
    """Ranks that divide each layer's matrices among them: neighbours, on one node. A divisor of model.num_kv_heads."""
    context: Positive = 1
    """Ranks that divide the sequence of each sample among them, and gather the keys and values of earlier positions in each layer. A
    divisor of data.sequence_length."""
    pipeline: Positive = 1
    """Ranks that the model is cut over by depth. Micro-batches go through it, so that accumulation is at least as many."""
    stages_per_rank: Positive = 1
    """Stages of each pipeline rank. 1: the 1F1B schedule. More: interleaved 1F1B, with shorter waits for more traffic."""
    expert: Positive = 1
    """Ranks that divide the experts among them, out of the innermost data-parallel axis in use. A divisor of model.num_experts."""

    def check(self) -> None:
        if self.stages_per_rank > 1 and self.pipeline == 1:
            raise ConfigError("stages_per_rank", self.stages_per_rank, "1 when pipeline is 1: there is no pipeline")


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig(Section):
    """Where and how often the run is saved, and what a start does with what it finds."""

    directory: str = "runs"
    """Folder of all runs, on storage that every rank sees; this run's files go to <directory>/<name>."""
    every: Count = 50
    """Optimizer steps between saves; 0 saves only at the end and on a signal."""
    keep: Annotated[int, Range(at_least=2)] = 3
    """Newest checkpoints kept; an older one goes only after a newer one has been read back and verified."""
    keep_every: Count = 0
    """Checkpoints of these steps' multiples are kept for good, beside the newest; 0 means none."""
    mode: Literal["sync", "async"] = "sync"
    """sync: training waits until a save is durable. async: it waits for a copy in host memory, as large as this rank's part of the state,
    and goes on while that is written; the save before the exit is always sync."""
    upload: str | None = None
    """s3://bucket/prefix: every checkpoint is copied to <prefix>/<name> there behind the training, and fetched from there when it is newer
    than, or missing from, the directory. Nothing is deleted there: that is for the bucket's lifecycle rules."""
    upload_checksum: Literal["CRC64NVME", "CRC32"] = "CRC64NVME"
    """What the store computes over whole objects, to be compared; CRC32 for stores that do not know the other."""
    resume: Literal["auto", "required", "never"] = "auto"
    """auto: go on from the newest valid checkpoint, or start afresh if none was ever saved. required: having none is an error.
    never: having one is an error. Checkpoints that exist but are all damaged are always an error."""
    on_world_change: Literal["convert", "refuse"] = "convert"
    """What to do with a checkpoint of other ranks, another ZeRO stage, mesh or engine: rewrite it for those that there are, or stop and
    name both. Random generators belong to ranks and start afresh then."""

    def check(self) -> None:
        if self.upload is not None and not _BUCKET_URL.fullmatch(self.upload):
            raise ConfigError("upload", self.upload, "nothing, or s3://bucket or s3://bucket/prefix")


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig(Section):
    """Loss on held-out samples."""

    every: Count = 50
    """Optimizer steps between evaluations; 0 means none. The last step is evaluated too."""
    samples: Positive = 64
    """Held-out samples per evaluation, the same ones each time whatever the number of ranks."""


@dataclass(frozen=True, kw_only=True)
class DistributedConfig(Section):
    """How ranks find each other. Ranks and addresses themselves come from the launcher."""

    backend: Literal["auto", "gloo", "nccl"] = "auto"
    """auto: nccl if this rank sees a GPU, else gloo. nccl without a GPU is an error."""
    init_timeout_seconds: Positive = 300
    """How long to wait for the master's name to resolve and for all ranks to arrive; the missing ones are named."""
    timeout_seconds: Positive = 1800
    """How long one collective may take before the run fails."""


@dataclass(frozen=True, kw_only=True)
class PreflightConfig(Section):
    """What is checked of hosts and links inside the job, before any weight is made; `python -m training.preflight` does only that."""

    enabled: bool = True
    """Compare versions, devices, memory and clocks of all ranks, and measure the links."""
    transport: Literal["any", "efa"] = "any"
    """efa: end the run if NCCL uses anything else between hosts, rather than train on over sockets at a fraction of the speed."""
    collective_mib: Count | None = None
    """Size of the all-reduce that measures the links; nothing means 256 on GPUs and 1 on CPUs, 0 measures none."""
    min_bandwidth_gb_per_second: Annotated[float, Range(above=0)] | None = None
    """Least bus bandwidth of that all-reduce; nothing accepts any."""
    max_clock_skew_seconds: Annotated[float, Range(above=0)] = 30.0
    """Most that the clocks of two hosts may differ."""
    min_shared_memory_mib: Count | None = None
    """Least size of /dev/shm; nothing means 64 for each GPU rank of a host with several."""

    def check(self) -> None:
        if self.min_bandwidth_gb_per_second is not None and self.collective_mib == 0:
            raise ConfigError("collective_mib", 0, "more than 0 when min_bandwidth_gb_per_second is set: nothing would be measured")


@dataclass(frozen=True, kw_only=True)
class WatchdogConfig(Section):
    """What ends a run that hangs, so that it is started again."""

    hang_seconds: Count = 1200
    """Longest time in which no micro-batch, step, evaluation batch or save is finished; then every rank writes the stacks of its threads to
    the run's folder and exits 76. Longer than the slowest of them, a first compilation and a save included; 0 looks for no hang. If
    distributed.timeout_seconds is shorter, a stuck collective fails first, without stacks."""


@dataclass(frozen=True, kw_only=True)
class MetricsConfig(Section):
    """What is shown and written beside metrics.jsonl, which every run has."""

    tensorboard: bool = False
    """Write the same values for TensorBoard, to the run's folder tensorboard."""
    progress: Literal["auto", "live", "lines"] = "auto"
    """live: one line, drawn again in place. lines: a log line every log_every steps. auto: live on a terminal
    (not one of Open MPI's own), else lines."""
    peak_tflops: Annotated[float, Range(above=0)] | None = None
    """Peak rate of one device in TFLOP/s, for the utilisation (MFU); nothing means the rate of the known product, or no MFU."""


@dataclass(frozen=True, kw_only=True)
class TrainConfig(Section):
    """One run, whole."""

    name: str
    """Name of the run and of its folder: lower-case letters, digits, dots and dashes."""
    steps: Positive
    """Optimizer steps of the whole run, over all restarts."""
    stop_after: Positive | None = None
    """Time slice: after this many optimizer steps in this process, save and exit 75 for a restart that goes on."""
    seed: Count = 0
    """Seed of weights, sample order and dropout."""
    log_every: Positive = 1
    """Optimizer steps between log lines; metrics.jsonl has every step."""
    model: ModelConfig = field(default_factory=ModelConfig)
    """Shape of the model."""
    data: DataConfig = field(default_factory=DataConfig)
    """Corpus and samples."""
    batch: BatchConfig = field(default_factory=BatchConfig)
    """Batch identity."""
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    """AdamW."""
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    """Learning rate."""
    engine: EngineConfig = field(default_factory=EngineConfig)
    """Sharding and precision."""
    parallel: ParallelConfig = field(default_factory=ParallelConfig)
    """Device mesh."""
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    """Saving and resuming."""
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    """Held-out loss."""
    distributed: DistributedConfig = field(default_factory=DistributedConfig)
    """Process group."""
    preflight: PreflightConfig = field(default_factory=PreflightConfig)
    """Checks of hosts and links."""
    watchdog: WatchdogConfig = field(default_factory=WatchdogConfig)
    """Hangs."""
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    """Progress and measurements."""

    def check(self) -> None:
        if not _RUN_NAME.fullmatch(self.name):
            raise ConfigError(
                "name", self.name, "1 to 63 lower-case letters, digits, dots and dashes, not starting or ending with a dot or dash"
            )
        if not self.data.shards and self.data.encoding == "bytes" and self.model.vocab_size < _BYTE_VOCABULARY:
            raise ConfigError("model.vocab_size", self.model.vocab_size, f"at least {_BYTE_VOCABULARY} when data.encoding is bytes")
        if self.data.encoding == "uint16" and self.model.vocab_size > 2**16:
            raise ConfigError("data.encoding", "uint16", f"uint32 for model.vocab_size = {self.model.vocab_size}, which is above {2**16}")
        if self.data.encoding != "bytes" and not self.data.files:
            raise ConfigError(
                "data.files", [], f"at least one file when data.encoding is {self.data.encoding}; the default corpus is bytes"
            )
        if self.schedule.warmup_steps >= self.decay_steps:
            source = "schedule.decay_steps" if self.schedule.decay_steps else "steps"
            raise ConfigError("schedule.warmup_steps", self.schedule.warmup_steps, f"fewer than {source} = {self.decay_steps}")
        self._check_parallel()
        self._check_huggingface()
        self._check_compile()

    def _check_compile(self) -> None:
        """Refuse what puts hooks or distributed tensors into the blocks, which then are no whole graphs."""
        if not self.model.compile:
            return
        if self.model.kind == "huggingface":
            raise ConfigError("model.compile", True, "false when model.kind is huggingface, whose blocks need not be whole graphs")
        if self.engine.zero_stage == 3:
            raise ConfigError("model.compile", True, "false with engine.zero_stage 3, which gathers weights inside of blocks; use fsdp")
        for axis in ("tensor", "pipeline", "expert"):
            if (size := getattr(self.parallel, axis)) > 1:
                raise ConfigError("model.compile", True, f"false with parallel.{axis} = {size}: blocks are compiled where they are whole")

    def _check_parallel(self) -> None:
        """Refuse axes that the engine does not have, and sizes of the model that do not divide over them."""
        kind, parallel, model = self.engine.kind, self.parallel, self.model
        if kind != "fsdp" and parallel.shard not in (None, 1):
            raise ConfigError("parallel.shard", parallel.shard, f"nothing when engine.kind is {kind}; sharding needs fsdp or a ZeRO stage")
        if kind == "deepspeed":
            for axis, reason in _NOT_IN_DEEPSPEED.items():
                if (ranks := getattr(parallel, axis)) > 1:
                    raise ConfigError(f"parallel.{axis}", ranks, f"1 when engine.kind is deepspeed, {reason}; use ddp or fsdp")
        self._check_experts()
        self._check_pipeline()
        self._check_context()
        if parallel.tensor == 1:
            return
        for path, size in (
            ("model.num_kv_heads", model.num_kv_heads),
            ("model.ffn_dim", model.ffn_dim),
            ("model.vocab_size", model.vocab_size),
            ("data.sequence_length", self.data.sequence_length),
        ):
            if size % parallel.tensor:
                raise ConfigError(path, size, f"a multiple of parallel.tensor = {parallel.tensor}")

    def _check_huggingface(self) -> None:
        """Refuse what only the transformer of our own has, and what quantised weights do not go with."""
        if self.model.kind != "huggingface":
            return
        for axis in ("tensor", "context", "pipeline", "expert"):
            if (size := getattr(self.parallel, axis)) > 1:
                raise ConfigError(f"parallel.{axis}", size, "1 when model.kind is huggingface; shard it with fsdp or a ZeRO stage instead")
        if self.model.adapter.kind == "qlora" and self.engine.kind != "ddp":
            raise ConfigError("engine.kind", self.engine.kind, "ddp when model.adapter.kind is qlora: quantised weights are not sharded")
        if self.model.adapter.kind == "qlora" and self.model.huggingface.weights == "random":
            raise ConfigError("model.huggingface.weights", "random", "pretrained when model.adapter.kind is qlora")

    def _check_context(self) -> None:
        parallel, length = self.parallel, self.data.sequence_length
        if parallel.context == 1:
            return
        if self.model.num_experts is not None:
            allowed = "1 when model.num_experts is set: capacity and balance are taken over whole samples"
            raise ConfigError("parallel.context", parallel.context, allowed)
        if parallel.pipeline > 1:
            raise ConfigError("parallel.context", parallel.context, "1 when parallel.pipeline is above 1")
        if self.model.document_end is not None:
            allowed = "nothing when parallel.context is above 1: a rank sees only its part of where documents end"
            raise ConfigError("model.document_end", self.model.document_end, allowed)
        if length % (parallel.context * parallel.tensor):
            allowed = f"a multiple of parallel.context {parallel.context} x parallel.tensor {parallel.tensor}"
            raise ConfigError("data.sequence_length", length, allowed)

    def _check_experts(self) -> None:
        expert, model = self.parallel.expert, self.model
        if expert > 1 and model.num_experts is None:
            raise ConfigError("parallel.expert", expert, "1 when model.num_experts is nothing: the model has no experts")
        if expert > 1 and model.num_experts and model.num_experts % expert:
            raise ConfigError("parallel.expert", expert, f"a divisor of model.num_experts = {model.num_experts}")

    def _check_pipeline(self) -> None:
        parallel, model = self.parallel, self.model
        if parallel.pipeline == 1:
            return
        stages = parallel.pipeline * parallel.stages_per_rank
        if model.num_layers < stages:
            allowed = (
                f"at least parallel.pipeline {parallel.pipeline} x stages_per_rank {parallel.stages_per_rank} = {stages}, one per stage"
            )
            raise ConfigError("model.num_layers", model.num_layers, allowed)
        if model.document_end is not None:
            allowed = "nothing when parallel.pipeline is above 1: only the first stage sees where documents end"
            raise ConfigError("model.document_end", model.document_end, allowed)
        if self.engine.sync_gradients != "step":
            allowed = "step when parallel.pipeline is above 1: a stage's gradients are summed after its last micro-batch"
            raise ConfigError("engine.sync_gradients", self.engine.sync_gradients, allowed)

    def _check_micro_batches(self, plan: BatchPlan) -> None:
        """Refuse a pipeline that its micro-batches do not fill."""
        parallel = self.parallel
        if plan.accumulation < parallel.pipeline:
            allowed = f"at least parallel.pipeline = {parallel.pipeline}: as many micro-batches are on the way at once"
        elif parallel.stages_per_rank > 1 and plan.accumulation % parallel.pipeline:
            allowed = f"a multiple of parallel.pipeline = {parallel.pipeline} when stages_per_rank is above 1: micro-batches go in rounds"
        else:
            return
        raise ConfigError("batch.accumulation", plan.accumulation, allowed)

    @property
    def decay_steps(self) -> int:
        """Optimizer step at which the learning rate reaches its floor."""
        return self.schedule.decay_steps or self.steps

    @property
    def run_directory(self) -> Path:
        """Folder of this run's checkpoints and metrics."""
        return Path(self.checkpoint.directory) / self.name

    def layout(self, world_size: int, ranks_per_node: int | None = None) -> Layout:
        """The mesh on this many ranks, and on nodes of this size where that is known.

        Raises ConfigError naming the axis that does not fit.
        """
        parallel = self.parallel
        layout = plan_layout(
            world_size,
            sharded=self.engine.kind == "fsdp",
            replicate=parallel.replicate,
            shard=parallel.shard,
            tensor=parallel.tensor,
            pipeline=parallel.pipeline,
            context=parallel.context,
            expert=parallel.expert,
        )
        if ranks_per_node is not None:
            check_nodes(layout, ranks_per_node)
        alike = layout.shard // layout.expert
        if layout.expert > 1 and layout.expert_axis == "shard" and self.model.dim % alike:
            raise ConfigError("model.dim", self.model.dim, f"a multiple of the {alike} shard ranks that hold the same experts")
        return layout

    def plan_batch(self, world_size: int) -> BatchPlan:
        """The batch identity on this many ranks. Raises ConfigError naming all the numbers if they do not fit."""
        batch = self.batch
        try:
            plan = plan_batch(
                replicas=self.layout(world_size).replicas,
                micro=batch.micro,
                accumulation=batch.accumulation,
                global_batch=batch.global_batch,
            )
        except BatchError as error:
            raise ConfigError("batch", self.batch.to_mapping(), str(error)) from None
        self._check_micro_batches(plan)
        return plan

    def to_json(self) -> str:
        """The configuration as a JSON text that `from_json` reads back to an equal one."""
        return json.dumps(self.to_mapping(), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str, overrides: Iterable[str] = ()) -> Self:
        """Read a JSON text, with `path.to.key=value` overrides on top. Raises ConfigError."""
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise ConfigError("(the whole file)", text[:40], f"valid JSON; {error}") from None
        if not isinstance(values, dict):
            raise ConfigError("(the whole file)", text[:40], "a JSON object of settings")
        for override in overrides:
            apply_override(values, override)
        return cls.from_mapping(values)
