from ttlcache import ExpiringCache, memoize


def make_price(cache, ttl=None):
    calls = []
    rates = {"EUR": 2, "USD": 3, "GBP": 5}

    @memoize(cache, ttl=ttl)
    def price(amount, currency="EUR"):
        calls.append((amount, currency))
        return amount * rates[currency]

    return price, calls


def test_same_call_runs_once():
    price, calls = make_price(ExpiringCache())
    assert [price(10), price(10), price(10)] == [20, 20, 20]
    assert calls == [(10, "EUR")]


def test_other_arguments_run_again():
    price, calls = make_price(ExpiringCache())
    assert [price(10), price(11)] == [20, 22]
    assert len(calls) == 2


def test_quotes_in_several_currencies():
    price, _ = make_price(ExpiringCache())
    quotes = [price(10, currency=code) for code in ("EUR", "USD", "GBP")]
    assert quotes == [20, 30, 50]


def test_results_expire():
    now = [0.0]
    price, calls = make_price(ExpiringCache(ttl=100, clock=lambda: now[0]), ttl=5)
    price(10)
    now[0] = 4.0
    price(10)
    assert len(calls) == 1
    now[0] = 5.0
    price(10)
    assert len(calls) == 2


def test_functions_share_a_cache_without_clashes():
    cache = ExpiringCache()

    @memoize(cache)
    def double(x):
        return 2 * x

    @memoize(cache)
    def triple(x):
        return 3 * x

    assert (double(4), triple(4)) == (8, 12)
    assert len(cache) == 2


def test_none_is_a_result_like_any_other():
    calls = []

    @memoize()
    def nothing():
        calls.append(1)

    assert nothing() is None
    assert nothing() is None
    assert len(calls) == 1
    assert nothing.cache.hits == 1
    assert nothing.uncached is not nothing
