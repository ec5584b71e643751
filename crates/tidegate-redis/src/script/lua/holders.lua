-- Concurrency limit.
--
-- The state is a sorted set, so leases that have ended are found by range. Units in flight are counted in a member of
-- the set, because the set may have thousands of leases and each can have several units.

--== look
-- A sorted set of leases by their end, named by their permits. The score of '#' is the negated number of units in
-- flight. Under a rule each permit keeps the lease that it was granted, even if the rule's numbers change. The score of
-- '+' is the negated longest of these leases, minus one, so that it is never zero. Without the member, the lease of the
-- limit is the longest.
local function longest_lease(key, pack, lease)
  if string.byte(pack) ~= 111 then return lease end
  return math.max(lease, -(call('ZSCORE', key, '+') or -1) - 1)
end
-- Returns the number of units in flight without leases that have ended, the number of those ended, and the end of the
-- last lease. Nothing is removed here, so that a peek changes nothing.
local function holders_of(key)
  local flight = call('ZSCORE', key, '#')
  if not flight then
    if call('EXISTS', key) == 1 then
      return redis.error_reply('TIDEGATE holders are not counted; delete the key, or use another prefix')
    end
    return {places = 0, ended = 0, last = 0}
  end
  local ended = 0
  for _, name in ipairs(call('ZRANGEBYSCORE', key, 0, format('%.0f', now))) do
    ended = ended + tonumber(match(name, '^(%d+):') or ' ')
  end
  local last = tonumber(call('ZRANGE', key, -1, -1, 'WITHSCORES')[2])
  return {places = -flight - ended, ended = ended, last = math.max(0, last)}
end
-- Returns the end of a lease that begins now, at most the last representable microsecond. A lease without an end has
-- that microsecond as its end.
local function lease_end(lease)
  return math.min(now + lease, 1152921504606847)
end
-- Stores the number of units in flight. Without any, the key is deleted.
local function count_places(key, places)
  if places > 0 then
    call('ZADD', key, format('%.0f', -places), '#')
  else
    call('DEL', key)
  end
end
-- Removes leases that have ended, and corrects the number of units. It is called by every change, and never by a look.
local function drop_ended(key, view)
  if view.ended > 0 then
    call('ZREMRANGEBYSCORE', key, 0, format('%.0f', now))
    count_places(key, view.places)
  end
end
-- Removes leases that have ended, and shortens those that are longer than possible. The latter happens after the clock
-- has stepped back, or the lease of the limit is shorter now.
local function settle(key, view)
  drop_ended(key, view)
  local longest = lease_end(view.longest)
  if view.last > longest + 100000 then
    local latest = format('%.0f', longest)
    for _, name in ipairs(call('ZRANGEBYSCORE', key, '(' .. latest, '+inf')) do
      call('ZADD', key, latest, name)
    end
    view.last = longest
  end
end
-- Decides whether the units fit. A denial also returns the earliest time at which enough leases end: at most 64 leases
-- are read for it, beyond which the end of the last one counts.
--
-- The pack is the limit, its lease and the units, then the name of the permit from byte 26 on.
look.c = function(key, pack)
  local most, lease, units = unpacked('<ddd', pack, 2)
  local view = holders_of(key)
  if view.err then return view end
  -- Names are random, so a collision is an error that a retry avoids.
  if view.places > 0 and call('ZSCORE', key, string.sub(pack, 26)) then
    return redis.error_reply('TIDEGATE that permit is in use; ask again')
  end
  view.lease, view.units, view.passes = lease, units, units <= most - view.places
  view.longest = view.places > 0 and longest_lease(key, pack, lease) or lease
  view.tell = {string.sub(pack, 26), view.places, view.last, 0, 0}
  if string.byte(pack) == 111 then view.tell[6] = view.longest end
  local lacking = view.places + units - most
  if not view.passes and units <= most then
    local freed = 0
    local leases = call('ZRANGEBYSCORE', key, '(' .. format('%.0f', now), '+inf', 'WITHSCORES', 'LIMIT', 0, 64)
    for i = 1, #leases, 2 do
      freed = freed + tonumber(match(leases[i], '^(%d+):') or ' ')
      if freed >= lacking then
        view.tell[4], view.tell[5] = freed, tonumber(leases[i + 1])
        break
      end
    end
  end
  return view
end
-- Adds the permit with its lease. The key expires after its last lease.
spend.c = function(key, pack, view)
  settle(key, view)
  local ends = lease_end(view.lease)
  local places = format('%.0f', -view.places - view.units)
  call('ZADD', key, format('%.0f', ends), string.sub(pack, 26), places, '#')
  if string.byte(pack) == 111 then call('ZADD', key, format('%.0f', -view.longest - 1), '+') end
  call('PEXPIRE', key, format('%.0f', (math.max(ends, view.last) - now) / 1000 + grace))
end
-- A denial changes no lease, but tidies up.
refuse.c = function(key, _, view) settle(key, view) end
look.o, spend.o, refuse.o = look.c, spend.c, refuse.c

--== release
-- Removes a permit and its units. Returns 1 if it was held, 0 if its lease had ended.
local key, name = KEYS[1], string.sub(ARGV[1], 10)
local view = holders_of(key)
if view.err then return view end
drop_ended(key, view)
if call('ZREM', key, name) == 0 then return 0 end
count_places(key, view.places - tonumber(match(name, '^(%d+):')))
return 1

--== renew
-- Starts a new lease for a permit. Returns 1 if it was held, 0 if its lease had ended: it is not acquired again then.
local key, name = KEYS[1], string.sub(ARGV[1], 10)
local view = holders_of(key)
if view.err then return view end
drop_ended(key, view)
if not call('ZSCORE', key, name) then return 0 end
local lease = unpacked('<d', ARGV[1], 2)
if string.byte(ARGV[1]) == 111 then
  local alone = view.places == tonumber(match(name, '^(%d+):'))
  local longest = alone and lease or longest_lease(key, ARGV[1], lease)
  call('ZADD', key, format('%.0f', -longest - 1), '+')
end
call('ZADD', key, format('%.0f', lease_end(lease)), name)
local last = tonumber(call('ZRANGE', key, -1, -1, 'WITHSCORES')[2])
call('PEXPIRE', key, format('%.0f', (last - now) / 1000 + grace))
return 1
