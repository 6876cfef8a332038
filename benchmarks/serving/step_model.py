# SPDX-License-Identifier: Apache-2.0
"""The time of one step of a serving engine, and the times to tokens that follow from it.

A step computes new tokens of prompts and one token for every running request. Its time is a sum of kernels, each
the rounded maximum of arithmetic and memory traffic, of collectives, and of fixed times. Functions work on numbers
and on numpy arrays of the same shape. Sizes are bytes, rates bytes or operations per second, times seconds.

Arguments: m is a model (fields as in models.json, 0 if absent), g a GPU (gpus.json), c the coefficients. r is a
replica: degrees `tensor` and `data` of attention, `expert` and `expert_tensor` of experts, each product the number
of GPUs; bytes per parameter and tensor-core peaks of the attention matrices, of dense and shared feed-forward
matrices (`mlp`) and of experts; bytes per number in the cache.
"""

from __future__ import annotations

import numpy as np

STEP_TOKENS = 8192  # tokens of prompts in a step, at most: the default of the engines for these models

COEFFICIENTS = {  # value before the fit, unit, meaning
    "gemm_bandwidth": (0.75, "fraction", "memory bandwidth that dense matrices reach"),
    "gemm_compute": (0.6, "fraction", "tensor-core peak that dense matrices reach"),
    "expert_bandwidth": (0.6, "fraction", "memory bandwidth that experts reach"),
    "expert_compute": (0.4, "fraction", "tensor-core peak that experts reach, uneven load included"),
    "cache_bandwidth": (0.6, "fraction", "memory bandwidth that attention reaches if it reads the cache"),
    "attention_compute": (0.4, "fraction", "BF16 peak that attention reaches"),
    "token_bandwidth": (0.5, "fraction", "memory bandwidth of norms, rotations and residuals"),
    "link": (0.65, "fraction", "link bandwidth that collectives reach"),
    "collective_s": (8e-6, "s", "fixed time of a collective of 2 GPUs"),
    "collective_growth": (0.3, "exponent", "growth of that time with the number of GPUs"),
    "layer_s": (2.5e-5, "s", "fixed time of a layer: launches and small kernels"),
    "expert_layer_s": (2e-5, "s", "additional fixed time of a layer with experts: routing, sorting"),
    "step_s": (1e-3, "s", "fixed time of a step: scheduling, sampling"),
    "interference": (1.0, "factor", "time that running requests lose to a prompt, in times of the prompt"),
    "request_s": (0.03, "s", "time outside the engine until the client has the first token"),
    "transfer_s": (0.05, "s", "time to hand a prompt from a prefill to a decode worker"),
    "stream": (3.0, "tokens", "tokens that the engine sends together"),
    "start": (0.1, "fraction", "requests of a measurement that arrive together at its start"),
    "memory": (0.9, "fraction", "GPU memory for weights and cache"),
}


def roofline(operations, peak, size, bandwidth):
    """Seconds of a kernel that is bound by arithmetic or by memory, rounded where both take as long."""
    return np.hypot(operations / peak, size / bandwidth)


def attention_parameters(m, tensor):
    """Parameters per GPU of the projections of a softmax attention layer."""
    grouped = m.hidden * m.head_size * (
        m.heads * (2 + m.gated) / tensor + 2 * m.kv_heads / np.minimum(tensor, m.kv_heads)
    )
    every_gpu = m.hidden * (m.q_lora_rank + m.kv_lora_rank + m.rope_size + m.index_size + m.index_heads)
    every_gpu = every_gpu + m.q_lora_rank * m.index_heads * m.index_size
    queries = np.where(m.q_lora_rank > 0, m.q_lora_rank, m.hidden)
    heads = queries * (m.nope_size + m.rope_size) + m.kv_lora_rank * (m.nope_size + m.value_size)
    latent = every_gpu + m.heads / tensor * (heads + m.value_size * m.hidden)
    return np.where(m.kv_lora_rank > 0, latent, grouped)


def parameters(m, r):
    """Parameters per GPU of (attention, dense and shared feed-forward layers, one expert, an embedding)."""
    dense_layers = np.where(m.experts > 0, m.first_dense, m.layers)
    linear = m.hidden * m.linear_size * (2 * m.linear_key_heads + 3 * m.linear_value_heads) / r.tensor
    attention = (m.layers - m.linear_layers) * attention_parameters(m, r.tensor) + m.linear_layers * linear
    shared = (m.layers - dense_layers) * m.shared_experts * m.moe_intermediate
    mlp = 3 * m.hidden * (dense_layers * m.intermediate + shared) / r.tensor
    expert = 3 * m.hidden * m.moe_intermediate / r.expert_tensor
    return attention, mlp, expert, m.vocabulary * m.hidden / r.tensor


