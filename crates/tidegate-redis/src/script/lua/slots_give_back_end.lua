if not view.tell then return 0 end
local age, returned = slots[1] - math.floor(unpacked('<d', ARGV[1], 43) / width), 0
if age >= 0 and age <= count then
  returned = math.min(cost, slots[age + 3])
  slots[age + 3] = slots[age + 3] - returned
end
write_slots(key, slots)
return returned == cost and 1 or 0
