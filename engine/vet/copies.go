package vet

import (
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
)

// copies finds content of Secrets that a package copies to where more people may read it.
func copies(v *view) fault.Faults {
	var out fault.Faults
	for _, c := range v.Syntax().Copies(v.KindAt) {
		f := fault.Fault{Position: c.Position, Path: c.Path}
		switch c.Kind {
		case syntax.CopyOfValue:
			f.Message = "it copies the content of a Secret, " + c.From + ", to where more people may read it"
			f.Hint = "refer to the Secret where its content is needed"
		case syntax.CopyOfDigest:
			f.Message = "it exposes a digest of the content of a Secret, " + c.From + ", against which its readers can test guesses"
			f.Hint = `the annotation "` + program.DigestAnnotation + `" of a Secret in live or inputs is a digest that reveals nothing`
		case syntax.CopyAsName:
			f.Message = "its name contains the content of a Secret, " + c.From + ", and names are visible everywhere"
			f.Hint = "derive the name from something else"
		}
		out = append(out, f)
	}
	return out
}
