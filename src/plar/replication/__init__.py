"""Whether a reduct or a selection still stands on new rows."""
