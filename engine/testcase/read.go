package testcase

import (
	"fmt"
	"maps"
	"slices"

	"cuelang.org/go/cue"
	"k8s.io/apimachinery/pkg/util/json"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
	"operetta.dev/engine/source"
)

// A Test is one test of a package, as it is written.
type Test struct {
	// Name is the sentence that says what is tested.
	Name string
	// Position is where it is written.
	Position fault.Position
	value    cue.Value
}

// Load returns the package of a snapshot that has its tests, as it runs without them, and the tests. It errors with
// the faults of the package.
func Load(withTests *source.Snapshot) (*program.Program, []Test, error) {
	tests, err := program.Load(withTests)
	if err != nil {
		return nil, nil, err
	}
	p, err := program.Load(withTests.WithoutTests())
	if err != nil {
		return nil, nil, err
	}
	return p, Read(tests), nil
}

// Read returns the tests of a package that was loaded with them, in the order in which they are written.
func Read(p *program.Program) []Test {
	tests := p.Static().Lookup("tests")
	if !tests.Exists() {
		return nil
	}
	fields, err := tests.Fields()
	if err != nil {
		return nil // loading the package has said why
	}
	var out []Test
	for fields.Next() {
		v := fields.Value()
		out = append(out, Test{Name: fields.Selector().Unquoted(), Position: program.PositionOf(v), value: v})
	}
	return out
}

// state is what people and controllers write, in given and in steps.
type state struct {
	CR     map[string]any                       `json:"cr"`
	Live   map[string]map[string]map[string]any `json:"live"`
	Others map[string]map[string]any            `json:"others"`
	Config map[string]any                       `json:"config"`
}

// given returns what the operator finds. It errors with Faults where a value is not concrete.
func (t Test) given(p *program.Program) (render.Input, error) {
	var given state
	if err := decode("given", t.value.LookupPath(cue.ParsePath("given")), &given); err != nil {
		return render.Input{}, err
	}
	in := render.Input{CR: Completed(p, given.CR), Live: given.Live, Config: given.Config}
	if steps, err := t.steps(); err == nil && slices.ContainsFunc(steps, func(s step) bool { return s.Config != nil }) && in.Config == nil {
		in.Config = map[string]any{} // so that the operator looks for it
	}
	for _, name := range fieldNames(t.value.LookupPath(cue.ParsePath("given.others"))) {
		in.Manifests = append(in.Manifests, given.Others[name])
	}
	return in, nil
}

// decode decodes a concrete value. It errors with Faults where it is not concrete.
func decode(what string, v cue.Value, into any) error {
	if err := v.Validate(cue.Concrete(true)); err != nil {
		return fault.Of(err, v)
	}
	data, err := v.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// fieldNames returns the names of the fields of a struct in the order in which they are written.
func fieldNames(v cue.Value) []string {
	var out []string
	fields, err := v.Fields()
	for err == nil && fields.Next() {
		out = append(out, fields.Selector().Unquoted())
	}
	return out
}

// Completed returns a custom resource with what identifies it, where it has not. It does not change the argument.
func Completed(p *program.Program, cr map[string]any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, cr)
	apiVersion, kind := p.GroupVersionKind().ToAPIVersionAndKind()
	setDefault(out, "apiVersion", apiVersion)
	setDefault(out, "kind", kind)
	setDefault(out, "metadata", map[string]any{})
	if metadata, ok := out["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		setDefault(metadata, "name", "example")
		out["metadata"] = metadata
	}
	return out
}

func setDefault(in map[string]any, key string, value any) {
	if _, set := in[key]; !set {
		in[key] = value
	}
}
