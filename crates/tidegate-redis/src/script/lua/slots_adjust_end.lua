if ARGV[2] == 'charge' then
  local total = 0
  for i = 3, #slots do total = total + slots[i] end
  local charged = math.min(cost, math.max(0, most - total))
  slots[3], cost = slots[3] + charged, cost - charged
else
  for i = 3, #slots do
    local refunded = math.min(cost, slots[i])
    slots[i], cost = slots[i] - refunded, cost - refunded
  end
end
if view.tell or slots_end(slots) or ARGV[2] == 'charge' then write_slots(key, slots) end
return cost == 0 and 1 or 0
