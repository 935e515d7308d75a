package reconcile_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/reconcile"
)

// fedBody is a package with configuration.
const fedBody = `
config: {text: string | *"hello", limits: [string]: int}
components: greeting: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: cr.spec.name
	data: text: config.text
}
`

// FuzzStep feeds what others may write: the status of a resource, its annotation with
// configuration, and the operator's ConfigMap. Whatever it is, a step ends, the next ones come to
// rest, and an object of somebody else stays.
func FuzzStep(f *testing.F) {
	loader := &bench{t: &testing.T{}}
	loader.load(fedBody)
	right := `{"observedGeneration":1,"phase":"Ready","conditions":[{"type":"Ready","status":"True","reason":"Verified","message":"","lastTransitionTime":"1970-01-01T00:16:41Z"}],"components":[{"name":"greeting","state":"Verified"}],"inventory":[{"component":"greeting","objects":[{"version":"v1","kind":"ConfigMap","name":"shop","object":"map"}]}]}`
	f.Add(right, "text: bye", "text: hi")
	f.Add(`{"conditions":[5,{"type":5},{"type":"Stalled","status":"True","lastTransitionTime":"never"}],"components":[null,{"name":{}}],"hooks":[{}],"patches":5,"versions":[]}`, "{: [", "limits: {a: 1e400}")
	f.Add(`{"observedGeneration":"x","phase":{},"inventory":[{"component":"/","objects":[{"kind":"ConfigMap","version":"v1","name":"bystander","object":"x"}],"after":["/"]}]}`, "5", "text: &a [*a]")
	f.Fuzz(func(t *testing.T, status, annotation, settingsText string) {
		b := &bench{t: t, memory: memory.New(), program: loader.program, now: time.Unix(1000, 0).UTC()}
		b.memory.Serve(shopKind.GroupKind(), cluster.Namespaced)
		b.restart()
		act(t, b.memory, map[string]any{})
		b.put(settings(shopKey.Namespace, "bystander", map[string]any{"text": "mine"}))
		if _, err := b.memory.Put("admin", &unstructured.Unstructured{Object: settings(configKey.Namespace, configKey.Name, map[string]any{"shop.yaml": settingsText})}); err != nil {
			t.Skip("no API server would keep this ConfigMap")
		}
		var s map[string]any
		if utiljson.Unmarshal([]byte(status), &s) != nil {
			t.Skip("it is no status: the API server has objects only")
		}
		cr := b.find("Shop", shopKey.Name)
		cr.Object["status"] = s
		cr.SetAnnotations(map[string]string{reconcile.AnnotationConfig: annotation})
		if _, err := b.memory.Put("person", cr); err != nil {
			t.Skip("no API server would keep this resource")
		}
		b.rest()
		if u := b.find("ConfigMap", "bystander"); u == nil || b.data("bystander", "text") != "mine" {
			t.Errorf("an object of somebody else is %v", u)
		}
	})
}
