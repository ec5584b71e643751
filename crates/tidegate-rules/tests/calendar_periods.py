"""Prints the beginnings of calendar periods by zoneinfo, for the zones whose names are read from standard input.

Each line is one run of consecutive periods: the zone, the unit, the first day, and the beginnings in seconds since 1970.
A period begins at the first instant at which the clock of the zone shows its beginning or a later time.
"""

import sys
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

FIRST, LAST = 1970, 2100
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def first_shown(zone, civil):
    """Returns the second at which the clock shows this time, or the change that skips it."""
    early, late = (int(civil.replace(tzinfo=zone, fold=fold).timestamp()) for fold in (1, 0))
    if shown(zone, late) == civil:
        return late
    # The time is skipped, and the change lies between its readings by the offsets after and before the change.
    while early < late:
        middle = (early + late) // 2
        if shown(zone, middle) < civil:
            early = middle + 1
        else:
            late = middle
    return late


def shown(zone, second):
    return datetime.fromtimestamp(second, timezone.utc).astimezone(zone).replace(tzinfo=None)


def month_start(year, month, day):
    following = date(year + month // 12, month % 12 + 1, 1)
    return datetime(year, month, min(day, (following - DAY).day))


def runs(zone):
    """Yields the unit, the first day and the local beginnings of each run."""
    years = range(FIRST, LAST + 2)
    days = [datetime(FIRST, 1, 1) + DAY * day for day in range((date(LAST + 1, 1, 2) - date(FIRST, 1, 1)).days)]
    yield "day", 0, days
    for weekday in (0, 6):
        yield "week", weekday, [day for day in days if day.weekday() == weekday]
    for day in (1, 15, 31):
        yield "month", day, [month_start(year, month, day) for year in years for month in range(1, 13)]
    for month, day in ((1, 1), (4, 6), (2, 29)):
        yield "year", 100 * month + day, [month_start(year, month, day) for year in years]
    offset = None
    for day in days:
        last, offset = offset, day.replace(tzinfo=zone).utcoffset()
        if last is not None and offset != last:
            yield "hour", 0, [day - 4 * DAY + HOUR * hour for hour in range(7 * 24)]


for name in sys.stdin.read().split():
    zone = ZoneInfo(name)
    for unit, first_day, beginnings in runs(zone):
        print(name, unit, first_day, *(first_shown(zone, civil) for civil in beginnings))
