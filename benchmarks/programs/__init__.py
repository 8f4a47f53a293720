"""What is measured of ours in processes of their own."""
