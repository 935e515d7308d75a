package e2e

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// releasesBody has the behaviour of two versions, which spec.version selects: the second one has a
// cache, and no legacy component.
const releasesBody = `
live: _
#Spec: version: *"2" | "1"

_releases: "1": components: {
	legacy: objects: map: _map & {metadata: name: "legacy-\(cr.metadata.name)"}
	web: {
		dependsOn: legacy: {}
		objects: map: _web & {data: version: "1"}
	}
}
_releases: "2": components: {
	cache: {
		objects: map: _map & {metadata: name: "cache-\(cr.metadata.name)"}
		verify: warm: live.cache.map.data.warm == "yes"
		outputs: name: live.cache.map.metadata.name
	}
	web: objects: map: _web & {data: {version: "2", cache: _releases["2"].components.cache.outputs.name}}
}
components: _releases[cr.spec.version].components

_map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: string, ...}
_web: _map & {metadata: name: "web-\(cr.metadata.name)"}
`

func TestAPackageHoldsTheBehaviourOfSeveralVersions(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "releases", releasesBody)
	s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{"version": "1"}))
	s.ExpectResourceReady(cr)
	s.expectVersions(cr, "1", "1")
	s.ExpectObject(s.Ref("ConfigMap", "legacy-shop"), "to exist", harness.Exists)

	// Until the second version is verified, the first one is the reconciled version.
	s.Patch(cr, map[string]any{"spec": map[string]any{"version": "2"}})
	s.ExpectNotReady(cr, "NotReady", "cache", "verify.warm")
	s.expectVersions(cr, "2", "1")
	s.ExpectData("web-shop", "version", "1")
	s.Patch(s.Ref("ConfigMap", "cache-shop"), map[string]any{"data": map[string]any{"warm": "yes"}})
	s.ExpectResourceReady(cr)
	s.expectVersions(cr, "2", "2")
	s.ExpectData("web-shop", "cache", "cache-shop")
	s.ExpectGone(s.Ref("ConfigMap", "legacy-shop"))

	// Back to the first version: the objects of the second one are deleted once web no longer needs them.
	s.Patch(cr, map[string]any{"spec": map[string]any{"version": "1"}})
	s.ExpectGone(s.Ref("ConfigMap", "cache-shop"))
	s.ExpectResourceReady(cr)
	s.expectVersions(cr, "1", "1")
	s.ExpectData("web-shop", "version", "1")

	s.Delete(cr)
	s.ExpectGone(cr)
	s.expectNone("ConfigMap")
}

// expectVersions waits until the status has a desired and a reconciled version.
func (s *env) expectVersions(cr *unstructured.Unstructured, desired, reconciled string) {
	s.T.Helper()
	s.ExpectObject(cr, fmt.Sprintf("to want version %s and to have reconciled %s", desired, reconciled), func(u *unstructured.Unstructured) error {
		if u == nil {
			return errors.New("it is gone")
		}
		if d, r := harness.Field(u, "status", "versions", "desired"), harness.Field(u, "status", "versions", "reconciled"); d != desired || r != reconciled {
			return fmt.Errorf("they are %v and %v", d, r)
		}
		return nil
	})
}
