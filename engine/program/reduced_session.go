package program

import (
	"maps"

	"operetta.dev/engine/object"
)

// Reduced returns a session with no more than what an evaluation reads, so that it can be sent to
// another process: both evaluate alike. It errors with a LimitError if there is more than the package
// allows, as Evaluate does.
func (v *Views) Reduced(s Session) (Session, error) {
	if err := v.limits.check(v.filling(v.digested(s))); err != nil {
		return Session{}, err
	}
	out := s.withObjects(func(component, name string, object map[string]any) map[string]any {
		return v.reduced(v.live.below(component, name), object)
	}, func(object map[string]any) map[string]any { return object })
	for name, found := range out.Inputs {
		part := v.inputs.below(name, "object")
		for i, object := range found.Objects {
			if found.Several {
				part = v.inputs.below(name, "objects", objectName(object))
			}
			found.Objects[i] = v.reduced(part, object)
		}
	}
	out.CR, _ = v.cr.of(enteringResource(s.CR)).(map[string]any)
	return out, nil
}

// reduced returns a part of an object, with what says which object it is. Of what digests are made of,
// and of a Secret, whose content is replaced to see what depends on it, only the managed fields are
// left out.
func (v *Views) reduced(part *projection, content map[string]any) map[string]any {
	if object.MayBeSecretIn(content) || v.digests && dataDigest(content, "") != "" {
		meta, _ := content["metadata"].(map[string]any)
		if meta["managedFields"] == nil {
			return content
		}
		meta = maps.Clone(meta)
		delete(meta, "managedFields")
		return with(content, "metadata", meta)
	}
	out := map[string]any{}
	if part != nil {
		out, _ = part.of(withoutManagedFields(content)).(map[string]any)
	}
	for _, field := range []string{"apiVersion", "kind"} {
		if value, ok := content[field]; ok {
			out = with(out, field, value)
		}
	}
	if name := objectName(content); name != "" {
		meta, _ := out["metadata"].(map[string]any)
		out = with(out, "metadata", with(meta, "name", name))
	}
	return out
}

// objectName returns the name of an object, or "".
func objectName(object map[string]any) string {
	meta, _ := object["metadata"].(map[string]any)
	return text(meta["name"])
}
