"""The distributions of ``xp.random``: functions that draw from the generator of the current device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda.emulation.random.calls import drawing

if TYPE_CHECKING:
    from typing import Any

    def __getattr__(name: str) -> Any: ...


FUNCTIONS = drawing(
    (
        *("beta", "binomial", "chisquare", "dirichlet", "exponential", "f", "gamma", "geometric", "gumbel"),
        *("hypergeometric", "laplace", "logistic", "lognormal", "logseries", "multivariate_normal"),
        *("negative_binomial", "noncentral_chisquare", "noncentral_f", "normal", "pareto", "poisson", "power"),
        *("rayleigh", "standard_cauchy", "standard_exponential", "standard_gamma", "standard_normal", "standard_t"),
        *("triangular", "uniform", "vonmises", "wald", "weibull", "zipf"),
    )
)

globals().update(FUNCTIONS)
