-- coordinate.go.

local sends -- whether the reply includes what to send

local function prepare()
  if s.holder == '' then s.holder = holder end
  s.seq = s.seq + 1
  sends = true
end

local function release()
  s.granted = s.granted - larger(0, smaller(s.granted, remaining() - keep))
  prepare()
  s.floor = s.seq - 1
end

local function older()
  return g_index < s.index or g_index == s.index and g_term < s.term
end

local function hear()
  if g_seq == s.seq then s.next = g_slice end
  s.next = smaller(s.next, g_slice)
end

local function fill()
  if holder ~= s.holder or g_seq > s.seq or g_term == 0 then return end
  hear()
  if g_seq <= s.floor or older() then return end
  if g_index > s.index then
    replace(g_index, g_term, 0)
  elseif g_term > s.term then
    s.before = smaller(s.before + s.granted, MAX_LIMIT)
    s.term, s.granted = g_term, 0
  end
  s.granted = larger(s.granted, g_granted)
  if at <= s.latest then s.ends = larger(s.ends, at + expires_in) end
end

local function open_slice()
  local ends, began = at + expires_in, at - age
  if index <= s.index or at > s.latest or ends <= s.latest or began <= s.since then return end
  replace(index, s.term, ends)
  s.slice = smaller(slice, s.next)
end
