-- Over HTTP arguments are texts: they come in hexadecimal.
for i = 1, #ARGV do
  ARGV[i] = string.gsub(ARGV[i], '..', function(byte) return string.char(tonumber(byte, 16)) end)
end
