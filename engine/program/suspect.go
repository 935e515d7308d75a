package program

import (
	"runtime/debug"
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"

	"operetta.dev/engine/source"
)

// Suspect compiles a snapshot as Load does, and returns a package that is wrong together
// with its faults, for a check that has more to say about it. It errors with Faults when
// there is nothing to look at: the package does not parse, or is not a controller.
func Suspect(s *source.Snapshot) (p *Program, faults Faults, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			p, faults, err = nil, nil, &PanicError{Package: s.Name(), Cause: cause, Stack: debug.Stack()}
		}
	}()
	inst, faults := buildInstance(s)
	if len(faults) > 0 {
		return nil, nil, faults
	}
	ctx := cuecontext.New()
	base := ctx.BuildInstance(inst)
	p = &Program{name: s.Name(), digest: s.Digest(), base: base, files: inst.Files}
	p.static = p.fill(nil)
	p.index = newIndex(inst.Files)
	if err := p.findContract(ctx, inst); err != nil {
		return nil, nil, err
	}
	p.meta, faults = p.readMeta()
	p.configurable = p.static.LookupPath(configPath).Exists()
	faults = slices.Concat(p.vocabularyFaults(), p.withHints(faultsOf(p.static.Validate())), faults)
	return p, faults.Sorted(), nil
}

// OfThePackage reports whether a fault of an evaluation with values that were made up is
// one of the package, whatever the values: a field that does not exist or that nobody
// sets, or a value that stands in the text.
func (p *Program) OfThePackage(f Fault) bool {
	sels := cue.ParsePath(f.Path).Selectors()
	if f.Message == unknownField || f.Message == unsetMessage {
		return true
	}
	return len(sels) > 0 && p.literalAt(f.Position, sels[len(sels)-1])
}

// literalAt reports whether a field in some line is written as a literal.
func (p *Program) literalAt(at Position, sel cue.Selector) bool {
	found := false
	for _, file := range p.files {
		if file.Filename != at.File {
			continue
		}
		ast.Walk(file, func(n ast.Node) bool {
			field, ok := n.(*ast.Field)
			if !ok || positionAt(field.Label.Pos()).Line != at.Line && positionAt(field.Value.Pos()).Line != at.Line {
				return true
			}
			name, known := literalLabel(field.Label)
			_, literal := field.Value.(*ast.BasicLit)
			found = found || literal && known && sel.LabelType() == cue.StringLabel && name == sel.Unquoted()
			return true
		}, nil)
	}
	return found
}

// Unknown reports whether a fault says that a closed struct does not have a field.
func (p *Program) Unknown(f Fault) bool { return f.Message == unknownField }

// SimilarField returns the field that the last of a path, which a closed struct does not
// have, most likely means.
func (p *Program) SimilarField(path string) (string, bool) {
	sels := cue.ParsePath(path).Selectors()
	last := len(sels) - 1
	if last < 0 || sels[last].LabelType() != cue.StringLabel {
		return "", false
	}
	name := sels[last].Unquoted()
	known := fieldNames(p.static.LookupPath(cue.MakePath(sels[:last]...)))
	return Nearest(name, slices.DeleteFunc(known, func(k string) bool { return k == name }))
}

// around returns where the author wrote the closest struct around a path, which is below
// v, or else a fallback.
func around(v cue.Value, path string, fallback Position) Position {
	below := cue.ParsePath(path).Selectors()
	for at := len(v.Path().Selectors()); len(below) > at; {
		below = below[:len(below)-1]
		if at := PositionOf(v.LookupPath(cue.MakePath(below[at:]...))); at.File != "" && !isContract(at.File) {
			return at
		}
	}
	return fallback
}
