-- take.go.

local function take()
  if not open() then return 0 end
  s.asked = smaller(s.asked + want, MAX_EXACT)
  local units = smaller(want, remaining())
  if units < least then return 0 end
  s.taken = s.taken + units
  return units
end

local function put_back()
  if not open() or index ~= s.index then return 0 end
  local units = smaller(want, s.taken)
  s.taken = s.taken - units
  return units
end