def expert_layers(m):
    return np.where(m.experts > 0, m.layers - m.first_dense, 0)


def softmax_layers(m):
    """Layers whose attention sees the whole context."""
    return m.layers - m.linear_layers - m.window_layers


def cache_entry_bytes(m, r):
    """Bytes per GPU that a token leaves in the cache of a softmax layer; latent caches are on every GPU."""
    latent = m.kv_lora_rank + m.rope_size
    grouped = 2 * m.kv_heads * m.head_size / np.minimum(r.tensor, m.kv_heads)
    return np.where(latent > 0, latent, grouped) * r.cache_bytes


def linear_state(m, r):
    """Numbers per GPU in the state of a sequence in a layer of linear attention."""
    return m.linear_value_heads * m.linear_size**2 / r.tensor


def step_parts(m, g, r, c, prompt, ranks, context, sequences, cached):
    """Seconds of the parts of one step.

    On each of `ranks` ranks of data-parallel attention the step computes `prompt` new tokens of prompts, which
    attend to `context` tokens on average. For each of `sequences` sequences of the replica, which have `cached`
    tokens in the cache, it computes one token.
    """
    gpus = r.tensor * r.data
    tokens = prompt * ranks + sequences  # of the replica
    own = prompt + sequences / r.data  # of a rank
    running = sequences / r.data

    attention, mlp, expert, head = parameters(m, r)
    compute, bandwidth = c.gemm_compute, g.bandwidth * c.gemm_bandwidth
    dense = (
        roofline(2 * attention * own, r.attention_peak * compute, attention * r.attention_bytes, bandwidth)
        + roofline(2 * mlp * own, r.mlp_peak * compute, mlp * r.mlp_bytes, bandwidth)
        + roofline(2 * head * running, g.bf16 * compute, head * 2, bandwidth)
    )

    # A token meets top_k of the experts; a GPU reads those of its experts that at least one token meets.
    missed = tokens * np.log1p(-m.top_k / np.maximum(m.experts, 1))
    touched = m.experts / r.expert * -np.expm1(missed)
    experts = expert_layers(m) * roofline(
        2 * expert * m.top_k * tokens / r.expert, r.expert_peak * c.expert_compute,
        touched * expert * r.expert_bytes, g.bandwidth * c.expert_bandwidth,
    )  # fmt: skip

    # With an index, attention reads the best index_top_k tokens, after a pass over the index (in FP8).
    peak = g.bf16 * c.attention_compute
    full, latent = softmax_layers(m), m.kv_lora_rank + m.rope_size
    best = np.where(m.index_top_k > 0, m.index_top_k, np.inf)
    seen = full * np.minimum(cached, best) + m.window_layers * np.minimum(cached, m.window)
    read = seen * cache_entry_bytes(m, r) + full * cached * m.index_size
    read = read + 8 * m.linear_layers * linear_state(m, r)  # read and written in FP32
    width = np.where(latent > 0, m.kv_lora_rank + latent, 2 * m.head_size)
    operations = 2 * m.heads * width / r.tensor * seen + 2 * full * cached * m.index_heads * m.index_size
    decode = running * roofline(operations, peak, read, g.bandwidth * c.cache_bandwidth)

    seen = full * np.minimum(context, best) + m.window_layers * np.minimum(context, m.window)
    width = np.where(latent > 0, m.nope_size + m.rope_size + m.value_size, 2 * m.head_size)
    operations = 2 * m.heads * width / r.tensor * seen
    operations = operations + 2 * full * context * m.index_heads * m.index_size / r.tensor
    prefill = prompt * (operations + 8 * m.linear_layers * linear_state(m, r)) / peak

    # Norms, residuals and rotations read or write the hidden vector about 8 times a layer; activations enter and
    # leave each matrix. 2 bytes a number.
    width = 8 * m.layers * m.hidden + (attention + mlp) / m.hidden
    moved = own * width + tokens * m.top_k / r.expert * expert_layers(m) * expert / m.hidden
    other = 2 * moved / (g.bandwidth * c.token_bandwidth)

    # Two all-reduces a layer; with data-parallel attention, tokens go to their experts and back (FP8, BF16).
    # Switches of NVLink add up the numbers that they receive, so that each crosses a link once.
    link = np.where(gpus > g.linked, g.network, g.link) * c.link
    start = c.collective_s * (gpus / 2) ** c.collective_growth
    all_reduce = np.where(g.link >= 4.5e11, 1, 2 * (gpus - 1) / gpus)
    copies = np.where(r.data > 1, 0.75 * np.minimum(m.top_k, gpus - 1), all_reduce)
    collectives = np.where(gpus > 1, 2 * m.layers * (start + copies * own * m.hidden * 2 / link), 0)

    fixed = c.step_s + c.layer_s * m.layers + c.expert_layer_s * expert_layers(m)
    return {
        "dense": dense, "experts": experts, "decode": decode, "prefill": prefill, "other": other,
        "collectives": collectives, "fixed": fixed,
    }  # fmt: skip


