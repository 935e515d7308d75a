package program

import (
	"fmt"
	"strconv"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// contractVersion is the latest version of the contract that this engine knows. It grows when a package may say something that
// an earlier engine would misread.
const contractVersion = 1

// contractField is the field in which a package says which version of the contract it is written for.
const contractField = "contract"

// contractFaults returns what is wrong if a package is written for a later version of the contract than one. It reads the text, as
// everything else in such a package may look wrong.
func contractFaults(inst *build.Instance, known int) fault.Faults {
	for _, f := range inst.Files {
		for _, d := range f.Decls {
			field, ok := d.(*ast.Field)
			if !ok {
				continue
			}
			lit, literal := field.Value.(*ast.BasicLit)
			if name, _, err := ast.LabelName(field.Label); err != nil || name != contractField || !literal || lit.Kind != token.INT {
				continue
			}
			if version, err := strconv.ParseInt(lit.Value, 0, 64); err != nil || version > int64(known) {
				return fault.Faults{laterContract(lit.Value, known, fault.Position{File: lit.Pos().Filename(), Line: lit.Pos().Line()})}
			}
		}
	}
	return nil
}

// laterContract says that a package is written for a later version of the contract.
func laterContract(version string, known int, at fault.Position) fault.Fault {
	return fault.Fault{
		Position: at, Path: contractField,
		Message: fmt.Sprintf("the package is written for version %s of the contract, and this operator knows version %d", version, known),
		Hint:    "run a later version of operetta",
	}
}

// contractValueFaults returns what is wrong with the version of the contract if the text does not show it.
func contractValueFaults(static cue.Value, x *syntax.Index, known int) fault.Faults {
	v := Lookup(static, contractField)
	if !v.Exists() {
		return nil
	}
	at := x.PositionOf(contractField)
	version, err := v.Int64()
	switch {
	case err != nil && cue.IsIncomplete(err):
		return fault.Faults{{Position: at, Path: contractField, Message: "the version of the contract is a number that is written out, whatever the resource says"}}
	case err == nil && version > int64(known):
		return fault.Faults{laterContract(strconv.FormatInt(version, 10), known, at)}
	}
	return nil // CUE reports all other errors
}
