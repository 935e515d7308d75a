package e2e

import (
	"fmt"
	"testing"
	"time"

	"operetta.dev/test/harness"
)

const settledBody = `
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
	s := newEnv(t)
	p := newTestPackage(t, "settled", settledBody)
	s.StartOperator(p.Dir, "--config-map", s.Namespace+"/settings")
	one := s.Create(p.Thing(s.Env, "one", map[string]any{}))
	two := p.Thing(s.Env, "two", map[string]any{})
	two.SetAnnotations(map[string]string{"operetta.dev/config": "limits: {cpu: 8}"})
	s.Create(two)
	s.ExpectData("web-one", "all", "web:1 1 2")
	s.ExpectData("web-two", "all", "web:1 8 2")

	settings := s.Create(s.ConfigMap("settings", map[string]any{"settled.yaml": "image: web:2\nlimits: {cpu: 4}\n", "another.yaml": "image: x"}))
	began := time.Now()
	s.ExpectData("web-one", "all", "web:2 4 2")
	t.Logf("in effect after %s", harness.Elapsed(began))
	s.ExpectData("web-two", "all", "web:2 8 2")
	s.Patch(settings, map[string]any{"data": map[string]any{"settled.yaml": "image: web:3"}})
	s.ExpectData("web-one", "all", "web:3 1 2")
	s.ExpectData("web-two", "all", "web:3 8 2")
	s.ExpectResourceReady(one)
	s.ExpectResourceReady(two)

	// A contradiction is reported with both places, and changes no object.
	before := fmt.Sprint(s.configVersions())
	s.Patch(settings, map[string]any{"data": map[string]any{"settled.yaml": "image: web:3\nlimits: {cpu: many}"}})
	t.Log(s.ExpectNotReady(one, "InvalidConfig", "config.limits.cpu", "settled.cue:", "ConfigMap "+s.Namespace+"/settings, key settled.yaml"))
	if stalled := harness.Condition(s.ExpectObject(one, "to exist", harness.Exists), "Stalled"); stalled["status"] != "True" {
		t.Errorf("Stalled is %v", stalled)
	}
	s.ExpectData("web-one", "all", "web:3 1 2")
	s.Patch(settings, map[string]any{"data": map[string]any{"settled.yaml": "image: web:3"}})
	s.ExpectResourceReady(one)
	s.Patch(two, harness.Annotation("operetta.dev/config", "image: 5"))
	t.Log(s.ExpectNotReady(two, "InvalidConfig", "config.image", "settled.cue:", "annotation operetta.dev/config"))
	s.Patch(two, harness.Annotation("operetta.dev/config", "{: ["))
	s.ExpectNotReady(two, "InvalidConfig", "annotation operetta.dev/config", "yaml")
	s.Patch(two, harness.Annotation("operetta.dev/config", "limits: {cpus: 8}"))
	t.Log(s.ExpectNotReady(two, "InvalidConfig", "config.limits.cpus: unknown field", "settled.cue:", "annotation operetta.dev/config", "there are cpu, memory"))
	s.Patch(settings, map[string]any{"data": map[string]any{"settled.yaml": "image: web:3\nimagee: web:4"}})
	t.Log(s.ExpectNotReady(one, "InvalidConfig", "config.imagee: unknown field", "settled.cue:", "ConfigMap "+s.Namespace+"/settings, key settled.yaml", "did you mean image?"))
	s.Patch(settings, map[string]any{"data": map[string]any{"settled.yaml": "image: web:3"}})
	s.ExpectResourceReady(one)
	if after := fmt.Sprint(s.configVersions()); after != before {
		t.Errorf("an object was touched: %s, was %s", after, before)
	}
	s.Delete(two)
	s.ExpectGone(two)
	s.ExpectGone(s.Ref("ConfigMap", "web-two"))
	s.ExpectData("web-one", "all", "web:3 1 2")
}

// configVersions returns the versions of the ConfigMaps that belong to a resource.
func (s *env) configVersions() map[string]string {
	s.T.Helper()
	out := map[string]string{}
	for _, u := range s.List("v1", "ConfigMap") {
		if u.GetLabels()["operetta.dev/owner"] != "" {
			out[u.GetName()] = u.GetResourceVersion()
		}
	}
	return out
}
