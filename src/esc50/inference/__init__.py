"""What a trained model says of any sound."""
