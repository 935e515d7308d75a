package program

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

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
	name, digest string
	snapshot     *source.Snapshot
	importPath   string
	compiled     compiled
	index        *syntax.Index
	meta         Meta
	limits       Limits
	admission    Admission
	// reach is where objects may be beyond the namespace of the custom resource.
	reach       Reach
	renderable  renderable
	static      *Static
	secrets     *Secrets
	views       *Views
	config      *Config
	conversions *Conversions
	// enumerates is true if there is an enumeration so large that each evaluation takes long.
	enumerates bool
	// importsTypes is true if Kubernetes types are among what it imports.
	importsTypes bool
	// shown are texts as messages of CUE have them, each with what a person reads in its place.
	shown []string
}

// Load compiles a snapshot. It errors with Faults when the package does not
// parse, does not resolve, contradicts itself, or is not a controller.
func Load(s *source.Snapshot) (*Program, error) {
	p, faults, err := LoadFaulty(s)
	if err == nil {
		err = faults.OrNil()
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// LoadFaulty compiles a snapshot as Load does, and returns a faulty package together with its
// faults, so that vet can find more. It errors with Faults if there is nothing to look at: the
// package does not parse, or is not a controller.
func LoadFaulty(s *source.Snapshot) (p *Program, faults fault.Faults, err error) {
	return loadFaulty(s, func(*build.Instance) []string { return nil })
}

// LoadFaultyCheaply is LoadFaulty with large enumerations as expressions; see [syntax.MatchEnumerations].
func LoadFaultyCheaply(s *source.Snapshot) (p *Program, faults fault.Faults, err error) {
	return loadFaulty(s, syntax.MatchEnumerations)
}

func loadFaulty(s *source.Snapshot, change func(*build.Instance) (shown []string)) (p *Program, faults fault.Faults, err error) {
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
	p = &Program{
		name: s.Name(), digest: s.Digest(), snapshot: s, importPath: inst.ID(),
		compiled: compiled{ctx.BuildInstance(inst)}, index: syntax.ReadInstance(inst),
		enumerates: enumerates, shown: shown, importsTypes: importsTypes(inst),
	}
	p.static = &Static{
		compiled: p.compiled, index: p.index, files: inst.Files,
		value: p.compiled.fill(nil), contract: contractOf(ctx, inst), unknown: unknown,
	}
	p.secrets = &Secrets{index: p.index, static: p.static, literals: p.index.Secrets().Texts()}
	if err := p.notAnOperator(); err != nil {
		return nil, nil, err
	}
	return p, p.readStatic(inst), nil
}

// importsTypes reports whether Kubernetes types are among what an instance imports.
func importsTypes(inst *build.Instance) bool {
	return slices.ContainsFunc(inst.Dependencies(), func(dep *build.Instance) bool { return strings.HasPrefix(dep.ImportPath, TypesPath) })
}

// readStatic reads what the package says whatever the resource is, and returns what is wrong with it.
func (p *Program) readStatic(inst *build.Instance) fault.Faults {
	var faults, wrong fault.Faults
	value := p.static.value
	p.meta, faults = readMeta(value, p.index)
	p.limits, wrong = readLimits(value, p.index)
	faults = slices.Concat(faults, wrong, contractValueFaults(value, p.index, contractVersion))
	p.admission, wrong = readAdmission(value, p.index)
	faults = append(faults, wrong...)
	p.reach = readReach(value)
	p.renderable = renderableOf(p.index, inst)
	p.views = viewsOf(p.index, p.limits)
	p.config = configOf(p.static, inst)
	p.conversions = &Conversions{p.name, p.compiled, p.meta, p.limits}
	vocabulary := p.static.vocabularyFaults()
	own := p.secrets.withoutLiterals(p.static.withHints(fault.FromCUE(value.Validate(), value)))
	own = slices.DeleteFunc(own, func(f fault.Fault) bool { return covered(vocabulary, f) })
	return p.static.withPlaces(slices.Concat(vocabulary, own, faults, reachFaults(p.index))).Sorted()
}

// notAnOperator errors with Faults if the package does not compile, or is some other CUE.
func (p *Program) notAnOperator() error {
	value := p.static.value
	if Lookup(value, "scope").Exists() {
		return nil
	}
	// A package that does not compile has no fields at all.
	if err := value.Validate(); err != nil {
		return p.secrets.withoutLiterals(p.static.withHints(fault.FromCUE(err, value)))
	}
	return fault.Faults{{
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

// ImportsTypes reports whether the package imports Kubernetes types, itself or by what it imports.
func (p *Program) ImportsTypes() bool { return p.importsTypes }

// Syntax returns the index of the text of the package.
func (p *Program) Syntax() *syntax.Index { return p.index }

// Static returns the package as it is without a custom resource.
func (p *Program) Static() *Static { return p.static }

// Config returns the configuration that the package takes.
func (p *Program) Config() *Config { return p.config }

// Views returns what the package sees of sessions.
func (p *Program) Views() *Views { return p.views }

// Conversions returns what turns the specs of one version of the kind into those of another one.
func (p *Program) Conversions() *Conversions { return p.conversions }

// Secrets returns what says which parts of the package and of its sessions are secret.
func (p *Program) Secrets() *Secrets { return p.secrets }

// Meta returns the description of the custom resource.
func (p *Program) Meta() Meta { return p.meta }

// GroupVersionKind returns the type that the engine reconciles: the kind in its
// storage version.
func (p *Program) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: p.meta.Group, Version: p.meta.stored().Name, Kind: p.meta.Kind}
}
