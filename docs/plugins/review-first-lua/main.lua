-- Nothing is pushed before it was reviewed.
local branches = yoi.state("branches")

yoi.tool("Reviewed", function(arguments)
  local all = branches:update(function(known)
    local all = {}
    for _, other in ipairs(known or {}) do
      if other ~= arguments.branch then table.insert(all, other) end
    end
    table.insert(all, arguments.branch)
    return all
  end)
  return #all .. " reviewed"
end)

yoi.hook("review-before-push", function(call)
  local command = ""
  for _, touch in ipairs(call.touches) do
    if touch.is == "shell" then
      command = touch.command
      break
    end
  end
  if not command:find("git push", 1, true) then return yoi.allow() end
  for _, branch in ipairs(branches:get() or {}) do
    if command:find(branch, 1, true) then return yoi.allow() end
  end
  return yoi.deny("this branch was not reviewed; read its diff and call Reviewed, then push")
end)
