import pytest

from pagein.providers.prices.price_lookup import Prices, prices
from pagein.testing.story import Story


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.fixture
def charged() -> Prices:
    return prices("generic:r=.1,w=1.25,min=1")
