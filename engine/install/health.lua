-- The health of a custom resource of Operetta, for Argo CD. It reads what every package reports,
-- so one script serves all kinds. test/gitops runs it.

local status = obj.status or {}

-- condition returns the condition of a type if it is about the present spec.
local function condition(kind)
  for _, c in ipairs(status.conditions or {}) do
    if c.type == kind and c.observedGeneration == obj.metadata.generation then
      return c
    end
  end
  return {}
end

local ready, stalled, paused = condition("Ready"), condition("Stalled"), condition("Paused")

if obj.metadata.deletionTimestamp ~= nil and stalled.status ~= "True" then
  return { status = "Progressing", message = ready.message or "being deleted" }
end
if paused.status == "True" then
  return { status = "Suspended", message = paused.message }
end
if stalled.status == "True" then
  return { status = "Degraded", message = stalled.message }
end
if status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "the operator has not acted upon the present spec yet" }
end
if ready.status == "True" then
  return { status = "Healthy", message = ready.message }
end
return { status = "Progressing", message = ready.message or "the operator has not reported yet" }
