"""Networks: a dict of `logits` `[batch, classes]` and `embedding` `[batch, features]` out of one input tensor.

Every network has an attribute `head`, the part that is new for each set of classes; all the rest is its body.
"""
