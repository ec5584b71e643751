-- Sliding log.
--
-- The state is a sorted set. The score of an entry is its time, its member the running total of all units up to it,
-- padded so that equal scores sort by total. The first entry is a base: the total before the oldest unit that counts.
--
-- So the units of a window are a difference of two totals, found by rank: a decision costs a logarithm of the entries,
-- and does not read them all. Entries that have expired are removed by the next take.

--== look
-- Returns a total as a member, of 16 digits.
local function pad(total) return format('%016.0f', total) end
-- It is a bisection by rank, over at most a few dozen commands. Returns the first of the entries `low` to `high` whose
-- running total is at least `total`; one past them if there is none. Totals grow with the rank, so the entries are
-- sorted by both.
local function search(key, low, high, total)
  while low <= high do
    local middle = math.floor((low + high) / 2)
    if tonumber(call('ZRANGE', key, middle, middle)[1]) >= total then
      high = middle - 1
    else
      low = middle + 1
    end
  end
  return low
end
-- Reads a log: the totals at its newest entry and at the last expired one, whose rank is `rank` minus one. After a
-- clock step back by more than the period, the whole log is brought to now, as one entry.
local function log_of(key, period)
  local newest = call('ZRANGE', key, -1, -1, 'WITHSCORES')
  if not newest[1] then return {total = 0, left = 0, count = 0, at = 0, fresh = true} end
  local at, view = tonumber(newest[2]), {total = tonumber(match(newest[1], '^%d+$') or ' ')}
  if not view.total or #newest[1] ~= 16 or at < 0 or at % 1 ~= 0 then
    return redis.error_reply('TIDEGATE a log has strange entries; delete the key, or use another prefix')
  end
  view.at = at
  -- A tenth of a second covers readings that are out of order.
  if at - now > math.max(period, 100000) then
    view.brought, view.rank = true, 1
  else
    view.rank = math.max(1, call('ZCOUNT', key, '-inf', format('%.0f', math.max(at, now) - period)))
  end
  view.left = tonumber(call('ZRANGE', key, view.rank - 1, view.rank - 1)[1])
  view.count = view.total - view.left
  return view
end
-- Reads an initial log: base, then time and total of each entry. The log exists in the argument only, and is written by
-- the first change. Counts that have expired by now are left out.
local function begun_log(period, begin)
  local view = {begun = begin.state, total = 0, left = 0, count = 0, at = 0, fresh = true}
  if not view.begun then return view end
  view.left, view.fresh, view.rank = unpacked('<d', begin.state, 1), nil, 1
  for from = 9, #begin.state, 16 do view.at, view.total = unpacked('<dd', begin.state, from) end
  view.nth_at = math.max(view.at, now) - period
  for from = 9, #begin.state, 16 do
    local at, total = unpacked('<dd', begin.state, from)
    if at > view.nth_at then break end
    view.left = total
  end
  view.count, view.nth_at = view.total - view.left, view.at
  return view
end
-- Returns the log of a key, or its initial log. Returns `stale` if an initial log is needed and not known.
local function live_log(key, period, begin)
  local view = log_of(key, period)
  if not begin or view.err or not view.fresh and view.at + period > now then return view end
  return begin.known and begun_log(period, begin) or stale
end
-- Writes the initial log. Returns the log as read from the server again.
local function write_begun(key, view, period)
  call('DEL', key)
  if not view.begun then return view end
  local base = unpacked('<d', view.begun, 1)
  for from = 9, #view.begun, 16 do
    local at, total = unpacked('<dd', view.begun, from)
    if from == 9 then call('ZADD', key, format('%.0f', at), pad(base)) end
    call('ZADD', key, format('%.0f', at), pad(total))
  end
  return log_of(key, period)
end
-- Lets the key expire when its newest entry leaves the period. The grace keeps the key past rounding of the expiry to
-- milliseconds.
local function expire_log(key, at, period)
  call('PEXPIRE', key, format('%.0f', (at + period - now) / 1000 + grace))
end
-- Writes a single entry as of now. It replaces the whole log.
local function write_alone(key, base, total, period)
  call('DEL', key)
  call('ZADD', key, format('%.0f', now), pad(base), format('%.0f', now), pad(total))
  expire_log(key, now, period)
end
-- Removes expired and surplus entries, and records more units. Units beyond the amount displace the oldest ones: a
-- charge beyond the limit does not grow the log. The units get the current time, or that of the newest entry if it is
-- later, so that the entries stay in order.
local function record(key, view, limit, units)
  if view.begun then view = write_begun(key, view, limit.period) end
  -- The surplus is what a charge or a counted denial adds beyond the amount.
  local surplus = math.min(view.count, math.max(0, view.count + units - limit.amount))
  local base, total = view.left + surplus, view.total + units
  if view.fresh or view.brought or base == view.total then
    return write_alone(key, base, total, limit.period)
  end
  local at = math.max(now, view.at)
  if total > 4503599627370496 then
    -- The running total restarts. All entries get the newest time, so that none expires too early.
    call('DEL', key)
    call('ZADD', key, format('%.0f', at), pad(0), format('%.0f', at), pad(total - base))
    return expire_log(key, at, limit.period)
  end
  local first = view.rank
  -- The base moves into an entry that is partly displaced, so it is split.
  if surplus > 0 then
    first = search(key, first, call('ZCARD', key) - 1, base + 1)
    local before = call('ZRANGE', key, first - 1, first - 1, 'WITHSCORES')
    if tonumber(before[1]) ~= base then
      call('ZADD', key, before[2], pad(base))
      first = first + 1
    end
  end
  -- The entry before the first that counts stays as the base.
  if first > 1 then call('ZREMRANGEBYRANK', key, 0, first - 2) end
  call('ZADD', key, format('%.0f', at), pad(total))
  expire_log(key, at, limit.period)
