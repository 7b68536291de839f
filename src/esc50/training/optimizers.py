"""Parameter groups for differential learning rates, and freezing of the body."""

from torch import nn


def layer_groups(model: nn.Module) -> dict[str, list[nn.Parameter]]:
    """Parameters by depth: `head` is `model.head`, `early` and `late` are the two halves of the body in its own order."""
    head = list(model.get_submodule("head").parameters())
    of_head = {id(parameter) for parameter in head}
    body = [parameter for parameter in model.parameters() if id(parameter) not in of_head]
    half = len(body) // 2
    return {"head": head, "late": body[half:], "early": body[:half]}


def parameter_groups(model: nn.Module, *, lr: float, lr_ratio: dict[str, float]) -> list[dict]:
    """Groups for an optimiser: `lr` is the head's rate, `lr_ratio` what part of it each group gets (Howard and Ruder
    2018, arXiv 1801.06146). Groups carry their `name`; empty ones are left out."""
    return [
        {"params": parameters, "lr": lr * lr_ratio[name], "name": name}
        for name, parameters in layer_groups(model).items()
        if parameters
    ]


def set_body_frozen(model: nn.Module, frozen: bool) -> None:
    """Freeze all but the head, or unfreeze it. A frozen body needs no gradients and is in evaluation mode, since batch
    normalisation would go on moving its running statistics otherwise."""
    head = model.get_submodule("head")
    of_head = {id(parameter) for parameter in head.parameters()}
    for parameter in model.parameters():
        if id(parameter) not in of_head:
            parameter.requires_grad_(not frozen)
    if frozen:
        training = head.training
        model.eval()
        head.train(training)
