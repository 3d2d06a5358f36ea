"""Copies and sums over several devices, as in ``torch.cuda.comm``."""
