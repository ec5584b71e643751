-- Lists a limit for so long from now on. One that is listed for longer stays so. One that is listed without its place among
-- the limits of its rule gets it back.
local field, ahead, order, since = match(ARGV[1], '^n(.+) (%d+) (%d+) (%d+)$')
local entry, own = read_entry(call('HGET', key, field)), {order = order * 1, since = since * 1, till = now + ahead}
if entry then
  if newer(own, entry) then entry.order, entry.since = own.order, own.since end
  entry.till = math.max(entry.till, own.till)
  write(field, entry)
else
  enter(field, own, sweep())
end
return {time[1], time[2]}
