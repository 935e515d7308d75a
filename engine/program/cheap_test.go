package program_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
)

// enumerating returns a package with an enumeration of some values.
func enumerating(t *testing.T, values int) *program.Program {
	t.Helper()
	var all []string
	for i := range values {
		all = append(all, `"`+strings.Repeat("v", i%7+1)+strings.Repeat(".", i/7+1)+`"`)
	}
	return inline.Program(t, `package shop
import "operetta.dev/schemas/operator"
operator.#Controller
group: "shop.example", kind: "Shop"
versions: v1: spec: #Spec
cr: spec: #Spec
live: _
#Mode: `+strings.Join(all, " | ")+`
#Spec: {mode: #Mode, size: *"s" | `+strings.Join(all, " | ")+`}
components: web: objects: cm: {
	apiVersion: "v1", kind: "ConfigMap"
	metadata: name: cr.metadata.name
	data: {mode: cr.spec.mode, size: cr.spec.size}
}
`)
}

// TestACheapPackageEvaluatesAsItself: for values that the enumeration has, in all places, and for those that it has not.
func TestACheapPackageEvaluatesAsItself(t *testing.T) {
	t.Parallel()
	p := enumerating(t, 250)
	cheap, err := p.WithCheapEnumerations()
	if err != nil || cheap == p {
		t.Fatalf("nothing is cheaper: %v", err)
	}
	for name, row := range map[string]struct {
		reason string
		spec   map[string]any
		valid  bool
	}{
		"First":       {"it is an alternative by itself", map[string]any{"mode": "v."}, true},
		"Between":     {"a point is no wildcard", map[string]any{"mode": "vvv..", "size": "vv."}, true},
		"Default":     {"it is written", map[string]any{"mode": "v.", "size": "s"}, true},
		"Longer":      {"the whole text has to match", map[string]any{"mode": "v.x"}, false},
		"Wildcard":    {"a point is no wildcard", map[string]any{"mode": "vx"}, false},
		"Line":        {"an end of a line is no end", map[string]any{"mode": "v.\n"}, false},
		"OtherKind":   {"a number is no text", map[string]any{"mode": int64(1)}, false},
		"NotThere":    {"it is required", map[string]any{}, false},
		"DefaultElse": {"the default of one field is no value of the other", map[string]any{"mode": "s"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			session := program.Session{CR: map[string]any{
				"apiVersion": "shop.example/v1", "kind": "Shop", "metadata": map[string]any{"name": "a", "namespace": "b"}, "spec": row.spec,
			}}
			want, err := p.Evaluate(session)
			if err != nil {
				t.Fatal(err)
			}
			got, err := cheap.Evaluate(session)
			if err != nil {
				t.Fatal(err)
			}
			if valid := len(got.Invalid) == 0 && got.Components[0].Rendering == program.RenderedComplete; valid != row.valid {
				t.Errorf("%s: it is valid: %v, %v", row.reason, valid, got.Invalid)
			}
			if len(got.Invalid) != len(want.Invalid) {
				t.Fatalf("%s: %v, and it was %v", row.reason, got.Invalid, want.Invalid)
			}
			for i := range want.Invalid { // the words differ
				if got.Invalid[i].Path != want.Invalid[i].Path {
					t.Errorf("%s: %v, and it was %v", row.reason, got.Invalid[i], want.Invalid[i])
				}
			}
			if row.valid {
				if diff := cmp.Diff(want.Components[0].Objects, got.Components[0].Objects); diff != "" {
					t.Errorf("%s (-want +got):\n%s", row.reason, diff)
				}
			}
		})
	}
}

// TestEveryPartOfACheapPackageIsCheap: with 2,000 values each evaluation of the package itself takes a quarter of a second.
func TestEveryPartOfACheapPackageIsCheap(t *testing.T) { //nolint:paralleltest // it measures processor time
	machine.Serial(t)
	cheap, err := enumerating(t, 2000).WithCheapEnumerations()
	if err != nil {
		t.Fatal(err)
	}
	machine.ExpectProcessorTime(t, 200*time.Millisecond, func() {
		for range 5 {
			_, _, _ = cheap.Static().CRSchema(), cheap.Config().Schema(), cheap.Template()
		}
	})
}
