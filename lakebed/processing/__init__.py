"""What is done with rows beside sorting them: filters, aggregation, iterators. Batches in, out."""
