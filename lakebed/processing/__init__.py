"""Works on rows beside sorting them: filters, aggregation, iterators. Batches in, out."""
