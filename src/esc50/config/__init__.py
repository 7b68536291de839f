"""The configuration: what each value must be, and the door where every problem is named at once."""