end
-- Decides by the difference of totals. A denial also finds the entry that has to expire before the units fit.
--
-- The reply has the base, the newest entry, and for a denial that entry. An expired entry between two denials changes
-- nothing: it is removed by the next take.
look.g = function(key, pack, begin)
  local amount, period, count_denied, units = unpacked('<ddBd', pack, 2)
  local view = live_log(key, period, begin)
  if view.err or view.stale then return view end
  view.limit = {amount = amount, period = period, count_denied = count_denied}
  view.units, view.passes = units, units <= amount - view.count
  -- Without entries there is no state to report.
  if view.fresh or view.begun then
    view.tell = false
  elseif view.passes or view.brought or units > amount then
    view.tell = {view.left, view.at, view.total}
    view.nth_at = view.brought and now
  else
    -- The units fit once the entry with this total has expired.
    local goal = view.total + units - amount
    local entry = call('ZRANGE', key, view.rank, view.rank, 'WITHSCORES')
    if tonumber(entry[1]) < goal then
      local nth = search(key, view.rank + 1, call('ZCARD', key) - 1, goal)
      entry = call('ZRANGE', key, nth, nth, 'WITHSCORES')
    end
    view.nth_at = tonumber(entry[2])
    view.tell = {view.left, view.nth_at, tonumber(entry[1]), view.at, view.total}
  end
  return view
end
-- Appends the units.
spend.g = function(key, _, view) record(key, view, view.limit, view.units) end
-- Counts a denial if the limit says so, and otherwise only repairs a log after a clock step back.
refuse.g = function(key, pack, view)
  local limit = view.limit
  local denied = view.units <= limit.amount and view.nth_at + limit.period <= 1152921504606846
  if limit.count_denied == 1 and denied then
    record(key, view, limit, view.units)
    view.tell = look.g(key, pack).tell
  elseif view.brought then
    write_alone(key, view.left, view.total, limit.period)
  end
end

--== adjust
-- A charge appends units, a refund removes the newest ones. Returns 1 if all was applied, 0 if a part, and 3 if the
-- initial log has to be known first.
local key, amount, period, _, cost = KEYS[1], unpacked('<ddBd', ARGV[1], 2)
local view = live_log(key, period, begin_of(ARGV[3]))
if view.err then return view end
if view.stale then return 3 end
if view.begun then
  view = write_begun(key, view, period)
  expire_log(key, view.at, period)
end
if ARGV[2] == 'charge' then
  record(key, view, {amount = amount, period = period}, math.min(cost, amount))
  return cost <= amount - view.count and 1 or 0
end
-- At most the units that still count can be refunded.
local refunded = math.min(cost, view.count)
local whole, total = refunded == cost and 1 or 0, view.total - refunded
if view.brought and total > view.left then
  write_alone(key, view.left, total, period)
elseif view.brought or total == 0 then
  call('DEL', key)
elseif refunded > 0 then
  local first = math.max(1, view.rank - 1)
  local last = search(key, first, call('ZCARD', key) - 1, total)
  local entry = call('ZRANGE', key, last, last, 'WITHSCORES')
  local base = tonumber(call('ZRANGE', key, 0, 0)[1])
  if base == total then
    call('DEL', key)
  elseif tonumber(entry[1]) == total then
    call('ZREMRANGEBYRANK', key, last + 1, -1)
  else
    call('ZREMRANGEBYRANK', key, last, -1)
    call('ZADD', key, entry[2], pad(total))
  end
end
return whole

--== give back
-- Removes units from the entries of one instant. Later entries are renumbered, if they are at most 64. Returns 1 if all
-- units were removed, 0 if some were not. Nothing is given back once the entries of the take have expired.
local key, at, clear, cost = KEYS[1], unpacked('<ddd', ARGV[1], 2)
if now >= clear then return 0 end
local instant = format('%.0f', at)
local first = math.max(1, call('ZCOUNT', key, '-inf', '(' .. instant))
local last = call('ZCOUNT', key, '-inf', instant) - 1
local size = call('ZCARD', key)
if last < first or size - 1 - last > 64 then return 0 end
local before = tonumber(call('ZRANGE', key, first - 1, first - 1)[1])
local through = tonumber(call('ZRANGE', key, last, last)[1])
local taken = math.min(cost, through - before)
local goal = through - taken
local cut = search(key, first, last, goal + 1)
local previous = tonumber(call('ZRANGE', key, cut - 1, cut - 1)[1])
-- Totals after the cut are lowered by the units that were removed.
local later = call('ZRANGE', key, last + 1, -1, 'WITHSCORES')
if goal == before and first == 1 and not later[1] then
  call('DEL', key)
  return taken == cost and 1 or 0
end
call('ZREMRANGEBYRANK', key, cut, -1)
if previous < goal then call('ZADD', key, instant, pad(goal)) end
for i = 1, #later, 2 do call('ZADD', key, later[i + 1], pad(tonumber(later[i]) - taken)) end
return taken == cost and 1 or 0
