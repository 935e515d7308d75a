package check_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/check"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/vet"
)

// TestAResourceLeadsToWhatTheTypesFind: for a fault in a part of the package, there is a resource that has this part, with nothing else in it.
func TestAResourceLeadsToWhatTheTypesFind(t *testing.T) {
	t.Parallel()
	const (
		other = "other: bool | *false"
		mode  = `mode: "plain" | "strict" | *"plain"`
		web   = `components: web: objects: deployment: {apiVersion: "apps/v1", kind: "Deployment", metadata: name: "web", spec: {selector: matchLabels: app: "web", template: {metadata: labels: app: "web", spec: containers: [{name: "web", image: "nginx"}]}}}`
		typed = `components: web: objects: service: corev1.#Service & {metadata: name: "web", spec: ports: [{port: 80}]}`
	)
	for name, row := range map[string]struct {
		reason     string
		spec, more string
		want       map[string]any
	}{
		"AFieldThatIsAlwaysRendered":  {"every resource shows it", other, typed + "\ncomponents: web: objects: service: spec: typ: \"ClusterIP\"", map[string]any{}},
		"AFieldUnderACondition":       {"a switch that is off by default", "debug: bool | *false, " + other, typed + "\nif cr.spec.debug {components: web: objects: service: spec: typ: \"ClusterIP\"}", map[string]any{"debug": true}},
		"AWrongTypeInALoop":           {"a list that is empty by default", "names: [...string], " + other, typed + "\nfor n in cr.spec.names {components: (n): objects: service: corev1.#Service & {metadata: name: n, spec: {ports: [{port: 80}], type: 1}}}", map[string]any{"names": []any{"names"}}},
		"AFieldOfAnExcludedComponent": {"nothing of it is applied by default", "debug: bool | *false, " + other, typed + "\ncomponents: \"web-2\": {when: cr.spec.debug, objects: service: corev1.#Service & {metadata: name: \"two\", spec: {ports: [{port: 80}], typ: \"ClusterIP\"}}}", map[string]any{"debug": true}},
		"AReadThatIsAlwaysMade":       {"every resource reads it", other, web + "\ncomponents: web: verify: up: live.web.deployment.status.readyReplica >= 1", map[string]any{}},
		"AReadUnderACondition":        {"only the strict mode reads it", mode + ", " + other, web + "\nif cr.spec.mode == \"strict\" {components: web: verify: up: live.web.deployment.status.readyReplica >= 1}", map[string]any{"mode": "strict"}},
		"AReadBesideADefault":         {"the default hides that it is read", mode + ", " + other, web + "\nif cr.spec.mode == \"strict\" {status: up: *live.web.deployment.status.readyReplica | 0}", map[string]any{"mode": "strict"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := typedPackage(t, row.spec, row.more)
			known := vet.Examine(p, nil).Types(nil)
			if len(known) != 1 {
				t.Fatalf("%s: the types find %v, want one fault", row.reason, known)
			}
			report, err := check.Run(t.Context(), p, check.Options{Known: known})
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Counterexamples) > 0 {
				t.Errorf("%s: said twice: %v", row.reason, report.Counterexamples)
			}
			var got map[string]any
			for _, r := range report.Reached {
				got, _ = r.Resource["spec"].(map[string]any)
				if diff := cmp.Diff(known, fault.Faults{r.Fault}); diff != "" {
					t.Errorf("%s: it is about another fault (-want +got):\n%s", row.reason, diff)
				}
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

// TestAResourceLeadsToWhatTheTextShows: for a fault that follows from the text, the smallest resource that has the component and the object which it is
// about.
func TestAResourceLeadsToWhatTheTextShows(t *testing.T) {
	t.Parallel()
	const (
		secret = `components: login: objects: token: {apiVersion: "v1", kind: "Secret", metadata: name: "t", type: cr.spec.type}`
		spec   = "type: string | *\"Opaque\", debug: bool | *false"
	)
	for name, row := range map[string]struct {
		reason string
		more   string
		path   string
		want   map[string]any
	}{
		"an object of every resource":     {"the simplest resource has it", secret, "components.login.objects.token.type", map[string]any{}},
		"an object under a condition":     {"a resource without it shows nothing", "if cr.spec.debug {" + secret + "}", "components.login.objects.token.type", map[string]any{"debug": true}},
		"a component whose when is false": {"it does not exist by default", secret + "\ncomponents: login: when: cr.spec.debug", "components.login", map[string]any{"debug": true}},
		"a component that never exists":   {"no resource leads there", secret + "\ncomponents: login: when: cr.spec.type == \"none\" && cr.spec.type == \"one\"", "components.login", nil},
		"what is not about a component":   {"each resource may lead there, or none", secret, "cr.spec.typ", nil},
		"an object that no resource has":  {"no resource leads there", secret, "components.login.objects.other.type", nil},
		"a condition of a component":      {"the component is enough", secret, "components.login.requires.there", map[string]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			known := fault.Fault{Path: row.path, Message: "it is wrong"}
			report, err := check.Run(t.Context(), typedPackage(t, spec, row.more), check.Options{Known: fault.Faults{known}})
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			for _, r := range report.Reached {
				got, _ = r.Resource["spec"].(map[string]any)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

// typedPackage is a package that imports Kubernetes types.
func typedPackage(tb testing.TB, spec, more string) *program.Program {
	tb.Helper()
	return packageOf(tb, `package shop

import (
	"operetta.dev/schemas/operator"
	corev1 "operetta.dev/schemas/k8s/core/v1"
)

_core: corev1.#ConfigMap
operator.#Controller
group: "shop.example"
kind:  "Shop"
versions: v1: spec: #Spec
cr: spec: #Spec
live: _

#Spec: {`+spec+`}
`+more)
}
