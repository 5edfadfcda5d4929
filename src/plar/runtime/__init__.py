"""What every part runs on: limits, threads, compiled kernels, interrupts, calls to Spark."""
