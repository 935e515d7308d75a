package testcase

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"operetta.dev/engine/cluster"
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
	// faults are what is wrong with how it is written: it fails with them, and is not run.
	faults fault.Faults
	// definitions are the CustomResourceDefinitions that are given for all tests.
	definitions []map[string]any
}

// Load returns the package of a snapshot that has its tests, as it runs without them, and the tests in the order in which
// they are written. It errors with the faults of the package; those of one test are the test's, and the others can be run.
func Load(withTests *source.Snapshot) (*program.Program, []Test, error) {
	tests, faults, err := program.LoadFaulty(withTests)
	if err != nil {
		return nil, nil, err
	}
	read, all := read(tests, faults)
	if !all {
		return nil, nil, faults
	}
	p, err := program.Load(withTests.WithoutTests())
	if err != nil {
		return nil, nil, err
	}
	for i := range read {
		read[i].definitions = withTests.Definitions()
	}
	return p, read, nil
}

// read returns the tests of a package that was compiled with them, each with its faults, and whether these are all faults.
func read(p *program.Program, faults fault.Faults) (out []Test, all bool) {
	of := map[string]fault.Faults{}
	for _, f := range faults {
		if name, is := testAt(f.Path); is {
			of[name] = append(of[name], f)
		} else {
			return nil, false
		}
	}
	tests := p.Static().Lookup("tests")
	if !tests.Exists() {
		return nil, len(faults) == 0
	}
	fields, err := tests.Fields()
	if err != nil {
		return nil, len(faults) == 0 // what is wrong is among them
	}
	for fields.Next() {
		name, v := fields.Selector().Unquoted(), fields.Value()
		out = append(out, Test{Name: name, Position: program.PositionOf(v), value: v, faults: of[name]})
		delete(of, name)
	}
	return out, len(of) == 0
}

// testAt returns the name of the test that a path of the package leads into.
func testAt(path string) (name string, is bool) {
	at := cue.ParsePath(path).Selectors()
	if len(at) < 2 || at[0].String() != "tests" || at[1].LabelType() != cue.StringLabel {
		return "", false
	}
	return at[1].Unquoted(), true
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
	in := render.Input{CR: WithIdentity(p, given.CR), Live: given.Live, Config: given.Config}
	if steps, err := t.steps(); err == nil && slices.ContainsFunc(steps, func(s step) bool { return s.Config != nil }) && in.Config == nil {
		in.Config = map[string]any{} // so that the operator looks for it
	}
	others := t.value.LookupPath(cue.ParsePath("given.others"))
	for _, name := range fieldNames(others) {
		in.Manifests = append(in.Manifests, given.Others[name])
	}
	if wrong := unidentified(others, given.Others); len(wrong) > 0 {
		return render.Input{}, wrong
	}
	in.Manifests = append(in.Manifests, t.undefined(in.Manifests)...)
	return in, nil
}

// unidentified returns a fault for each object of others that lacks what identifies it.
func unidentified(v cue.Value, others map[string]map[string]any) (out fault.Faults) {
	for _, name := range fieldNames(v) {
		for _, f := range missingIdentity(others[name]) {
			at := v.LookupPath(cue.MakePath(cue.Str(name)))
			f.Position, f.Path = program.PositionOf(at), cue.MakePath(cue.Str("given"), cue.Str("others"), cue.Str(name)).String()
			out = append(out, f)
		}
	}
	return out
}

// missingIdentity returns a fault for each field that identifies an object and that it does not have.
func missingIdentity(o map[string]any) (out fault.Faults) {
	for _, field := range []struct{ path, example string }{
		{"apiVersion", `apiVersion: "v1"`}, {"kind", `kind: "ConfigMap"`}, {"metadata.name", `metadata: name: "settings"`},
	} {
		if text, _, err := unstructured.NestedString(o, strings.Split(field.path, ".")...); err != nil || text == "" {
			out = append(out, fault.Fault{Message: "it has no " + field.path, Hint: "an object of others needs apiVersion, kind and metadata.name, as in " + field.example})
		}
	}
	return out
}

// undefined returns the definitions of the kinds that none of the given objects defines.
func (t Test) undefined(given []map[string]any) []map[string]any {
	return slices.DeleteFunc(slices.Clone(t.definitions), func(definition map[string]any) bool {
		kind, _, _ := cluster.DefinedBy(definition)
		return slices.ContainsFunc(given, func(o map[string]any) bool {
			own, _, defines := cluster.DefinedBy(o)
			return defines && own == kind
		})
	})
}

// decode decodes a concrete value. It errors with Faults where it is not concrete.
func decode(what string, v cue.Value, into any) error {
	if err := v.Validate(cue.Concrete(true)); err != nil {
		return fault.FromCUE(err, v)
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

// WithIdentity returns a custom resource with what identifies it, where it has not. It does not change the argument.
func WithIdentity(p *program.Program, cr map[string]any) map[string]any {
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
