-- fairness.go.

local MAX_TENANTS, OTHER_TENANTS = 1024, '*'

local LATELY = -1 -- in the place of what a tenant was granted

local weights, account, whole -- of the declared tenants; of the one that asks; of all
local reserve                 -- every declared tenant shares every window

-- granted_to returns what the tenant was granted of the open window, nil when it did
-- not ask in it.
local function granted_to(t)
  local n = tenants and tenants[t]
  return n ~= LATELY and n or nil
end

-- shares reports whether a declared tenant shares the window.
local function shares(t) return t == account or reserve or tenants and tenants[t] ~= nil end

-- split finds the account of the tenant that asks and what shares the window with it.
local function split()
  local others = 0
  account = ARGV[4]
  for t, n in pairs(tenants or {}) do
    if n ~= LATELY and not weights[t] then others = others + 1 end
  end
  local known_already = weights[account] or granted_to(account)
  if not known_already and others >= MAX_TENANTS then account = OTHER_TENANTS end
  known_already = weights[account] or granted_to(account)
  whole = (known_already and others or others + 1) * default
  for t, weight in pairs(weights) do
    if shares(t) then whole = whole + weight end
  end
end

-- share returns what the account was granted and can still get.
local function share(m, amount)
  local free, kept, lent, used = larger(0, m.limit - m.used), 0, 0, 0
  local other = floor(default * m.limit / whole)
  local guarantee = other
  for t, weight in pairs(weights) do
    local part = floor(weight * m.limit / whole)
    if t == account then
      guarantee = part
    elseif shares(t) then
      kept = kept + larger(0, part - (granted_to(t) or 0))
    end
  end
  for t, granted in pairs(tenants or {}) do
    if granted ~= LATELY then
      if t == account then
        used = granted
      elseif not weights[t] then
        lent = lent + larger(0, other - granted)
      end
    end
  end
  local due = smaller(larger(0, guarantee - used), larger(0, free - kept))
  local spare = larger(0, free - kept - lent)
  return used, smaller(larger(due, spare), larger(0, guarantee + amount - used))
end

-- never_fits reports an amount that a tenant cannot get even when it is the first to
-- ask in a window.
local function never_fits(limit, amount)
  if not reserve then return amount > limit end
  local all, kept = weights[ARGV[4]] and 0 or default, 0
  for _, weight in pairs(weights) do all = all + weight end
  for t, weight in pairs(weights) do
    if t ~= ARGV[4] then kept = kept + floor(weight * limit / all) end
  end
  return amount > limit - kept
end

if default > 0 then
  weights, reserve = cmsgpack.unpack(ARGV[5]), ARGV[6] == '1'
  if tenants and begun then -- adopt.go: known are those that asked in the window before
    local before, next = tenants, nil
    for t, n in pairs(before) do
      if n ~= LATELY and not reserve and weights[t] then
        next = next or {}
        next[t] = LATELY
      end
    end
    tenants = next
  end
  if fair then split() end
end
