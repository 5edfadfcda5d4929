"""The CUDA engine. `columns` holds the table on the GPU, `partition` refines U/R there, `kernels` count."""

from __future__ import annotations

from plar.engines.cuda.engine import CudaEngine, CudaEvaluation, why_unavailable

__all__ = ["CudaEngine", "CudaEvaluation", "why_unavailable"]
