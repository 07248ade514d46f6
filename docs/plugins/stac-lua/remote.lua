-- A catalogue that a server has: an API of STAC, read whole for each question, so that it is asked and checked like the one of this
-- package. What is larger than these bounds is an error: a part of a catalogue would look like all of it.
local PAGES, PAGE = 20, 100

local function get(url)
  local got = http.get(url, { headers = { accept = "application/json" } })
  if not got.ok or type(got.json) ~= "table" then
    yoi.fail(("%s answered %d, and no JSON that can be used"):format(url, got.status), "unavailable")
  end
  return got.json
end

-- Calls each(entry) for all entries of a list that may have several pages.
local function entries(url, name, each)
  local pages = 0
  while url do
    pages = pages + 1
    if pages > PAGES then yoi.fail(("the catalogue has over %d pages of %s"):format(PAGES, name), "exhausted") end
    local page = get(url)
    for _, entry in ipairs(page[name] or {}) do each(entry) end
    url = nil
    for _, link in ipairs(page.links or {}) do
      if link.rel == "next" then url = link.href end
    end
  end
end

-- A time in the form of this package: in UTC, without parts of seconds.
local function second(text, id)
  local at, zone = tostring(text):match("^(%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d)%.?%d*(.*)$")
  if zone ~= "Z" and zone ~= "+00:00" then yoi.fail("the item " .. id .. " has no time in UTC", "unavailable") end
  return at .. "Z"
end

return function(url)
  url = url:gsub("/+$", "")
  local root = get(url)
  local catalogue = { id = root.id, description = root.description, collections = {}, items = {} }
  entries(url .. "/collections", "collections", function(found)
    catalogue.collections[found.id] = found.description or found.title or found.id
  end)
  entries(url .. "/search?limit=" .. PAGE, "features", function(found)
    local properties = found.properties or {}
    properties.datetime = second(properties.datetime or properties.start_datetime, found.id)
    table.insert(catalogue.items, {
      id = found.id, collection = found.collection, bbox = found.bbox or {}, properties = properties,
      assets = found.assets or {},
    })
  end)
  return catalogue
end
