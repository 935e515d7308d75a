package vet

import (
	"fmt"
	"slices"
	"strings"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// attributes finds misspelled attributes. CUE accepts any attribute, so a misspelled one would not
// protect what its author wants to protect.
func attributes(v *view) fault.Faults {
	var out fault.Faults
	for _, a := range v.Attributes() {
		f := fault.Fault{Position: a.Position, Path: "@" + a.Name}
		known := attributeWords[a.Name]
		near, misspelled := program.ClosestName(a.Name, attributeNames)
		switch {
		case a.Name == "crd": // the generator of definitions reads it
			continue
		case known == nil && misspelled:
			f.Message, f.Hint = "unknown attribute", fmt.Sprintf("did you mean @%s?", near)
		case known == nil:
			continue // another tool may use it
		default:
			wrong := slices.DeleteFunc(strings.Split(a.Contents, ","), func(word string) bool { return slices.Contains(known, strings.TrimSpace(word)) })
			if len(wrong) == 0 {
				continue
			}
			f.Message = fmt.Sprintf("unknown argument %q", strings.TrimSpace(wrong[0]))
			f.Hint = "there is @" + a.Name + "(" + strings.Join(known, "), @"+a.Name+"(") + ")"
		}
		out = append(out, f)
	}
	return out
}

// attributeWords are the attributes of the engine, and the arguments that each may have.
var attributeWords = map[string][]string{
	"config":    {"admin"},
	"untrusted": {"kind", "namespace", "secretType", "serviceAccount", "rbac", "webhook", "csr", "host", "hostPath", "privileged", "input"},
}

// attributeNames are the attributes that a misspelled one may stand for.
var attributeNames = []string{"config", "crd", "untrusted"}
