if not view.ends then return 0 end
return adjust_window(KEYS[1], view, ARGV[2] == 'charge' and cost or -cost, most, first_hit)