def step_seconds(*arguments):
    return sum(step_parts(*arguments).values())


def decode_seconds(m, g, r, c, sequences, input_tokens, output_tokens):
    return step_seconds(m, g, r, c, 0.0, 0.0, 0.0, sequences, input_tokens + output_tokens / 2)


def prompt_seconds(m, g, r, c, input_tokens, prompts, ranks):
    """Seconds of a step that computes `prompts` prompts on each of `ranks` ranks."""
    return step_seconds(m, g, r, c, prompts * input_tokens, ranks, input_tokens / 2, prompts * ranks, 0.0)


def full_batch_seconds(m, g, r, c, input_tokens):
    """Seconds of a replica per prompt if every step is full of prompts."""
    prompts = np.maximum(1.0, STEP_TOKENS / input_tokens)
    return prompt_seconds(m, g, r, c, input_tokens, prompts, r.data) / (prompts * r.data)


def most_sequences(m, g, r, c, input_tokens, output_tokens):
    """Sequences of a replica whose cache fits into memory on average, at least 1."""
    attention, mlp, expert, head = parameters(m, r)
    weights = attention * r.attention_bytes + mlp * r.mlp_bytes + 2 * head * 2
    weights = weights + expert_layers(m) * m.experts / r.expert * expert * r.expert_bytes
    tokens, full = input_tokens + output_tokens / 2, softmax_layers(m)
    each = (full * tokens + m.window_layers * np.minimum(tokens, m.window)) * cache_entry_bytes(m, r)
    each = each + full * tokens * m.index_size + 4 * m.linear_layers * linear_state(m, r)
    return np.maximum(1.0, (g.memory * c.memory - weights) / each * r.data)


def aggregated(m, g, r, c, concurrency, input_tokens, output_tokens):
    """(time to first token, time per output token) of a replica that prefills and decodes.

    `concurrency` clients send their next request as soon as the last one is answered. Each running request loses
    time to the prompts of the others: one prompt of each in the life of a request. Requests beyond the memory
    wait for a place.
    """
    batched = full_batch_seconds(m, g, r, c, input_tokens)
    most = np.minimum(concurrency, most_sequences(m, g, r, c, input_tokens, output_tokens))
    batch, load = most, 0.5  # running requests; share of the time that prompts take
    for _ in range(4):
        ranks = 1 + (r.data - 1) * load  # that compute a prompt at the same time
        prompt = prompt_seconds(m, g, r, c, input_tokens, 1.0, ranks)
        lost = c.interference * prompt / ranks
        token = decode_seconds(m, g, r, c, batch, input_tokens, output_tokens)
        token = token + np.maximum(batch - 1, 0) * lost / output_tokens
        load = np.minimum(batch * lost / (output_tokens * token), 1.0)
        wait = c.start * np.maximum(most - 1, 0) / 2 * batched
        first = c.request_s + prompt + c.stream * token + wait
        life = first + output_tokens * token
        batch = most * output_tokens * token / life
    return first + (concurrency / most - 1) * life, token


def disaggregated(m, g, p, d, c, concurrency, prefill_workers, decode_workers, input_tokens, output_tokens):
    """The same for prefill workers p and decode workers d, which share `concurrency` clients.

    If prompts are the bottleneck, requests wait for them and fewer are running.
    """
    batched = full_batch_seconds(m, g, p, c, input_tokens)
    places = decode_workers * most_sequences(m, g, d, c, input_tokens, output_tokens)
    most = np.minimum(concurrency, places)
    batch, load = most, 0.5
    for _ in range(6):
        ranks = 1 + (p.data - 1) * load
        prompt = prompt_seconds(m, g, p, c, input_tokens, 1.0, ranks)
        token = decode_seconds(m, g, d, c, batch / decode_workers, input_tokens, output_tokens)
        load = np.minimum(batch / prefill_workers * batched / (output_tokens * token), 1.0)
        wait = c.start * np.maximum(most / prefill_workers - 1, 0) / 2 * batched
        first = c.request_s + c.transfer_s + prompt + c.stream * token + wait
        starved = np.maximum(most / prefill_workers * batched - output_tokens * token, 0)
        first = np.hypot(first, starved)
        life = first + output_tokens * token
        batch = (batch + most * output_tokens * token / life) / 2
    return first + (concurrency / most - 1) * life, token
