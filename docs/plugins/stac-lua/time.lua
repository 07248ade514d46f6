-- Times in UTC: all have one form, and so compare as texts.
local time = {}

local function days(year, month)
  if month == 2 then
    local is_leap = year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
    return is_leap and 29 or 28
  end
  return (month == 4 or month == 6 or month == 9 or month == 11) and 30 or 31
end

local function within(text, least, most)
  local value = text and tonumber(text)
  return value and value >= least and value <= most and value or nil
end

local function is_clock(text)
  local hour, minute, second = text:match("^(%d%d):(%d%d):(%d%d)$")
  return within(hour, 0, 23) and within(minute, 0, 59) and within(second, 0, 59)
end

-- The first and the last second of a year, month, day or second.
local function range(text)
  local date, clock = text:match("^(.*)T(.*)Z$")
  date = date or text
  local year, rest = date:match("^(%d%d%d%d)(.*)$")
  local month, day
  if year then
    month, day = rest:match("^%-(%d%d)%-(%d%d)$")
    month = month or rest:match("^%-(%d%d)$")
  end
  local m = within(month, 1, 12)
  local d = m and within(day, 1, days(tonumber(year), m))
  local fits = year and (rest == "" or (m and (d or not day)))
  if not fits or (clock and not (d and is_clock(clock))) then
    yoi.fail("`" .. text .. "` is not a time; write 2024, 2024-05, 2024-05-01 or 2024-05-01T12:00:00Z")
  end
  if clock then return text, text end
  local first = year .. "-" .. (month or "01") .. "-" .. (day or "01")
  local last = year .. "-" .. (month or "12")
  last = last .. "-" .. (day or days(tonumber(year), m or 12))
  return first .. "T00:00:00Z", last .. "T23:59:59Z"
end

-- The ends of a time or of an interval START/END, whose ends may be open.
function time.interval(text)
  local start, stop = text:match("^([^/]*)/([^/]*)$")
  start, stop = start or text, stop or text
  local function is_open(part) return part == "" or part == ".." end
  if start == stop and is_open(start) then
    yoi.fail("`" .. text .. "` is open at both ends; leave `datetime` out")
  end
  local from = is_open(start) and "0" or range(start)
  local to = "9"
  if not is_open(stop) then to = select(2, range(stop)) end
  if from > to then yoi.fail("`" .. text .. "` ends before it begins") end
  return from, to
end

return time
