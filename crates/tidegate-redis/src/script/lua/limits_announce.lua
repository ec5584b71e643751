-- Puts the limit of a rule in force, unless it is already. Its order and since when it is in force; whether states under
-- limits of its algorithm matter that are older than those that follow; and the limits before it, newest first.
local field, ahead = match(ARGV[1], '^n(.+) (%d+) %d+ %d+$')
local known, count = sweep()
local rules = rules_of(known)
local newest, entry = rules[1] or {order = 0, since = 0}, known[field]
local till = math.max(now + ahead, entry and entry.till or 0)
if newest.name == field then
  write(field, {order = newest.order, since = newest.since, till = till})
else
  newest = {order = newest.order + 1, since = math.max(now, newest.since), till = till}
  if entry then write(field, newest) else enter(field, newest, known, count) end
end
local reply = {time[1], time[2], newest.order, newest.since, 0}
for i = 1, #rules do
  if rules[i].name ~= field then
    if #reply < 13 then
      reply[#reply + 1], reply[#reply + 2] = rules[i].name, rules[i].since
    elseif rules[i].live and string.byte(rules[i].name) == string.byte(field) then
      reply[5] = 1
    end
  end
end
return reply
