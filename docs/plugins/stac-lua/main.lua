-- A catalogue of satellite images under the names of tools that stac-mcp has. Whatever a question names and the catalogue does
-- not have is an error: a mistake must not look like an empty answer.
local place = require("place")
local time = require("time")

local catalogue, boxes, known

-- Takes the catalogue of the server that server.lua names, as it is now, or that of this package.
local function load_catalogue()
  local url = require("server")
  if catalogue and not url then return end
  catalogue = url and require("remote")(url) or require("catalogue")
  boxes, known = {}, { properties = {}, assets = {} }
  for _, item in ipairs(catalogue.items) do
    boxes[item.id] = place.box(item.bbox, item.id)
    for name in pairs(item.properties) do known.properties[name] = true end
    for name in pairs(item.assets) do known.assets[name] = true end
  end
end

local function tool(name, answer)
  yoi.tool(name, function(arguments)
    load_catalogue()
    return answer(arguments)
  end)
end

local function names(all)
  local list = {}
  for name in pairs(all) do table.insert(list, name) end
  table.sort(list)
  return list
end

local function must_have(all, name, what)
  if not all[name] then
    yoi.fail(("there is no %s `%s`; there are %s"):format(what, name, table.concat(names(all), ", ")))
  end
end

local compare = {
  eq = function(a, b) return a == b end,
  neq = function(a, b) return a ~= b end,
  lt = function(a, b) return a < b end,
  lte = function(a, b) return a <= b end,
  gt = function(a, b) return a > b end,
  gte = function(a, b) return a >= b end,
}

-- A field by its path: `id`, `properties.datetime`, `assets.B04`.
local function path(name)
  local group, rest = name:match("^(%a+)%.(.+)$")
  if group == "properties" or group == "assets" then
    must_have(known[group], rest, group == "assets" and "asset" or "property")
    return group, rest
  end
  must_have({ id = true, collection = true, bbox = true, properties = true, assets = true }, name, "field")
  return name
end

local function meets(item, asked)
  if asked.collections and not asked.collections[item.collection] then return false end
  if asked.ids and not asked.ids[item.id] then return false end
  if asked.box and not place.meet(asked.box, boxes[item.id]) then return false end
  local at = item.properties.datetime
  if asked.from and not (asked.from <= at and at <= asked.to) then return false end
  for name, conditions in pairs(asked.query) do
    local has = item.properties[name]
    for operator, wanted in pairs(conditions) do
      if type(has) ~= type(wanted) or not compare[operator](has, wanted) then return false end
    end
  end
  return true
end

local function set(list)
  local all = {}
  for _, name in ipairs(list) do all[name] = true end
  return all
end

-- The conditions of a question, checked.
local function conditions(arguments)
  local asked = { query = arguments.query or {} }
  if arguments.collections then
    for _, id in ipairs(arguments.collections) do must_have(catalogue.collections, id, "collection") end
    asked.collections = set(arguments.collections)
  end
  if arguments.ids then
    for _, id in ipairs(arguments.ids) do must_have(boxes, id, "item") end
    asked.ids = set(arguments.ids)
  end
  if arguments.bbox then asked.box = place.box(arguments.bbox, "`bbox`") end
  if arguments.datetime then asked.from, asked.to = time.interval(arguments.datetime) end
  for name, operators in pairs(asked.query) do
    must_have(known.properties, name, "property")
    for operator in pairs(operators) do must_have(compare, operator, "operator") end
  end
  return asked
end

local function found(arguments)
  local asked, items = conditions(arguments), {}
  for _, item in ipairs(catalogue.items) do
    if meets(item, asked) then table.insert(items, item) end
  end
  return items
end

local function sorted(items, by)
  local keys = {}
  for at, name in ipairs(by or { "-properties.datetime" }) do
    local sign, rest = name:match("^([+-]?)(.*)$")
    local group, field = path(rest)
    if group ~= "id" and group ~= "collection" and group ~= "properties" or (group == "properties" and not field) then
      yoi.fail("items have no order by `" .. rest .. "`")
    end
    keys[at] = { group = group, field = field, is_down = sign == "-" }
  end
  local function value(item, key)
    if key.field then return item[key.group][key.field] end
    return item[key.group]
  end
  table.sort(items, function(a, b)
    for _, key in ipairs(keys) do
      local one, other = value(a, key), value(b, key)
      -- What an item does not have comes last.
      if one == nil or other == nil then
        if one ~= other then return one ~= nil end
      elseif one ~= other then
        if key.is_down then one, other = other, one end
        return one < other
      end
    end
    return a.id < b.id
  end)
  return items
