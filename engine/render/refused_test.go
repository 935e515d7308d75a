package render_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/render"
	"operetta.dev/test/inline"
)

func TestAnObjectThatWaitsIsHeldAgainstItsType(t *testing.T) {
	t.Parallel()
	imports := strings.Replace(header, "import \"operetta.dev/schemas/operator\"", `import ("operetta.dev/schemas/operator", corev1 "operetta.dev/schemas/k8s/core/v1", appsv1 "operetta.dev/schemas/k8s/apps/v1")`, 1)
	const first = "_core: corev1.#Service\n_apps: appsv1.#Deployment\ncomponents: first: objects: c: #CM & {metadata: name: \"first\"}\n"
	for name, row := range map[string]struct {
		reason string
		later  string
		want   []string
	}{
		"a field that the kind does not have": {
			"the API server will refuse it", `objects: s: corev1.#Service & {metadata: name: "s", spec: {ports: [{port: 80}], typ: "NodePort"}}`,
			[]string{"components.later.objects.s.spec.typ: unknown field"},
		},
		"a field of an object that is not complete": {
			"what else it waits for does not mend it", `objects: s: corev1.#Service & {metadata: name: live.first.c.metadata.uid, spec: {ports: [{port: 80}], typ: "NodePort"}}`,
			[]string{"components.later.objects.s.spec.typ: unknown field"},
		},
		"a required field that is missing": {
			"nothing adds it later", `objects: d: appsv1.#Deployment & {metadata: name: "d", spec: template: {metadata: labels: a: "b", spec: containers: [{name: "c", image: "i"}]}}`,
			[]string{"components.later.objects.d.spec.selector: required, but not set"},
		},
		"a value that is computed": {
			"it may be another one when the component has its turn", `objects: s: corev1.#Service & {metadata: name: "s", spec: {ports: [{port: 80}], type: "\(cr.metadata.name)"}}`,
			nil,
		},
		"an object in order": {
			"there is nothing to say", `objects: s: corev1.#Service & {metadata: name: "s", spec: ports: [{port: 80}]}`,
			nil,
		},
		"a component that is excluded": {
			"it is not applied", `when: cr.metadata.name == "none", objects: s: corev1.#Service & {metadata: name: "s", spec: {ports: [{port: 80}], typ: "NodePort"}}`,
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := mustRender(t, inline.Program(t, imports+first+"components: later: {dependsOn: first: {}, "+row.later+"}"), render.Input{})
			var got []string
			for _, f := range out.Refused {
				got = append(got, f.Path+": "+f.Message)
				if f.Position.IsZero() {
					t.Errorf("%s: %s has no line", row.reason, f.Path)
				}
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}
