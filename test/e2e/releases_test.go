package e2e

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// releases holds the behaviour of two versions, which spec.version chooses: the second
// has a cache, and no legacy any more.
const releases = `
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
	s := newSite(t)
	p := newSmall(t, "releases", releases)
	s.operate(p.dir)
	cr := s.create(p.thing(s, "shop", map[string]any{"version": "1"}))
	s.expectAllReady(cr)
	s.expectVersions(cr, "1", "1")
	s.expectThat(s.ref("ConfigMap", "legacy-shop"), "to exist", exists)

	// Until the second is verified, the first is what has been reconciled.
	s.patch(cr, map[string]any{"spec": map[string]any{"version": "2"}})
	s.expectNotReady(cr, "NotReady", "cache", "verify.warm")
	s.expectVersions(cr, "2", "1")
	s.expectData("web-shop", "version", "1")
	s.patch(s.ref("ConfigMap", "cache-shop"), map[string]any{"data": map[string]any{"warm": "yes"}})
	s.expectAllReady(cr)
	s.expectVersions(cr, "2", "2")
	s.expectData("web-shop", "cache", "cache-shop")
	s.expectGone(s.ref("ConfigMap", "legacy-shop"))

	// And back: what only the second has goes, after web has let go of it.
	s.patch(cr, map[string]any{"spec": map[string]any{"version": "1"}})
	s.expectGone(s.ref("ConfigMap", "cache-shop"))
	s.expectAllReady(cr)
	s.expectVersions(cr, "1", "1")
	s.expectData("web-shop", "version", "1")

	s.delete(cr)
	s.expectGone(cr)
	s.expectNone("ConfigMap")
}

// expectVersions waits until the status names a desired and a reconciled version.
func (s *site) expectVersions(cr *unstructured.Unstructured, desired, reconciled string) {
	s.t.Helper()
	s.expectThat(cr, fmt.Sprintf("to want version %s and to have reconciled %s", desired, reconciled), func(u *unstructured.Unstructured) error {
		if u == nil {
			return errors.New("it is gone")
		}
		if d, r := field(u, "status", "versions", "desired"), field(u, "status", "versions", "reconciled"); d != desired || r != reconciled {
			return fmt.Errorf("they are %v and %v", d, r)
		}
		return nil
	})
}
