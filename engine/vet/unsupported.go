package vet

import "operetta.dev/engine/fault"

// unsupported finds parts of the contract that the engine does not support yet. They are faults,
// because an author who writes them relies on them.
func unsupported(v *view) fault.Faults {
	var out fault.Faults
	for i, version := range v.Meta().Versions {
		if i > 0 {
			f := v.at("versions", version.Name)
			f.Message, f.Hint = "more than one version is not supported yet", "keep one entry in versions"
			out = append(out, f)
		}
		if f := v.at("versions", version.Name, "convert"); !f.Position.IsZero() {
			f.Message, f.Hint = "conversion between versions is not supported yet", "keep one version, and no convert"
			out = append(out, f)
		}
	}
	return out
}