end

-- An item with those of its assets and fields that were asked for.
local function shown(item, assets, fields)
  local copy = json.decode(json.encode(item))
  if assets then
    for name in pairs(item.assets) do
      if not assets[name] then copy.assets[name] = nil end
    end
  end
  local kept
  for _, name in ipairs(fields or {}) do
    local group, field = path((name:gsub("^[+-]", "")))
    if name:sub(1, 1) == "-" then
      if field then copy[group][field] = nil else copy[group] = nil end
    else
      kept = kept or { id = item.id, collection = item.collection }
      if field then
        kept[group] = kept[group] or {}
        kept[group][field] = copy[group] and copy[group][field]
      else
        kept[group] = copy[group]
      end
    end
  end
  return kept or copy
end

local function wanted_assets(arguments)
  for _, name in ipairs(arguments.assets or {}) do must_have(known.assets, name, "asset") end
  return arguments.assets and set(arguments.assets)
end

local function collection(id)
  must_have(catalogue.collections, id, "collection")
  local all, first, last, count = {}, "9", "0", 0
  for _, item in ipairs(found({ collections = { id } })) do
    table.insert(all, boxes[item.id])
    local at = item.properties.datetime
    first, last = at < first and at or first, at > last and at or last
    count = count + 1
  end
  return {
    id = id, type = "Collection", description = catalogue.collections[id], items = count,
    extent = { spatial = { bbox = { place.extent(all) } }, temporal = { interval = { { first, last } } } },
  }
end

local function lacks(what, more)
  local answer = { supported = false, message = "this catalogue " .. what }
  for name, value in pairs(more or {}) do answer[name] = value end
  return answer
end

tool("get_root", function()
  return {
    id = catalogue.id, type = "Catalog", stac_version = "1.0.0", description = catalogue.description,
    collections = names(catalogue.collections),
  }
end)

local SEARCH = "https://api.stacspec.org/v1.0.0/item-search"
local CONFORMS = { SEARCH, SEARCH .. "#fields", SEARCH .. "#query", SEARCH .. "#sort" }

tool("get_conformance", function(arguments)
  local checks
  for _, uri in ipairs(arguments.check or {}) do
    checks = checks or {}
    checks[uri] = set(CONFORMS)[uri] or false
  end
  return { conformsTo = CONFORMS, checks = checks }
end)

tool("get_capabilities", function()
  local all = {}
  for _, name in ipairs({ "query", "sort", "fields", "queryables", "aggregation", "filter" }) do
    all[name] = { supported = set(CONFORMS)[SEARCH .. "#" .. name] or false }
  end
  return { capabilities = all }
end)

tool("search_collections", function(arguments)
  local list = json.array({})
  for _, id in ipairs(names(catalogue.collections)) do
    if #list < (arguments.limit or 10) then table.insert(list, collection(id)) end
  end
  return { collections = list, matched = #names(catalogue.collections) }
end)

tool("get_collection", function(arguments) return collection(arguments.collection_id) end)

tool("get_item", function(arguments)
  local items = found({ collections = { arguments.collection_id }, ids = { arguments.item_id } })
  if not items[1] then
    yoi.fail(("`%s` is not in %s"):format(arguments.item_id, arguments.collection_id))
  end
  return shown(items[1], wanted_assets(arguments), arguments.fields)
end)

tool("search_items", function(arguments)
  local assets, items, page = wanted_assets(arguments), sorted(found(arguments), arguments.sortby), json.array({})
  for at = 1, math.min(#items, arguments.limit or 10) do
    table.insert(page, shown(items[at], assets, arguments.fields))
  end
  return { matched = #items, returned = #page, has_more = #page < #items, items = page }
end)

tool("estimate_data_size", function(arguments)
  local assets, bytes, count, unknown = wanted_assets(arguments), 0, 0, 0
  local items = sorted(found(arguments))
  for at = 1, math.min(#items, arguments.limit or 10) do
    count = count + 1
    for name, asset in pairs(items[at].assets) do
      if not assets or assets[name] then
        local size = asset["file:size"]
        bytes, unknown = bytes + (size or 0), unknown + (size and 0 or 1)
      end
    end
  end
  return { item_count = count, estimated_size_bytes = bytes, assets_without_size = unknown }
end)

tool("get_queryables", function() return lacks("does not describe its properties", { queryables = {} }) end)

tool("get_aggregations", function(arguments)
  conditions(arguments)
  return lacks("does not aggregate", { aggregations = json.array({}) })
end)

tool("get_sensor_registry_info", function() return lacks("has no registry of sensors") end)
