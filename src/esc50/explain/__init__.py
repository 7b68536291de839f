"""What a trained model's decision rests upon."""
