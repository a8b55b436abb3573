"""One lease of a GPU: the rate of its matrix products, and what the trainer gets out of it plain, with FSDP2 and with ZeRO-3 at world 1.

    python -m benchmarks.gpu [--size 1b|3b|tiny] [--micro 8] [--length 2048] [--steps 30] [--engines plain,fsdp,zero3] [--output FILE]

Each engine trains the same model in bf16 without recomputation in a process of its own, through `training.train`; the median of the steps
after the first ten counts. Goals: plain at least 0.60 of the matrix rate of the same run, FSDP2 and ZeRO-3 within 5 % of plain. On a CPU
(--size tiny) it shows that the script works, and the goals say nothing.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.training_python import rerun_there
from training.history import read_history

UTILISATION_GOAL = 0.60
ENGINE_GOAL = 0.95
ENGINES = {"plain": {"kind": "ddp"}, "fsdp": {"kind": "fsdp"}, "zero3": {"kind": "deepspeed", "zero_stage": 3}}
# Heads of 128, the size that attention kernels are best at.
SIZES = {
    "tiny": {"dim": 64, "num_layers": 2, "num_heads": 4, "num_kv_heads": 2, "ffn_dim": 128, "vocab_size": 512},
    "1b": {"dim": 2048, "num_layers": 22, "num_heads": 16, "num_kv_heads": 8, "ffn_dim": 5632, "vocab_size": 32768},
    "3b": {"dim": 3072, "num_layers": 26, "num_heads": 24, "num_kv_heads": 8, "ffn_dim": 8192, "vocab_size": 32768},
}
_MATMUL_SIZES = {"cuda": (8192, 50), "cpu": (256, 3)}
_SETTLED_AFTER = 10


def main(arguments: Sequence[str]) -> int:
    """Measure, print a table and JSON, and give 0 if every engine ran and, on a GPU, the goals are met."""
    options = _parse(arguments)
    with tempfile.TemporaryDirectory(prefix="trainyard-gpu-") as name:
        folder = Path(name)
        (folder / "corpus").write_bytes(os.urandom(4_000_000))
        _import_everything(options.engines)
        # This process never opens the device: memory of one engine would be missing for the next.
        results = in_child(lambda: measure_matmul(folder / "matmul.json"), folder / "matmul.json")
        for engine in options.engines:
            results[engine] = run_engine(engine, folder, options)
    print(_table(results, options))
    print(json.dumps(results | {"verdict": verdict(results)}))
    if options.output:
        options.output.write_text(json.dumps(results, indent=1) + "\n")
    ran = all("error" not in results[engine] for engine in options.engines)
    return 0 if ran and (results["device"] == "cpu" or all(verdict(results).values())) else 1


def measure_matmul(output: Path) -> int:
    """The best rate of a square bf16 product, in TFLOP/s."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    size, repetitions = _MATMUL_SIZES[device]
    left, right = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    best = float("inf")
    for _ in range(5):
        _synchronize(device)
        started = time.perf_counter()
        for _ in range(repetitions):
            left @ right
        _synchronize(device)
        best = min(best, (time.perf_counter() - started) / repetitions)
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    output.write_text(json.dumps({"device": device, "name": name, "matmul_tflops": 2 * size**3 / best / 1e12}))
    return 0


