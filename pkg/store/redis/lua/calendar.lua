-- calendar.go and windows.go.

local DAY = 24 * 3600 * 1000000

local function floor_div(a, b) return math.floor(a / b) end
-- ceil_div keeps below 2^53 where a + b would not.
local function ceil_div(a, b)
  local q = math.floor(a / b)
  return q * b < a and q + 1 or q
end

local function month_of(day)
  day = day + 719468
  local era = floor_div(day, 146097)
  local of_era = day - era * 146097
  local year = floor_div(of_era - floor_div(of_era, 1460) + floor_div(of_era, 36524) - floor_div(of_era, 146096), 365)
  local of_year = of_era - (365 * year + floor_div(year, 4) - floor_div(year, 100))
  local month = floor_div(5 * of_year + 2, 153)
  return (era * 400 + year) * 12 + month + 2
end

local function first_day(month)
  month = month - 2
  local year = floor_div(month, 12)
  local of_year = month - 12 * year
  local era = floor_div(year, 400)
  local of_era = year - era * 400
  return era * 146097 + of_era * 365 + floor_div(of_era, 4) - floor_div(of_era, 100) +
    floor_div(153 * of_year + 2, 5) - 719468
end

local function index(r, now)
  if r.monthly == 1 then return month_of(floor_div(now + r.offset, DAY)) end
  return floor_div(now + r.offset, r.window)
end

local function start(r, number)
  if r.monthly == 1 then return first_day(number) * DAY - r.offset end
  return number * r.window - r.offset
end

local function start_of(w) return start(w, w.index) end
local function end_of(w) return start(w, w.index + 1) end
local function contains(w, now) return index(w, now) == w.index end

local function same_windows(r, o)
  return r.window == o.window and r.offset == o.offset and r.monthly == o.monthly
end

-- windows_of is State.Windows.
local function windows_of(s, now)
  local windows = {}
  for i, m in ipairs(s.meters) do
    local w = {limit = m.limit, window = m.window, burst = m.burst, offset = m.offset, monthly = m.monthly}
    if s.algorithm == FIXED_WINDOW then
      w.index, w.granted = m.index, m.used
    else
      w.index, w.granted = index(m, now), 0
    end
    windows[i] = w
  end
  return windows
end
