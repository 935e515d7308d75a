package shadow

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/dryrun/diff"
	"operetta.dev/engine/plan"
	"sigs.k8s.io/yaml"
)

// objectOf returns the object that a text in YAML is.
func objectOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return u
}

// written returns an object as another operator has written it.
func written(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := objectOf(t, text)
	m := memory.New()
	m.Serve(u.GroupVersionKind().GroupKind(), "Namespaced")
	out, err := m.Put("other", u)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// shown returns fields as texts.
func shown(fields []Field) []string {
	var out []string
	for _, f := range fields {
		out = append(out, fmt.Sprintf("%s: %s -> %s by %s", f.Path, f.Live, f.Wanted, strings.Join(f.Managers, ",")))
	}
	return out
}

func of(kind, rest string) string {
	versions := map[string]string{"Deployment": "apps/v1", "Widget": "example.com/v1", "NetworkPolicy": "networking.k8s.io/v1"}
	version := versions[kind]
	if version == "" {
		version = "v1"
	}
	return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: x, namespace: default}, %s}", version, kind, rest)
}

func containers(rest string) string {
	return of("Deployment", "spec: {template: {spec: {containers: ["+rest+"]}}}")
}

func TestOnlyWhatIsRenderedIsCompared(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		reason       string
		live, wanted string
		want         []string
	}{
		"the same": {"nothing differs", of("ConfigMap", "data: {a: b}"), of("ConfigMap", "data: {a: b}"), nil},
		"a value":  {"with its manager", of("ConfigMap", "data: {a: b, c: d}"), of("ConfigMap", "data: {a: e}"), []string{`data.a: "b" -> "e" by other`}},
		"a field that is not there": {
			"nobody owns it", of("ConfigMap", "data: {c: d}"), of("ConfigMap", "data: {a: e}"), []string{`data.a: (none) -> "e" by `},
		},
		"defaults of the API server": {
			"they are not rendered",
			of("Deployment", "spec: {replicas: 1, revisionHistoryLimit: 10, template: {spec: {restartPolicy: Always, containers: [{name: a, image: i, imagePullPolicy: Always, ports: [{containerPort: 80, protocol: TCP}]}]}}}"),
			containers("{name: a, image: i, ports: [{containerPort: 80}]}"), nil,
		},
		"what an autoscaler sets":              {"it is not rendered", of("Deployment", "spec: {replicas: 7, paused: false}"), of("Deployment", "spec: {paused: false}"), nil},
		"a quantity in another notation":       {"1000m is 1", containers(`{name: a, resources: {requests: {cpu: "1"}}}`), containers(`{name: a, resources: {requests: {cpu: 1000m}}}`), nil},
		"another quantity":                     {"it is canonical", containers(`{name: a, resources: {requests: {cpu: "1"}}}`), containers(`{name: a, resources: {requests: {cpu: 500m}}}`), []string{`spec.template.spec.containers[name=a].resources.requests.cpu: "1" -> "500m" by other`}},
		"a false that the API server omits":    {"it is the same as none", of("Deployment", "spec: {template: {spec: {restartPolicy: Always}}}"), of("Deployment", "spec: {template: {spec: {hostNetwork: false}}}"), nil},
		"a false in place of true":             {"it is not", of("Deployment", "spec: {template: {spec: {hostNetwork: true}}}"), of("Deployment", "spec: {template: {spec: {hostNetwork: false}}}"), []string{`spec.template.spec.hostNetwork: true -> false by other`}},
		"a sidecar that is injected":           {"its item merges", containers("{name: a, image: i}, {name: proxy, image: p}"), containers("{name: a, image: i}"), nil},
		"a container under another name":       {"the other one stays", containers("{name: b, image: i}"), containers("{name: a, image: i}"), []string{`spec.template.spec.containers[name=a].image: (none) -> "i" by `, `spec.template.spec.containers[name=a].name: (none) -> "a" by `}},
		"another order of merged items":        {"pods would be replaced", containers("{name: a, env: [{name: A, value: a}, {name: B, value: b}]}"), containers("{name: a, env: [{name: B, value: b}, {name: A, value: a}]}"), []string{`spec.template.spec.containers[name=a].env: (an order) -> (another order) by other`}},
		"arguments":                            {"a list of values is one value", containers("{name: a, args: [a, b]}"), containers("{name: a, args: [a]}"), []string{`spec.template.spec.containers[name=a].args: ["a","b"] -> ["a"] by other`}},
		"a default in an item without a key":   {"the list is replaced, and defaulted again", of("NetworkPolicy", "spec: {ingress: [{ports: [{port: 80, protocol: TCP}]}]}"), of("NetworkPolicy", "spec: {ingress: [{ports: [{port: 80}]}]}"), nil},
		"an item less in a list without a key": {"an apply removes it", of("NetworkPolicy", "spec: {ingress: [{ports: [{port: 80}]}, {ports: [{port: 81}]}]}"), of("NetworkPolicy", "spec: {ingress: [{ports: [{port: 80}]}]}"), []string{`spec.ingress[1]: {"ports":[{"port":81}]} -> (none) by other`}},
		"a number of another type":             {"1.0 is 1", of("Widget", "spec: {size: 1, items: [{name: a, n: 1}]}"), of("Widget", "spec: {size: 1.0, items: [{name: a}]}"), nil},
		"an empty text in a custom resource":   {"the API server stores it", of("Widget", "spec: {}"), of("Widget", `spec: {text: ""}`), []string{`spec.text: (none) -> "" by `}},
		"null":                                 {"it asks for absence, as in an apply", of("Widget", "spec: {a: b}"), of("Widget", "spec: {a: null}"), nil},
		"an empty volume in place of a folder": {"an empty struct means something", of("Deployment", "spec: {template: {spec: {volumes: [{name: v, hostPath: {path: /}}]}}}"), of("Deployment", "spec: {template: {spec: {volumes: [{name: v, emptyDir: {}}]}}}"), []string{`spec.template.spec.volumes[name=v].emptyDir: (none) -> {} by `}},
		"a Secret": {
			"no value is shown, only that it differs", of("Secret", "data: {p: aHVudGVyMg==}"), of("Secret", "data: {p: aHVudGVyMw==}"), []string{`data.p: *** -> *** (another) by other`},
		},
		"a label of somebody": {"it stays", of("ConfigMap", "data: {}"), strings.Replace(of("ConfigMap", "data: {}"), "name: x", `name: x, labels: {"operetta.dev/owner": me}, ownerReferences: [{apiVersion: v1, kind: A, name: a, uid: u}]`, 1), nil},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, more, err := differences(&diff.Mask{}, written(t, row.live), objectOf(t, row.wanted))
			if err != nil || more != 0 {
				t.Fatalf("%d more, %v", more, err)
			}
			for i, f := range got {
				got[i].Live, got[i].Wanted = plan.OrNone(f.Live), plan.OrNone(f.Wanted)
			}
			if diff := cmp.Diff(row.want, shown(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

func TestAFieldNamesAllItsManagers(t *testing.T) {
	t.Parallel()
	live := written(t, of("Deployment", "spec: {replicas: 2}"))
	fields := live.GetManagedFields()
	more := fields[0].DeepCopy()
	more.Manager, more.Subresource = "kube-controller-manager", "scale"
	live.SetManagedFields(append(fields, *more))
	got, _, err := differences(&diff.Mask{}, live, objectOf(t, of("Deployment", "spec: {replicas: 3}")))
	if err != nil {
		t.Fatal(err)
	}
	want := []Field{{Path: "spec.replicas", Live: "2", Wanted: "3", Managers: []string{"kube-controller-manager (scale)", "other"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAMillionFieldsAreCountedAndAHundredListed(t *testing.T) {
	t.Parallel()
	live, wanted := objectOf(t, of("ConfigMap", "data: {}")), objectOf(t, of("ConfigMap", "data: {}"))
	data := map[string]any{}
	for i := range 5000 {
		data[fmt.Sprintf("k%d", i)] = "v"
	}
	wanted.Object["data"] = data
	got, more, err := differences(&diff.Mask{}, live, wanted)
	if err != nil || len(got) != maxFields || more != 5000-maxFields {
		t.Errorf("%d listed, %d more, %v", len(got), more, err)
	}
}
