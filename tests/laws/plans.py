"""Random events of every kind, for the property tests of accounting."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

from discreet.accounting import events as ev
from discreet.exact import Exact, Ln

rationals = st.fractions(min_value=Fraction(1, 50), max_value=5, max_denominator=60)
noises = st.fractions(min_value=Fraction(1, 2), max_value=50, max_denominator=12)
deltas = st.sampled_from([Fraction(1, 10**9), Fraction(1, 10**7), Fraction(1, 10**4)])
counts = st.integers(min_value=1, max_value=6)


def epsilons() -> st.SearchStrategy[Exact]:
    logs = st.fractions(min_value=Fraction(21, 20), max_value=9, max_denominator=20)
    return st.one_of(rationals, logs.map(Ln))


def pure_events() -> st.SearchStrategy[ev.Event]:
    """Events that have a pure ε."""
    whole = st.integers(min_value=1, max_value=4)
    return st.one_of(
        st.builds(ev.Laplace, sensitivity=rationals, scale=noises, count=counts),
        st.builds(ev.DiscreteLaplace, sensitivity=whole, scale=noises, count=counts),
        st.builds(ev.RandomizedResponse, epsilon=epsilons(), categories=st.integers(2, 9), count=counts),
        st.builds(ev.Exponential, epsilon=epsilons(), count=counts),
        st.builds(ev.Pure, epsilon=epsilons(), count=counts),
    )


def gaussian_events() -> st.SearchStrategy[ev.Event]:
    whole = st.integers(min_value=1, max_value=9)
    return st.one_of(
        st.builds(ev.Gaussian, sensitivity=rationals, sigma=noises, count=counts),
        st.builds(ev.RoundedGaussian, squared_sensitivity=whole, variance=noises, count=counts),
    )


def plain_events() -> st.SearchStrategy[ev.Event]:
    """Events of every kind but Poisson samples."""
    whole = st.integers(min_value=1, max_value=9)
    zero = st.just(Fraction(0))
    return st.one_of(
        pure_events(),
        gaussian_events(),
        st.builds(
            ev.DiscreteGaussian, squared_sensitivity=whole, variance=noises, dimension=st.integers(1, 3), count=counts
        ),
        st.builds(ev.Approximate, epsilon=st.one_of(zero, epsilons()), delta=deltas, count=counts),
        st.builds(ev.ZeroConcentrated, rho=rationals, delta=st.one_of(zero, deltas), count=counts),
    )


def events() -> st.SearchStrategy[ev.Event]:
    """Events of every kind, Poisson samples included."""
    rates = st.fractions(min_value=Fraction(1, 1000), max_value=1, max_denominator=1000)
    return st.one_of(plain_events(), st.builds(ev.PoissonSampled, event=plain_events(), rate=rates, count=counts))
