"""The CUDA engine: `columns` on the GPU, `partition` and `sorting` refine U/R there, `kernels` and `hashing` count."""

from __future__ import annotations

from plar.engines.cuda.engine import CudaEngine, CudaEvaluation, why_unavailable

__all__ = ["CudaEngine", "CudaEvaluation", "why_unavailable"]
