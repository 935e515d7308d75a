package program

import (
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"sync"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/source"
)

// A Program is a compiled operator package. It is immutable and safe for
// concurrent use.
//
// It owns a CUE context of its own, which is freed with it: reloading packages
// into one context would keep every version of them.
type Program struct {
	name     string
	digest   string
	snapshot *source.Snapshot
	// base is the package as it was compiled. Only fill looks at it.
	base cue.Value
	// static is the package evaluated with nothing filled in.
	static   cue.Value
	contract cue.Value
	files    []*ast.File
	index    *syntax.Index
	// names and hookNames match what the contract accepts as names.
	names, hookNames *regexp.Regexp
	importPath       string
	// unknown are the names that imported packages do not have, by where CUE stops at them.
	unknown   map[fault.Origin]syntax.UnknownName
	meta      Meta
	limits    Limits
	admission Admission
	// reach is where objects may be beyond the namespace of the custom resource.
	reach Reach
	// configurable is true if the package has a config.
	configurable bool
	// locked are the fields of the config that only the administrator sets.
	locked *locked
	// crUsed, liveUsed and inputsUsed are the parts of each that the package reads.
	crUsed, liveUsed, inputsUsed *projection
	// viewed is the part of the values of a view that it sees.
	viewed *projection
	// digests is true if the package may refer to the digest of an object's content.
	digests bool
	// rests are the Secrets that objects rest on, by component and object.
	rests *sync.Map
	// literals are the secrets that the package itself has written.
	literals []string
	// enumerates is true if there is an enumeration so large that each evaluation takes long.
	enumerates bool
	// shown are texts as messages of CUE have them, each with what a person reads in its place.
	shown []string
}

// Load compiles a snapshot. It errors with Faults when the package does not
// parse, does not resolve, contradicts itself, or is not a controller.
func Load(s *source.Snapshot) (*Program, error) {
	p, faults, err := Suspect(s)
	if err == nil {
		err = faults.OrNil()
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Suspect compiles a snapshot as Load does, and returns a faulty package together with its
// faults, so that vet can find more. It errors with Faults if there is nothing to look at: the
// package does not parse, or is not a controller.
func Suspect(s *source.Snapshot) (p *Program, faults fault.Faults, err error) {
	return suspect(s, func(*build.Instance) []string { return nil })
}

// SuspectCheaply is Suspect with large enumerations as expressions; see [syntax.MatchEnumerations].
func SuspectCheaply(s *source.Snapshot) (p *Program, faults fault.Faults, err error) {
	return suspect(s, syntax.MatchEnumerations)
}

func suspect(s *source.Snapshot, change func(*build.Instance) (shown []string)) (p *Program, faults fault.Faults, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			p, faults, err = nil, nil, &PanicError{Package: s.Name(), Cause: cause, Stack: debug.Stack()}
		}
	}()
	inst, unknown, faults := buildInstance(s)
	if len(faults) > 0 {
		return nil, nil, faults
	}
	enumerates := syntax.HasLargeEnumeration(inst)
	shown := change(inst)
	ctx := cuecontext.New()
	base := ctx.BuildInstance(inst)
	p = &Program{name: s.Name(), digest: s.Digest(), snapshot: s, base: base, files: inst.Files, importPath: inst.ID(), unknown: unknown, enumerates: enumerates, shown: shown}
	p.static = p.fill(nil)
	p.readText(inst)
	if err := p.findContract(ctx, inst); err != nil {
		return nil, nil, err
	}
	p.meta, faults = readMeta(p.static, p.index)
	limits, wrong := readLimits(p.static, p.index)
	p.limits, faults = limits, slices.Concat(faults, wrong, p.contractValueFaults(ContractVersion))
	p.admission, wrong = readAdmission(p.static, p.index)
	faults = append(faults, wrong...)
	p.reach = p.readReach()
	p.configurable = lookup(p.static, "config").Exists()
	p.locked = p.readLocked(inst)
	vocabulary := p.vocabularyFaults()
	static := p.withoutLiterals(p.withHints(fault.Of(p.static.Validate(), p.static)))
	static = slices.DeleteFunc(static, func(f fault.Fault) bool { return covered(vocabulary, f) })
	return p, p.withPlaces(slices.Concat(vocabulary, static, faults, p.reachFaults())).Sorted(), nil
}

// readText reads the text of the package.
func (p *Program) readText(inst *build.Instance) {
	p.index = syntax.ReadInstance(inst)
	p.crUsed, p.liveUsed, p.inputsUsed = p.resource(), project(p.index, "live"), project(p.index, "inputs")
	p.viewed = p.parts()
	p.digests = refersToDigests(p.index.References())
	p.literals, p.rests = p.index.SecretTexts(), &sync.Map{}
}

// findContract finds the contract among the package's imports.
func (p *Program) findContract(ctx *cue.Context, inst *build.Instance) error {
	for _, imp := range inst.Dependencies() {
		if imp.ImportPath == syntax.ContractPath {
			p.contract = ctx.BuildInstance(imp)
			p.names, p.hookNames = namePattern(p.contract, "#Name"), namePattern(p.contract, "#HookName")
		}
	}
	if lookup(p.static, "scope").Exists() {
		return nil
	}
	// A package that does not compile has no fields at all.
	if err := p.static.Validate(); err != nil {
		return p.withoutLiterals(p.withHints(fault.Of(err, p.static)))
	}
	return fault.Faults{{ // it is some other CUE
		Position: p.index.Root(),
		Message:  "this package is not an operator: it does not embed the contract",
		Hint:     fmt.Sprintf("write `import %q` and, below it, `operator.#Controller`", syntax.ContractPath),
	}}
}

// Name returns the package's name.
func (p *Program) Name() string { return p.name }

// Digest returns the digest of the package's files.
func (p *Program) Digest() string { return p.digest }

// Snapshot returns the files that the package was compiled from.
func (p *Program) Snapshot() *source.Snapshot { return p.snapshot }

// Syntax returns the index of the text of the package.
func (p *Program) Syntax() *syntax.Index { return p.index }

// Meta returns the description of the custom resource.
func (p *Program) Meta() Meta { return p.meta }

// GroupVersionKind returns the type that the engine reconciles: the kind in its
// storage version.
func (p *Program) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: p.meta.Group, Version: p.meta.stored().Name, Kind: p.meta.Kind}
}
