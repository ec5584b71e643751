return tonumber(string.sub(ARGV[1], 2))
