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
