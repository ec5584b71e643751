if now >= view.stored or view.stored ~= unpacked('<d', ARGV[1], 35) or not view.ends then return 0 end
return adjust_window(KEYS[1], view, -cost, most, first_hit)
