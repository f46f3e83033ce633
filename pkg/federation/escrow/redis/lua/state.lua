-- state.go.

local function remaining() return s.slice + s.before + s.granted - s.taken end

local function open() return s.latest < s.ends end

local function replace(window, term, ends)
  s.index, s.term, s.ends = window, term, ends
  s.slice, s.before, s.granted, s.taken, s.asked = 0, 0, 0, 0, 0
end

local function read()
  if now < s.latest then s.ends = 0 end
  s.latest = now
end
