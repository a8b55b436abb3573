"""DeepSpeed's features: what works beside what."""

from guardrails.deepspeed_fields import bf16_of, numeric, stage_of, truth, whole
from guardrails.facts import load
from guardrails.rule import Report, Resource

_FACTS = load("deepspeed")


def together(config: Resource, report: Report) -> None:
    """DSP06: nothing is on that does not work beside the rest."""
    stage = stage_of(config)
    with report.part():
        stages = config.at("pipeline", "stages")
        if stage >= 2 and (stages.integer() or 0) > 1:
            report.refuse(config, config.at("zero_optimization", "stage"), allowed="0 or 1 with pipeline stages")
    for check in (_untested, _without_norm, _summed, _half_masters, _scaled_before, _contiguous):
        with report.part():
            check(config, stage, report)
    with report.part():
        if stage == 3 and config.at("expert_parallel", "enabled").value:
            _experts(config, report)


def _untested(config: Resource, stage: int, report: Report) -> None:
    optimizer = config.at("optimizer", "type").text()
    known = optimizer.lower() in _FACTS["optimizers"] or optimizer in _FACTS["torchOptimizers"]
    # DeepSpeed asks this key only whether it is something.
    if stage and known and optimizer.lower() not in _FACTS["zeroOptimizers"] and not config.at("zero_allow_untested_optimizer").value:
        allowed = f"true: DeepSpeed has tested ZeRO with {', '.join(_FACTS['zeroOptimizers'])}, not with {optimizer}"
        report.refuse(config, config.at("zero_allow_untested_optimizer"), allowed=allowed)


def _without_norm(config: Resource, stage: int, report: Report) -> None:
    zero = config.at("zero_optimization")
    norm, clipping, device = zero.at("compute_grad_norm"), config.at("gradient_clipping"), zero.at("offload_optimizer", "device")
    if truth(norm.value) is not False:
        return
    if stage not in (1, 2):
        report.refuse(config, norm, allowed=f"true under stage {stage}: only stages 1 and 2 can do without the norm")
        return
    if (numeric(clipping.value if clipping.present else _FACTS["defaultClipping"]) or 0) > 0:
        report.refuse(config, clipping, allowed=f"0 with compute_grad_norm: false; DeepSpeed's default is {_FACTS['defaultClipping']:g}")
    if device.present and device.text() != "none":
        report.refuse(config, device, allowed="none with compute_grad_norm: false")
    if zero.at("zenflow").present:
        report.refuse(config, zero.at("zenflow"), allowed="nothing with compute_grad_norm: false", found="set")


def _summed(config: Resource, stage: int, report: Report) -> None:
    operation = config.at("gradient_allreduce_op")
    if operation.text().lower() != "sum":
        return
    beside = (
        ("ZeRO stage 3", stage == 3),
        ("ZenFlow", config.at("zero_optimization", "zenflow").present),
        ("DeepCompile", truth(config.at("compile", "deepcompile").value)),
    )
    for feature, used in beside:
        if used:
            report.refuse(config, operation, allowed=f"mean with {feature}")


def _scaled_before(config: Resource, stage: int, report: Report) -> None:
    """Where reduce-scatter sums the gradients, DeepSpeed can scale them only afterwards."""
    scatter, operation = config.at("zero_optimization", "reduce_scatter"), config.at("gradient_allreduce_op").text().lower()
    if stage < 2 or truth(scatter.value) is False or (stage == 2 and operation == "sum"):
        return
    before, factor = config.at("prescale_gradients"), config.at("gradient_predivide_factor")
    if before.value:
        report.refuse(config, before, allowed=f"false under stage {stage}, or zero_optimization.reduce_scatter false")
    if factor.present and factor.value != 1:
        report.refuse(config, factor, allowed=f"1 under stage {stage}, or zero_optimization.reduce_scatter false")


def _contiguous(config: Resource, _: int, report: Report) -> None:
    section = config.at("activation_checkpointing")
    if not section.at("contiguous_memory_optimization").value:
        return
    # Megatron's programs give both to deepspeed.checkpointing.configure, which goes before the file.
    for name, allowed in (("partition_activations", "true"), ("number_checkpoints", "the number of checkpointed layers")):
        with report.part():
            if not section.at(name).value:
                because = "because contiguous_memory_optimization is on, unless the program gives it"
                report.advise(config, section.at(name), allowed=f"{allowed}, {because}")


def _half_masters(config: Resource, stage: int, report: Report) -> None:
    masters = bf16_of(config).at("bf16_master_weights_and_grads")
    for node in (config.at("fp16", "fp16_master_weights_and_grads"), masters, bf16_of(config).at("bf16_optimizer_states")):
        with report.part():
            if truth(node.value) and stage == 0:
                report.refuse(config, node, allowed="false without ZeRO; stages 1 to 3 have master weights of their own")
    with report.part():
        states = bf16_of(config).at("bf16_optimizer_states")
        if truth(states.value) and not truth(masters.value):
            report.refuse(config, states, allowed="false without bf16_master_weights_and_grads")


def _experts(config: Resource, report: Report) -> None:
    """What DeepSpeed does not divide experts beside in stage 3."""
    for place in (
        ("sequence_parallel_size",),
        ("zero_optimization", "zero_hpz_partition_size"),
        ("expert_parallel", "expert_tensor_parallel_size"),
    ):
        with report.part():
            size = config.at(*place)
            if (whole(size.value) or 1) > 1:
                report.refuse(config, size, allowed="1 with expert_parallel under stage 3")
    with report.part():
        quantized = config.at("zero_optimization", "zero_quantized_gradients")
        if truth(quantized.value):
            report.refuse(config, quantized, allowed="false with expert_parallel under stage 3")
