package testcase

import (
	"fmt"
	"regexp"

	"cuelang.org/go/cue"
	"k8s.io/apimachinery/pkg/util/json"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
)

// A Test is one test of a package, as it is written.
type Test struct {
	// Name is the sentence that says what is tested.
	Name string
	// Position is where it is written.
	Position fault.Position
	value    cue.Value
}

// Read returns the tests of a package that was loaded with them, in the order in which they are written.
func Read(p *program.Program) []Test {
	tests := p.Static("tests")
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

// given returns what the operator finds. It errors with Faults where a value is not concrete.
func (t Test) given(p *program.Program) (render.Input, error) {
	var given struct {
		CR     map[string]any                       `json:"cr"`
		Live   map[string]map[string]map[string]any `json:"live"`
		Others map[string]map[string]any            `json:"others"`
		Config map[string]any                       `json:"config"`
	}
	v := t.value.LookupPath(cue.ParsePath("given"))
	if err := v.Validate(cue.Concrete(true)); err != nil {
		return render.Input{}, fault.Of(err, v)
	}
	data, err := v.MarshalJSON()
	if err != nil {
		return render.Input{}, fmt.Errorf("given: %w", err)
	}
	if err := json.Unmarshal(data, &given); err != nil {
		return render.Input{}, fmt.Errorf("given: %w", err)
	}
	in := render.Input{CR: completed(p, given.CR), Live: given.Live, Config: given.Config}
	fields, err := t.value.LookupPath(cue.ParsePath("given.others")).Fields()
	for err == nil && fields.Next() {
		in.Manifests = append(in.Manifests, given.Others[fields.Selector().Unquoted()])
	}
	return in, nil
}

// completed returns a custom resource with what identifies it.
func completed(p *program.Program, cr map[string]any) map[string]any {
	if cr == nil {
		cr = map[string]any{}
	}
	apiVersion, kind := p.GroupVersionKind().ToAPIVersionAndKind()
	setDefault(cr, "apiVersion", apiVersion)
	setDefault(cr, "kind", kind)
	setDefault(cr, "metadata", map[string]any{})
	if metadata, ok := cr["metadata"].(map[string]any); ok {
		setDefault(metadata, "name", "example")
	}
	return cr
}

func setDefault(in map[string]any, key string, value any) {
	if _, set := in[key]; !set {
		in[key] = value
	}
}

// wantedError returns the expression that a fault has to match, and nil if there may be none.
func (t Test) wantedError() (*regexp.Regexp, error) {
	v := t.want("error")
	if !v.Exists() {
		return nil, nil
	}
	text, err := v.String()
	if err != nil {
		return nil, fmt.Errorf("want.error: %w", err)
	}
	out, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("want.error: %w", err)
	}
	return out, nil
}

// want returns a part of what is wanted.
func (t Test) want(part string) cue.Value {
	return t.value.LookupPath(cue.MakePath(cue.Str("want"), cue.Str(part)))
}
