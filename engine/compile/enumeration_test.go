package compile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
)

// enumerating returns a package whose resource has a zone that is one of some texts.
func enumerating(t testing.TB, schema string, values int) *program.Program {
	t.Helper()
	var all []string
	for i := range values {
		all = append(all, fmt.Sprintf(`"zone-%d"`, i))
	}
	return inline.Program(t, `package shop
import "operetta.dev/schemas/operator"
operator.#Controller
group: "shop.example", kind: "Shop"
versions: v1: spec: #Spec
cr: spec: #Spec
live: _
`+strings.ReplaceAll(schema, "ZONES", strings.Join(all, " | "))+`
components: web: {
	objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name, data: zone: cr.spec.zone}
	verify: there: live.web.cm.data.zone == cr.spec.zone
}
`)
}

// inZone returns a session of a shop in a zone.
func inZone(zone any) program.Session {
	return program.Session{CR: map[string]any{
		"apiVersion": "shop.example/v1", "kind": "Shop", "metadata": map[string]any{"name": "a", "namespace": "b"}, "spec": map[string]any{"zone": zone},
	}}
}

// TestAllValuesOfAnEnumerationShareATemplate: however many values there are, each is a value and no form.
func TestAllValuesOfAnEnumerationShareATemplate(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		schema string
		values int
	}{
		"few":               {"as it always was", `#Spec: zone: ZONES`, 3},
		"some":              {"twenty names may stand for each other, and more values be alternatives", `#Spec: zone: ZONES`, 40},
		"many":              {"as with few", `#Spec: zone: ZONES`, 300},
		"in a definition":   {"a name stands for them", "#Zone: ZONES\n#Spec: zone: #Zone", 40},
		"with a default":    {"one of them is marked", `#Spec: zone: *"zone-x" | ZONES`, 40},
		"in parentheses":    {"they are alternatives as well", `#Spec: zone: (ZONES) & =~"^zone"`, 40},
		"of a longer chain": {"each name is followed", "#A: #B\n#B: #C\n#C: ZONES\n#Spec: zone: #A", 40},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTested(enumerating(t, row.schema, row.values))
			for i := range row.values {
				if i < 5 || i > row.values-3 {
					x.compare(t, inZone(fmt.Sprintf("zone-%d", i)))
				}
			}
			if len(x.templates) != 1 || x.rejected > 0 || x.fallbacks > 0 {
				t.Errorf("%s: %d templates, %d hits, %d rejected, %d fallbacks", row.reason, len(x.templates), x.hits, x.rejected, x.fallbacks)
			}
			hits := x.hits
			for _, wrong := range []any{"zone-", "zone-30000", "zone", "", int64(1)} {
				x.compare(t, inZone(wrong))
			}
			if x.hits > hits {
				t.Errorf("%s: a template has an answer for a zone that there is none of", row.reason)
			}
		})
	}
}

// TestATemplateOfManyValuesIsCheap: 2,000 values cost CUE a quarter of a second, for each resource.
func TestATemplateOfManyValuesIsCheap(t *testing.T) { //nolint:paralleltest // it measures processor time
	machine.Serial(t)
	p := enumerating(t, `#Spec: zone: ZONES`, 2000)
	x := newTested(p)
	x.compare(t, inZone("zone-1"))
	if len(x.templates) != 1 {
		t.Fatalf("%d templates", len(x.templates))
	}
	for _, tpl := range x.templates {
		machine.ExpectProcessorTime(t, 100*time.Millisecond, func() {
			for i := range 100 {
				view := p.Views().Of(inZone(fmt.Sprintf("zone-%d", i)))
				if _, err := tpl.Eval(view.Values()); err != nil {
					t.Errorf("zone-%d: %v", i, err)
				}
			}
		})
	}
}