def run_engine(engine: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Train with one engine; gives tokens and operations per second, memory, or the error."""
    from training.config import TrainConfig
    from training.flops import flops_per_token
    from training.train import main as train

    if engine == "zero3" and not importlib.util.find_spec("deepspeed"):
        return {"error": "deepspeed is not installed here"}
    settings = configuration(engine, folder, options)
    file = folder / f"{engine}.json"
    file.write_text(json.dumps(settings))
    metrics = folder / engine / "metrics.jsonl"
    outcome = in_child(lambda: train(["--config", str(file)]), metrics, parse=False)
    if "error" in outcome:
        return outcome
    history = read_history(metrics)
    settled = [record for step, record in sorted(history.steps.items()) if step > min(_SETTLED_AFTER, options.steps // 2)]
    rate = median(record["tokens_per_second"] for record in settled)
    operations = flops_per_token(TrainConfig.from_mapping(settings).model, options.length)
    memory = max(record["memory_mib"] for record in settled)
    return {"tokens_per_second": rate, "model_tflops": rate * operations / 1e12, "memory_mib": memory, "last_loss": history.last_loss}


def configuration(engine: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The run of one engine."""
    return {
        "name": engine,
        "steps": options.steps,
        "log_every": 10,
        "model": SIZES[options.size] | {"compile": options.compile},
        "data": {"files": [str(folder / "corpus")], "sequence_length": options.length},
        "batch": {"micro": options.micro, "accumulation": options.accumulation},
        "engine": ENGINES[engine] | {"precision": "bf16"},
        "schedule": {"warmup_steps": min(5, options.steps - 1)},
        "evaluation": {"every": 0, "samples": 1},
        "checkpoint": {"directory": str(folder), "every": 0, "keep": 2},
    }


def verdict(results: dict[str, Any]) -> dict[str, bool]:
    """Which goals are met, of the engines that ran."""
    ran = {engine: results[engine] for engine in ENGINES if "error" not in results.get(engine, {"error": ""})}
    met = {}
    if "plain" in ran:
        met["plain"] = ran["plain"]["model_tflops"] >= UTILISATION_GOAL * results["matmul_tflops"]
        for engine in ran.keys() - {"plain"}:
            met[engine] = ran[engine]["tokens_per_second"] >= ENGINE_GOAL * ran["plain"]["tokens_per_second"]
    return met


def in_child(work: Callable[[], int], output: Path, *, parse: bool = True) -> dict[str, Any]:
    """Run the work in a forked process; gives the JSON that it wrote, or how it ended."""
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        code = 1
        with contextlib.suppress(SystemExit):
            code = work()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code or not output.exists():
        return {"error": f"ended with {code}"}
    return json.loads(output.read_text()) if parse else {}


def _import_everything(engines: Sequence[str]) -> None:
    """Once for all children, without opening the device."""
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    from training.config import EngineConfig, TrainConfig
    from training.warm import import_everything

    for engine in engines:
        if engine != "zero3" or importlib.util.find_spec("deepspeed"):
            import_everything(TrainConfig(name="gpu", steps=100, engine=EngineConfig.from_mapping(ENGINES[engine])))


def _synchronize(device: str) -> None:
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


def _table(results: dict[str, Any], options: argparse.Namespace) -> str:
    rows = [f"{results['name']}: bf16 matrix product {results['matmul_tflops']:.1f} TFLOP/s; model {options.size}, {options.length} tokens"]
    for engine in options.engines:
        result = results[engine]
        if "error" in result:
            rows.append(f"{engine:6} {result['error']}")
            continue
        share = result["model_tflops"] / results["matmul_tflops"]
        rows.append(
            f"{engine:6} {result['tokens_per_second']:12,.0f} tokens/s {result['model_tflops']:9.2f} TFLOP/s = {share:.2f} of the product, "
            f"{result['memory_mib']:.0f} MiB, loss {result['last_loss']:.4f}"
        )
    return "\n".join(rows)


def _engines(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in ENGINES]
    if unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: engines are {', '.join(ENGINES)}")
    return names


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description="Matrix rate and the trainer's share of it, on one GPU.")
    parser.add_argument("--size", choices=sorted(SIZES), default="1b")
    parser.add_argument("--micro", type=int, default=8, help="samples per step and micro-batch")
    parser.add_argument("--accumulation", type=int, default=1)
    parser.add_argument("--length", type=int, default=2048, help="tokens per sample")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--engines", type=_engines, default=list(ENGINES), help="some of " + ",".join(ENGINES))
    parser.add_argument("--compile", action="store_true", help="compile the blocks")
    parser.add_argument("--output", type=Path, help="JSON file for the results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    rerun_there("benchmarks.gpu")
    sys.exit(main(sys.argv[1:]))
