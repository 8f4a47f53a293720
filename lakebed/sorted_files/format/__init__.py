"""What the wings share: keys as bytes, schemas as Arrow's, and what a file says about itself."""
