package e2e

import (
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const rbacAPI = "rbac.authorization.k8s.io"

// writes are the verbs that an operator needs for what it writes.
var writes = []any{"get", "list", "watch", "create", "patch", "update", "delete"}

// rule allows verbs on resources of a group.
func rule(group string, verbs []any, resources ...any) map[string]any {
	return map[string]any{"apiGroups": []any{group}, "resources": resources, "verbs": verbs}
}

// needs are the rules of an operator of a package for everything but the objects.
func (p *small) needs() []any {
	return []any{
		rule(p.name+".example.com", []any{"get", "list", "watch", "patch"}, "things"),
		rule(p.name+".example.com", []any{"patch"}, "things/status"),
		rule("events.k8s.io", []any{"create", "patch"}, "events"),
	}
}

// restrict makes the site's user one who may do what rules say in the site's namespace,
// and nothing elsewhere. It returns the role, which a test may change.
func (s *site) restrict(rules ...any) *unstructured.Unstructured {
	s.t.Helper()
	role := object(rbacAPI+"/v1", "Role", s.namespace, "operator")
	role.Object["rules"] = rules
	binding := object(rbacAPI+"/v1", "RoleBinding", s.namespace, "operator")
	binding.Object["roleRef"] = map[string]any{"apiGroup": rbacAPI, "kind": "Role", "name": "operator"}
	binding.Object["subjects"] = []any{map[string]any{"apiGroup": rbacAPI, "kind": "User", "name": s.user}}
	s.create(role)
	s.create(binding)
	var err error
	if s.kubeconfig, err = world.cp.KubeconfigFor(s.user); err != nil {
		s.t.Fatal(err)
	}
	return role
}

// operateRestricted starts an operator that may not install definitions.
func (s *site) operateRestricted(p *small) *operator {
	s.t.Helper()
	if err := installCRDs(s.t.Context(), p.dir); err != nil {
		s.t.Fatal(err)
	}
	s.kubectl("apply", "--server-side", "-f", filepath.Join(world.root, "config", "crd"))
	return s.operate(p.dir, "--crds", "leave")
}

const tokened = `
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

// unreadableLimit is how long a resource may take beside others that need a kind that
// cannot be read: less than one of them waits for that kind at most.
const unreadableLimit = 15 * time.Second

func TestKindThatMayNotBeReadHoldsWhatNeedsItAndNobodyElse(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "tokened", tokened)
	role := s.restrict(append(p.needs(), rule("", writes, "configmaps"))...)
	s.operateRestricted(p)
	// More than there are workers.
	var held []*unstructured.Unstructured
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		held = append(held, s.create(p.thing(s, name, nil)))
	}
	for _, cr := range held {
		t.Log(s.expectNotReady(cr, "KindUnreadable", "v1 Secret cannot be read", "secrets is forbidden", s.user))
	}
	plain := s.create(p.thing(s, "plain", map[string]any{"secret": false}))
	took := within(t, unreadableLimit, "a resource that needs no Secret to be ready", func() error {
		u, err := read(t.Context(), plain)
		if err != nil {
			return err
		}
		return ready(u)
	})
	t.Logf("ready after %s", took.Round(time.Millisecond))
	for _, cr := range held {
		if u, err := s.find("ConfigMap", "settings-"+cr.GetName()); u != nil || err != nil {
			t.Errorf("%s was rolled out in part: %v (error %v)", cr.GetName(), u, err)
		}
	}

	began := time.Now()
	s.patch(role, map[string]any{"rules": append(p.needs(), rule("", writes, "configmaps", "secrets"))})
	for _, cr := range held {
		s.expectAllReady(cr)
	}
	t.Logf("ready %s after the permission was given", since(began))
}

func TestStatusThatWasWipedIsRebuiltByAnOperatorOfOneNamespace(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "wipednear", layered)
	s.restrict(append(p.needs(), rule("", writes, "configmaps", "serviceaccounts", "secrets"))...)
	o := s.operateRestricted(p)
	cr := s.create(p.thing(s, "shop", map[string]any{"text": "a"}))
	s.expectAllReady(cr)
	s.get("Secret", "top-shop-a")
	o.stop()
	s.wipeStatus(p, "shop")
	s.patch(cr, spec(map[string]any{"text": "b"}))
	o = s.operateRestricted(p)
	s.expectAllReady(cr)
	s.get("Secret", "top-shop-b")
	s.expectGone(s.ref("Secret", "top-shop-a"))
	t.Log(o.expectLog("objects were looked for as far as the operator may list them", "Secret"))
}

func TestPatchesThatMayNotBeReadAreReadOnceTheyMay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "unpatched", plain)
	configMaps := rule("", writes, "configmaps")
	role := s.restrict(append(p.needs(), configMaps)...)
	o := s.operateRestricted(p)
	t.Log(o.expectLog("patches are not looked at"))
	cr := s.create(p.thing(s, "shop", nil))
	s.expectAllReady(cr)
	u := s.newPatch("fix", "shop", 0, merges("web.settings", map[string]any{"data": map[string]any{"text": "patched"}}))
	u.Object["spec"].(map[string]any)["target"] = map[string]any{"apiVersion": p.name + ".example.com/v1", "kind": "Thing", "name": "shop"}
	s.create(u)

	began := time.Now()
	s.patch(role, map[string]any{"rules": append(p.needs(), configMaps,
		rule("operetta.dev", []any{"get", "list", "watch"}, "patches"), rule("operetta.dev", []any{"patch"}, "patches/status"))})
	s.expectPatch("fix", "Applied")
	s.expectData("web-shop", "text", "patched")
	t.Logf("applied %s after the permission was given", since(began))
	o.expectLog("patches are looked at from now on")
}
