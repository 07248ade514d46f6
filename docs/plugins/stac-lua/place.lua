-- Boxes on the globe: west and east in degrees from -180 to 180; a box whose west is greater crosses the antimeridian.
local place = {}

-- A box of 4 or 6 numbers.
function place.box(numbers, what)
  local west, south, east, north, low, high
  if #numbers == 4 then
    west, south, east, north = table.unpack(numbers)
  elseif #numbers == 6 then
    west, south, low, east, north, high = table.unpack(numbers)
  else
    yoi.fail(what .. " has " .. #numbers .. " numbers; write [west, south, east, north], or with heights [west, south, low, east, north, high]")
  end
  if south > north or (low and low > high) then
    yoi.fail(what .. ": south is above north, or the lower height above the upper one")
  end
  if south < -90 or north > 90 or math.min(west, east) < -180 or math.max(west, east) > 180 then
    yoi.fail(what .. " is not on the globe: degrees are from -180 to 180 and from -90 to 90")
  end
  return { west = west, south = south, east = east, north = north, low = low, high = high }
end

-- Without the antimeridian inside. A box that begins there has both of its numbers.
local function arcs(box)
  if box.west > box.east then return { { box.west, 180 }, { -180, box.east } } end
  local all = { { box.west, box.east } }
  if box.west == -180 then table.insert(all, { 180, 180 }) end
  return all
end

-- Whether two boxes have a point in common. Heights count where both have them.
function place.meet(a, b)
  if a.south > b.north or b.south > a.north then return false end
  if a.low and b.low and (a.low > b.high or b.low > a.high) then return false end
  for _, one in ipairs(arcs(a)) do
    for _, other in ipairs(arcs(b)) do
      if one[1] <= other[2] and other[1] <= one[2] then return true end
    end
  end
  return false
end

-- West and east of the smallest arc around all boxes: what is left of the globe is their widest gap.
local function around(boxes)
  local all, last = {}, nil
  for _, box in ipairs(boxes) do
    if box.west == -180 and box.east == 180 then return -180, 180 end
    local from = box.west % 360
    table.insert(all, { from = from, to = from + (box.east - box.west) % 360, box = box })
  end
  table.sort(all, function(a, b) return a.from < b.from end)
  -- What ends last, one turn earlier, is where the sweep begins.
  for _, arc in ipairs(all) do
    if not last or arc.to > last.to then last = arc end
  end
  local reach, east, widest, west_of, east_of = last.to - 360, last.box.east, 0, -180, 180
  for _, arc in ipairs(all) do
    if arc.from - reach > widest then widest, west_of, east_of = arc.from - reach, arc.box.west, east end
    if arc.to > reach then reach, east = arc.to, arc.box.east end
  end
  return west_of, east_of
end

-- The smallest box around all boxes, as a list of 4 numbers, or 6 if all have heights.
function place.extent(boxes)
  local south, north, low, high = 90, -90, math.huge, -math.huge
  for _, box in ipairs(boxes) do
    south, north = math.min(south, box.south), math.max(north, box.north)
    if low and box.low then
      low, high = math.min(low, box.low), math.max(high, box.high)
    else
      low = nil
    end
  end
  local west, east = around(boxes)
  if low then return { west, south, low, east, north, high } end
  return { west, south, east, north }
end

return place
