package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

const tokenBody = `
#Spec: secret: bool | *true

components: settings: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "settings-\(cr.metadata.name)"
}
if cr.spec.secret {
	components: token: objects: secret: {
		apiVersion: "v1"
		kind:       "Secret"
		metadata: name: "token-\(cr.metadata.name)"
	}
}
`

// unreadableLimit is how long a resource may take if other resources wait for a kind that cannot be
// read. It is shorter than the longest such wait.
const unreadableLimit = 15 * time.Second

func TestKindThatMayNotBeReadHoldsWhatNeedsItAndNobodyElse(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "tokened", tokenBody)
	role := s.RestrictOperator(append(p.RequiredRules(), harness.Rule("", harness.WriteVerbs, "configmaps"))...)
	s.StartRestrictedOperator(p.TestPackage)
	// There are more such resources than workers.
	var held []*unstructured.Unstructured
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		held = append(held, s.Create(p.Thing(s.Env, name, nil)))
	}
	for _, cr := range held {
		t.Log(s.ExpectNotReady(cr, "KindUnreadable", "v1 Secret cannot be read", "secrets is forbidden", s.User))
	}
	plain := s.Create(p.Thing(s.Env, "plain", map[string]any{"secret": false}))
	took := harness.Within(t, unreadableLimit, "a resource that needs no Secret to be ready", func() error {
		u, err := harness.GetOrNil(t.Context(), plain)
		if err != nil {
			return err
		}
		return harness.Ready(u)
	})
	t.Logf("ready after %s", took.Round(time.Millisecond))
	for _, cr := range held {
		if u, err := s.Lookup("ConfigMap", "settings-"+cr.GetName()); u != nil || err != nil {
			t.Errorf("%s was rolled out in part: %v (error %v)", cr.GetName(), u, err)
		}
	}

	began := time.Now()
	s.Patch(role, map[string]any{"rules": append(p.RequiredRules(), harness.Rule("", harness.WriteVerbs, "configmaps", "secrets"))})
	for _, cr := range held {
		s.ExpectResourceReady(cr)
	}
	t.Logf("ready %s after the permission was given", harness.Elapsed(began))
}

func TestStatusThatWasWipedIsRebuiltByAnOperatorOfOneNamespace(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	p := newTestPackage(t, "wipednear", layeredBody)
	s.RestrictOperator(append(p.RequiredRules(), harness.Rule("", harness.WriteVerbs, "configmaps", "serviceaccounts", "secrets"))...)
	o := s.StartRestrictedOperator(p.TestPackage)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{"text": "a"}))
	s.ExpectResourceReady(cr)
	s.Get("Secret", "top-shop-a")
	o.Stop()
	s.wipeStatus(p, "shop")
	s.Patch(cr, harness.Spec(map[string]any{"text": "b"}))
	o = s.StartRestrictedOperator(p.TestPackage)
	s.ExpectResourceReady(cr)
	s.Get("Secret", "top-shop-b")
	s.ExpectGone(s.Ref("Secret", "top-shop-a"))
	// The package has objects in its own namespace only, so its kinds are not restricted.
	if line := o.ExpectLog("objects were looked for as far as the operator may list them", "notAtAll"); strings.Contains(line, "Secret") {
		t.Errorf("Secrets of the namespace were not looked for: %s", line)
	}
}

func TestPatchesThatMayNotBeReadAreReadOnceTheyMay(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "unpatched", plainBody)
	configMaps := harness.Rule("", harness.WriteVerbs, "configmaps")
	role := s.RestrictOperator(append(p.RequiredRules(), configMaps)...)
	o := s.StartRestrictedOperator(p.TestPackage)
	t.Log(o.ExpectLog("patches are not looked at"))
	cr := s.Create(p.Thing(s.Env, "shop", nil))
	s.ExpectResourceReady(cr)
	s.ExpectObject(cr, "to say that its Patches do not count", func(u *unstructured.Unstructured) error {
		return harness.HasCondition(u, "PatchesUnread", "True", "Forbidden", "cannot list resource", "patches")
	})
	other := s.Create(p.Thing(s.Env, "other", nil))
	s.ExpectResourceReady(other)
	u := s.NewPatch("fix", "shop", 0, harness.StrategicMerge("web.settings", map[string]any{"data": map[string]any{"text": "patched"}}))
	u.Object["spec"].(map[string]any)["target"] = map[string]any{"apiVersion": p.Name + ".example.com/v1", "kind": "Thing", "name": "shop"}
	s.Create(u)

	began := time.Now()
	s.Patch(role, map[string]any{"rules": append(p.RequiredRules(), configMaps,
		harness.Rule("operetta.dev", []any{"get", "list", "watch"}, "patches"), harness.Rule("operetta.dev", []any{"patch"}, "patches/status"))})
	s.ExpectPatch("fix", "Applied")
	s.ExpectData("web-shop", "text", "patched")
	t.Logf("applied %s after the permission was given", harness.Elapsed(began))
	o.ExpectLog("patches are looked at from now on")
	// Another resource, which no Patch changes, says so no longer, too.
	s.ExpectObject(other, "to say so no longer", func(u *unstructured.Unstructured) error {
		if c := harness.Condition(u, "PatchesUnread"); len(c) > 0 {
			return fmt.Errorf("PatchesUnread is %v", c)
		}
		return harness.Ready(u)
	})
}
