"""Lightning callbacks and pages for TensorBoard, each answering one question."""
