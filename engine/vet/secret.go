package vet

import (
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
)

// copies finds what a package copies from Secrets to where more people may read it.
func copies(v *view) fault.Faults {
	var out fault.Faults
	for _, c := range v.Syntax().Copies(v.KindAt) {
		f := fault.Fault{Position: c.Position, Path: c.Path}
		switch c.Kind {
		case syntax.CopyOfValue:
			f.Message = "it copies what a Secret holds, " + c.From + ", to where more people may read it"
			f.Hint = "let whoever needs it refer to the Secret"
		case syntax.CopyOfDigest:
			f.Message = "it shows a digest of what a Secret holds, " + c.From + ", by which whoever reads it can try guesses"
			f.Hint = `the annotation "` + program.DigestAnnotation + `" of a Secret in live or inputs is one that tells nothing`
		case syntax.CopyAsName:
			f.Message = "its name is made of what a Secret holds, " + c.From + ", and is said everywhere"
			f.Hint = "let the name come from elsewhere"
		}
		out = append(out, f)
	}
	return out.Sorted()
}
