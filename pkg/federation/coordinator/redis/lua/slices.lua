-- slices.go and attend of standing.go.

local function slice_of(m) return p.slices and m.kept or 0 end

local function uses(t) return larger(t.slice, t.next) end

local function sliced(m)
  local t = s.by[m.name]
  return t and uses(t) or slice_of(m)
end

local function taken()
  local sum = s.before + s.granted
  for _, t in ipairs(s.standings) do sum = sum + uses(t) end
  for _, m in ipairs(p.members) do
    if not s.by[m.name] then sum = sum + slice_of(m) end
  end
  return sum
end

local function newcomer(m)
  local meant, said = slice_of(m), c.slice < NO_SLICE and c.slice or 0
  local slice = larger(smaller(said, s.limit), smaller(meant, larger(0, s.limit - taken() + meant)))
  return {
    member = m.name, seen = 0, weight = 0, met = 0, unmet = 0, demand = 0, before = 0, slice = slice, next = slice, told = s.index,
    granted = 0, holders = 0,
  }
end

local function hand_over(t, meant)
  if meant > t.next then
    t.next = larger(t.next, smaller(meant, uses(t) + larger(0, s.limit - taken())))
  elseif meant < t.next and c.index > t.told then
    t.next = larger(meant, smaller(t.next, c.slice))
  end
end

local function promise(t, meant)
  if meant < t.next then return meant end
  if t.next > 0 then t.told = s.index end
  return t.next
end

local function attend(m)
  local t = s.by[m.name]
  if not t then
    t = newcomer(m)
    s.standings[#s.standings + 1], s.by[m.name] = t, t
  end
  t.seen = s.latest
  if c.weight > 0 then t.weight, t.met, t.unmet = c.weight, c.met, c.unmet end
  hand_over(t, slice_of(m))
  vouch()
  return t
end
