package program

import (
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/source"
)

// Suspect compiles a snapshot as Load does, and returns a package that is wrong together
// with its faults, for a check that has more to say about it. It errors with Faults when
// there is nothing to look at: the package does not parse, or is not a controller.
func Suspect(s *source.Snapshot) (p *Program, faults fault.Faults, err error) {
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
	p = &Program{name: s.Name(), digest: s.Digest(), base: base, files: inst.Files, importPath: inst.ID()}
	p.static = p.fill(nil)
	p.readText(inst.Files)
	if err := p.findContract(ctx, inst); err != nil {
		return nil, nil, err
	}
	p.meta, faults = p.readMeta()
	limits, unlimited := p.readLimits()
	p.limits = limits
	faults = append(faults, unlimited...)
	p.reach = p.readReach()
	p.configurable = p.static.LookupPath(configPath).Exists()
	p.locked = p.readLocked(inst)
	vocabulary := p.vocabularyFaults()
	static := slices.DeleteFunc(p.withoutLiterals(p.withHints(fault.Of(p.static.Validate(), p.static))), func(f fault.Fault) bool { return covered(vocabulary, f) })
	return p, p.withPlaces(slices.Concat(vocabulary, static, faults, p.reachFaults())).Sorted(), nil
}

// readText records what the text of the package says.
func (p *Program) readText(files []*ast.File) {
	p.index = syntax.Read(files)
	p.crUsed, p.liveUsed, p.inputsUsed = project(p.index, "cr"), project(p.index, "live"), project(p.index, "inputs")
	p.digests = refersToDigests(p.index.References())
	p.literals, p.rests = p.index.SecretTexts(), &sync.Map{}
}

// covered reports whether some faults, which are unknown fields, say what another one does:
// CUE finds an unknown struct once more in each of its fields.
func covered(by fault.Faults, other fault.Fault) bool {
	return other.Code == fault.UnknownField && slices.ContainsFunc(by, func(f fault.Fault) bool {
		return other.Path == f.Path || strings.HasPrefix(other.Path, f.Path+".")
	})
}

// Similar returns, for a fault that says that a closed struct does not have a field, which
// field was probably meant.
func (p *Program) Similar(f fault.Fault) (hint string, ok bool) {
	sels := cue.ParsePath(f.Path).Selectors()
	last := len(sels) - 1
	if f.Code != fault.UnknownField || last < 0 || sels[last].LabelType() != cue.StringLabel {
		return "", false
	}
	name := sels[last].Unquoted()
	known := fieldNames(p.static.LookupPath(cue.MakePath(sels[:last]...)))
	return typeHint(name, slices.DeleteFunc(known, func(k string) bool { return k == name })), true
}
