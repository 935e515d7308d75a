package vet

import (
	"fmt"
	"slices"
	"strings"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// attributes finds misspelled attributes: CUE takes any, and one that means nothing leaves
// open what its author has locked.
func attributes(v *view) fault.Faults {
	var out fault.Faults
	for _, a := range v.Attributes() {
		f := fault.Fault{Position: a.Position, Path: "@" + a.Name}
		known := attributeWords[a.Name]
		near, misspelled := program.Nearest(a.Name, attributeNames)
		switch {
		case a.Name == "crd": // the generator of definitions reads it
			continue
		case known == nil && misspelled:
			f.Message, f.Hint = "there is no such attribute", fmt.Sprintf("did you mean @%s?", near)
		case known == nil:
			continue // somebody else's
		default:
			wrong := slices.DeleteFunc(strings.Split(a.Contents, ","), func(word string) bool { return slices.Contains(known, strings.TrimSpace(word)) })
			if len(wrong) == 0 {
				continue
			}
			f.Message = fmt.Sprintf("%q means nothing", strings.TrimSpace(wrong[0]))
			f.Hint = "there is @" + a.Name + "(" + strings.Join(known, ") and @"+a.Name+"(") + ")"
		}
		out = append(out, f)
	}
	return out
}

// attributeWords are the attributes of the engine, and what may stand in each.
var attributeWords = map[string][]string{
	"config":    {"admin"},
	"untrusted": {"kind", "namespace", "secretType", "serviceAccount", "rbac", "webhook", "csr", "host", "hostPath", "privileged", "input"},
}

// attributeNames are the attributes that somebody may have meant.
var attributeNames = []string{"config", "crd", "untrusted"}
