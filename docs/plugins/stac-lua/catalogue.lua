-- A small static catalogue. Boxes have 4 numbers, or 6 with heights in metres; one whose west is east of its east crosses the
-- antimeridian.
local function item(id, collection, bbox, datetime, properties, sizes)
  properties.datetime = datetime
  local assets = {}
  for name, bytes in pairs(sizes) do
    assets[name] = { href = "./" .. id .. "/" .. name, ["file:size"] = bytes or nil }
  end
  return { id = id, collection = collection, bbox = bbox, properties = properties, assets = assets }
end

local s2 = "sentinel-2-l2a"
local terrain = "terrain"

return {
  id = "small",
  description = "Images and heights of a few places in 2024.",
  collections = {
    [s2] = "Images in the visible light and near infrared.",
    [terrain] = "Models of heights.",
  },
  items = {
    item("S2-ROME", s2, { 12.2, 41.6, 12.8, 42.1 }, "2024-02-29T10:03:00Z",
      { platform = "sentinel-2a", ["eo:cloud_cover"] = 12.5 }, { B04 = 4200000, B08 = 4400000, thumbnail = false }),
    item("S2-LISBON", s2, { -9.5, 38.5, -8.9, 39.0 }, "2024-05-31T23:59:59Z",
      { platform = "sentinel-2b", ["eo:cloud_cover"] = 3 }, { B04 = 4100000, B08 = 4300000 }),
    item("S2-FIJI", s2, { 178.5, -18.5, -179.2, -16.0 }, "2024-06-01T00:00:00Z",
      { platform = "sentinel-2b", ["eo:cloud_cover"] = 55 }, { B04 = 3900000, B08 = 4000000 }),
    item("S2-CHATHAM", s2, { -177.2, -44.5, -175.8, -43.5 }, "2024-12-31T22:10:00Z",
      { platform = "sentinel-2a" }, { B04 = 3700000 }),
    item("DEM-FIJI", terrain, { 177.0, -19.0, 0, 180.0, -16.0, 1324 }, "2024-01-01T00:00:00Z",
      { gsd = 30 }, { heights = 9000000 }),
    item("DEM-SAMOA", terrain, { -172.9, -14.1, 0, -171.4, -13.4, 1858 }, "2024-01-01T00:00:00Z",
      { gsd = 30 }, { heights = 2000000 }),
  },
}
