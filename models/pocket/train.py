"""Train the pocket model: ``python -m models.pocket.train --steps 5000``, then a second course that
goes on from those weights with families of other packs: ``--start var/pocket/first --steps 2500``.

Deterministic for a seed and a thread count, and resumable: run the same command again and it
goes on from ``--work``. Loss is taken on the answer and its end-of-turn only. Hidden matrices
are trained with Muon, everything else with AdamW.
"""

import argparse
import json
import time
from pathlib import Path

import torch
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from models.pocket.data import IGNORED, Batch, batches_of_chunk, chunk_length
from models.pocket.lessons import LESSONS
from models.pocket.tokenizer import MAX_LENGTH, load_tokenizer, train_tokenizer
from packs.starter import tasks as starter

WEIGHTS_DIR = Path(__file__).parent / "weights"


def main() -> None:
    options = _options()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    options.work.mkdir(parents=True, exist_ok=True)
    if options.start:
        tokenizer = load_tokenizer(options.start)
        model = LlamaForCausalLM(model_config(tokenizer))
        model.load_state_dict(LlamaForCausalLM.from_pretrained(options.start).float().state_dict())
    else:
        tokenizer = _tokenizer(options.work, options.seed)
        model = LlamaForCausalLM(model_config(tokenizer))
    lessons = LESSONS if options.start else ()
    optimizers = _optimizers(model, scale=options.rate)
    step = _resume(options.work, model, optimizers)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters, from step {step}", flush=True)
    started, loss_sum = time.monotonic(), 0.0
    while step < options.steps:
        chunk = step // chunk_length()
        batches = batches_of_chunk(
            tokenizer,
            seed=options.seed,
            chunk=chunk,
            batch_size=options.batch,
            progress=chunk * chunk_length() / options.steps,
            lessons=lessons,
        )
        for batch in batches[step % chunk_length() :]:
            loss_sum += _train_step(model, optimizers, batch, _rate(step, options.steps))
            step += 1
            if step % 50 == 0:
                print(f"step {step} loss {loss_sum / 50:.4f} {time.monotonic() - started:.0f}s", flush=True)
                loss_sum = 0.0
            if step % options.save_every == 0 or step == options.steps:
                _save(options.work, model, optimizers, step)
            if step == options.steps:
                break
    export(model, tokenizer, options.out)


def model_config(tokenizer: PreTrainedTokenizerFast) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        head_dim=32,
        max_position_embeddings=MAX_LENGTH,
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.03,
    )


def export(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, out: Path) -> None:
    """Write half-precision safetensors, configuration, tokenizer and chat template to ``out``."""
    half = LlamaForCausalLM(model.config).half()
    half.load_state_dict({name: value.half() for name, value in model.state_dict().items()})
    half.save_pretrained(out)
    tokenizer.save_pretrained(out)
    # The template also goes into tokenizer_config.json, where older readers look for it.
    path = out / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    for name in ("is_local", "local_files_only"):  # facts of this save, not of the tokenizer
        settings.pop(name, None)
    settings |= {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": tokenizer.chat_template}
    path.write_text(json.dumps(settings, indent=2) + "\n")


def _train_step(
    model: LlamaForCausalLM, optimizers: list[torch.optim.Optimizer], batch: Batch, rate: float
) -> float:
    wanted = batch.labels[:, 1:] != IGNORED  # [B, T-1]
    hidden = model.model(input_ids=batch.input_ids).last_hidden_state  # [B, T, H]
    logits = model.lm_head(hidden[:, :-1][wanted])  # [answer tokens, V]; prompts need no logits
    losses = functional.cross_entropy(logits, batch.labels[:, 1:][wanted], reduction="none")
    weights = batch.weights[:, 1:][wanted]
    loss = (losses * weights).sum() / weights.sum()
    torch.autograd.backward(loss)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * rate
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return float(loss.detach())


def _rate(step: int, steps: int) -> float:
    """Linear warm-up over 50 steps, flat, then linear to a twentieth over the last 30 %."""
    return min(1.0, (step + 1) / 50, max(0.05, (steps - step) / (0.3 * steps)))


def _optimizers(model: LlamaForCausalLM, *, scale: float) -> list[torch.optim.Optimizer]:
    hidden = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    rest = [p for name, p in model.named_parameters() if p.ndim != 2 or "embed" in name]
    muon = torch.optim.Muon(hidden, lr=0.016 * scale, momentum=0.95, weight_decay=0.01)
    adam = torch.optim.AdamW(rest, lr=3e-3 * scale, betas=(0.9, 0.98), weight_decay=0.0)
    for optimizer in (muon, adam):
        for group in optimizer.param_groups:
            group["peak"] = group["lr"]
    return [muon, adam]


def _tokenizer(work: Path, seed: int) -> PreTrainedTokenizerFast:
    if (work / "tokenizer.json").exists():
        return load_tokenizer(work)
    texts: list[str] = []
    for family in starter.families():
        for task in starter.generate(family.name, seed=seed, count=1500, reserved=False):
            texts += [
                str(task.messages[0].content),
                starter.gold_answer(task),
                *starter.bad_answers(task).values(),
            ]
    tokenizer = train_tokenizer(texts)
    tokenizer.save_pretrained(work)
    return tokenizer


def _save(work: Path, model: LlamaForCausalLM, optimizers: list[torch.optim.Optimizer], step: int) -> None:
    state = {"step": step, "model": model.state_dict(), "optimizers": [o.state_dict() for o in optimizers]}
    torch.save(state, work / "checkpoint.tmp")
    (work / "checkpoint.tmp").replace(work / "checkpoint.pt")


def _resume(work: Path, model: LlamaForCausalLM, optimizers: list[torch.optim.Optimizer]) -> int:
    path = work / "checkpoint.pt"
    if not path.exists():
        return 0
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    for optimizer, saved in zip(optimizers, state["optimizers"], strict=True):
        optimizer.load_state_dict(saved)
    return int(state["step"])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--start", type=Path, help="weights of the first course; makes this the second")
    parser.add_argument("--rate", type=float, default=1.0, help="learning rates are multiplied by this")
    parser.add_argument("--save-every", type=int, default=250)
    parser.add_argument("--work", type=Path, default=Path("var/pocket"), help="checkpoint and tokenizer")
    parser.add_argument("--out", type=Path, default=WEIGHTS_DIR, help="where the finished weights go")
    return parser.parse_args()


if __name__ == "__main__":
    main()
