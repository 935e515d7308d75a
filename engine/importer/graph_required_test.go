package importer_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"
	"operetta.dev/engine/importer"
	"operetta.dev/engine/render"
	"operetta.dev/engine/vet"
)

// quickStart is a small original in the manner of the first example of kro: no field is marked as required.
const quickStart = `apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: web}
spec:
  schema:
    apiVersion: v1alpha1
    kind: Web
    spec:
      name: string
      image: string | default="nginx"
      comment: string
      public:
        enabled: boolean | default=false
        port: integer | default=80
    status:
      available: ${deployment.status.availableReplicas}
  resources:
  - id: deployment
    template:
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: "${schema.spec.name}"}
      spec:
        replicas: 2
        selector: {matchLabels: {app: "${schema.spec.name}"}}
        template:
          metadata: {labels: {app: "${schema.spec.name}"}}
          spec: {containers: [{name: web, image: "${schema.spec.image}"}]}
  - id: service
    template:
      apiVersion: v1
      kind: Service
      metadata: {name: "${schema.spec.name}-service"}
      spec: {selector: "${deployment.spec.selector.matchLabels}", ports: [{port: 80}]}
  - id: ingress
    includeWhen: ["${schema.spec.public.enabled}"]
    template:
      apiVersion: networking.k8s.io/v1
      kind: Ingress
      metadata: {name: "${schema.spec.name}-ingress"}
      spec: {defaultBackend: {service: {name: "${service.metadata.name}", port: {number: "${schema.spec.public.port}"}}}}
`

// TestAFieldThatExpressionsNeedIsRequired imports definitions in which no field is marked as required, and compares what
// the sample sets and what the notes say is required with what the expressions need.
func TestAFieldThatExpressionsNeedIsRequired(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason, old, changed string
		spec                 map[string]any
		required             []string
	}{
		"as in the first example of kro": {"no object has a name without it", "", "", map[string]any{"name": "name"}, []string{"name"}},
		"marked as optional":             {"the expressions need it all the same", "name: string\n", "name: string | required=false\n", map[string]any{"name": "name"}, []string{"name"}},
		"required":                       {"there is nothing to say", "name: string\n", "name: string | required=true\n", map[string]any{"name": "name"}, nil},
		"two fields":                     {"one component needs both", `image: string | default="nginx"`, "image: string", map[string]any{"name": "name", "image": "image"}, []string{"image", "name"}},
		"a field of a struct":            {"the condition needs it", "enabled: boolean | default=false", "enabled: boolean", map[string]any{"name": "name", "public": map[string]any{"enabled": false}}, []string{"name", "public.enabled"}},
		"a field with a way out":         {"the expression says what stands for it", "name: web, image", `name: "${schema.spec.?comment.orValue('web')}", image`, map[string]any{"name": "name"}, []string{"name"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(quickStart, c.old, c.changed, 1)
			if c.old != "" && text == quickStart {
				t.Fatalf("%q is not in the definition", c.old)
			}
			result, err := importer.Import(t.Context(), objectsIn(t, text), importer.Options{Package: packageOf("web")})
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			p, _ := load(t, result.Files, "web")
			var sample map[string]any
			if err := yaml.Unmarshal([]byte(fileOf(t, result, "sample.yaml")), &sample); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(any(c.spec), sample["spec"]); diff != "" {
				t.Errorf("%s: spec of the sample (-want +got):\n%s", c.reason, diff)
			}
			var required []string
			for _, note := range result.Notes {
				if at, is := strings.CutPrefix(note, "in.yaml:1: spec.schema.spec."); is {
					field, _, _ := strings.Cut(at, " is required in the package: ")
					required = append(required, field)
				}
			}
			if diff := cmp.Diff(c.required, required); diff != "" {
				t.Errorf("%s: required fields in the notes (-want +got):\n%s", c.reason, diff)
			}
			out, err := render.Render(t.Context(), p, render.Input{CR: sample})
			if err != nil || len(out.Faults)+len(out.Invalid) > 0 {
				t.Errorf("the sample: %v %v %v", err, out.Faults, out.Invalid)
			}
			if faults, warnings, _ := vet.Examine(p, nil).All(); len(faults)+len(warnings) > 0 {
				t.Errorf("vet: %v %v", faults, warnings)
			}
		})
	}
}
