package e2e

import (
	"fmt"
	"testing"
	"time"
)

const settled = `
#Spec: {}

config: {image: string | *"web:1", limits: {cpu: int | *1, memory: int | *2}}
components: web: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "web-\(cr.metadata.name)"
	data: all: "\(config.image) \(config.limits.cpu) \(config.limits.memory)"
}
`

func TestConfigurationComesFromThePackageTheConfigMapAndTheAnnotation(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "settled", settled)
	s.operate(p.dir, "--config-map", s.namespace+"/settings")
	one := s.create(p.thing(s, "one", map[string]any{}))
	two := p.thing(s, "two", map[string]any{})
	two.SetAnnotations(map[string]string{"operetta.dev/config": "limits: {cpu: 8}"})
	s.create(two)
	s.expectData("web-one", "all", "web:1 1 2")
	s.expectData("web-two", "all", "web:1 8 2")

	settings := s.create(s.configMap("settings", map[string]any{"settled.yaml": "image: web:2\nlimits: {cpu: 4}\n", "another.yaml": "image: x"}))
	began := time.Now()
	s.expectData("web-one", "all", "web:2 4 2")
	t.Logf("in effect after %s", since(began))
	s.expectData("web-two", "all", "web:2 8 2")
	s.patch(settings, map[string]any{"data": map[string]any{"settled.yaml": "image: web:3"}})
	s.expectData("web-one", "all", "web:3 1 2")
	s.expectData("web-two", "all", "web:3 8 2")
	s.expectAllReady(one)
	s.expectAllReady(two)

	// A contradiction names both places and touches nothing.
	before := fmt.Sprint(s.configVersions())
	s.patch(settings, map[string]any{"data": map[string]any{"settled.yaml": "image: web:3\nlimits: {cpu: many}"}})
	t.Log(s.expectNotReady(one, "InvalidConfig", "config.limits.cpu", "settled.cue:", "ConfigMap "+s.namespace+"/settings, key settled.yaml"))
	if stalled := condition(s.expectThat(one, "to exist", exists), "Stalled"); stalled["status"] != "True" {
		t.Errorf("Stalled is %v", stalled)
	}
	s.expectData("web-one", "all", "web:3 1 2")
	s.patch(settings, map[string]any{"data": map[string]any{"settled.yaml": "image: web:3"}})
	s.expectAllReady(one)
	s.patch(two, annotation("operetta.dev/config", "image: 5"))
	t.Log(s.expectNotReady(two, "InvalidConfig", "config.image", "settled.cue:", "annotation operetta.dev/config"))
	s.patch(two, annotation("operetta.dev/config", "{: ["))
	s.expectNotReady(two, "InvalidConfig", "annotation operetta.dev/config", "yaml")
	s.patch(two, annotation("operetta.dev/config", "limits: {cpus: 8}"))
	t.Log(s.expectNotReady(two, "InvalidConfig", "config.limits.cpus: unknown field", "settled.cue:", "annotation operetta.dev/config", "there are cpu, memory"))
	s.patch(settings, map[string]any{"data": map[string]any{"settled.yaml": "image: web:3\nimagee: web:4"}})
	t.Log(s.expectNotReady(one, "InvalidConfig", "config.imagee: unknown field", "settled.cue:", "ConfigMap "+s.namespace+"/settings, key settled.yaml", "did you mean image?"))
	s.patch(settings, map[string]any{"data": map[string]any{"settled.yaml": "image: web:3"}})
	s.expectAllReady(one)
	if after := fmt.Sprint(s.configVersions()); after != before {
		t.Errorf("an object was touched: %s, was %s", after, before)
	}
	s.delete(two)
	s.expectGone(two)
	s.expectGone(s.ref("ConfigMap", "web-two"))
	s.expectData("web-one", "all", "web:3 1 2")
}

// configVersions returns the versions of the ConfigMaps that belong to a resource.
func (s *site) configVersions() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for _, u := range s.list("v1", "ConfigMap") {
		if u.GetLabels()["operetta.dev/owner"] != "" {
			out[u.GetName()] = u.GetResourceVersion()
		}
	}
	return out
}
