package rights

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// shardBody renders a ConfigMap, and another one that is deleted before it.
const shardBody = `
#Spec: text: string | *"a"
components: {
	web: objects: settings: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "settings-\(cr.metadata.name)", data: {text: cr.spec.text, version: "VERSION"}}
	after: {
		dependsOn: web: {}
		objects: last: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "last-\(cr.metadata.name)"}
	}
}
`

// What one shard decides, the others follow, and their number changes: nothing of it is refused.
func TestShardsServePackagesOfTheClusterByTheRolesThatArePrinted(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := harness.NewEnv(t)
	body := func(version string) string { return strings.ReplaceAll(shardBody, "VERSION", version) }
	folder, p := harness.NewTestPackage(t, "shardroles", body("a")), s.NewPackageObject("shardroles")
	roles := operetta(t, "rbac", folder.Dir, "--packages-from-cluster", "--shards", "2", "--service-account", s.Namespace+"/operator")
	apply(t, roles)
	s.ActAsAccount(s.Namespace + "/operator")
	from := harness.MarkAudit(t)
	start := func(shard, of int) *harness.Operator {
		return s.StartOperator("--packages-from-cluster", "--package-selector", "test="+s.Namespace, harness.Everywhere, harness.Alone,
			"--leader-elect", "--leader-elect-namespace", s.Namespace, "--shards", strconv.Itoa(of), "--shard", strconv.Itoa(shard))
	}
	members := []*harness.Operator{start(0, 2), start(1, 2)}
	p.Apply(p.InlineBody(body("a")))
	p.Expect("Ready", "True", "Served")
	var all []*unstructured.Unstructured
	for i := range 6 {
		all = append(all, s.Create(p.Thing(s, fmt.Sprint("r", i), nil)))
	}
	expect := func(version string) {
		t.Helper()
		for _, cr := range all {
			s.ExpectData("settings-"+cr.GetName(), "version", version)
			s.ExpectResourceReady(cr)
		}
	}
	expect("a")
	next := p.InlineBody(body("b"))
	if err := unstructured.SetNestedMap(next.Object, map[string]any{"share": "100%", "readyFor": "1s"}, "spec", "canary"); err != nil {
		t.Fatal(err)
	}
	p.Apply(next)
	expect("b")
	for _, o := range members {
		o.Stop()
	}
	for _, shard := range []int{2, 1, 0} {
		start(shard, 3)
	}
	p.Apply(p.InlineBody(body("c")))
	expect("c")
	for _, cr := range all {
		s.Delete(cr)
	}
	s.Delete(p.Ref())
	s.ExpectGone(p.Ref())
	requests := s.RequestsOf(from, s.User)
	for _, e := range requests {
		if e.Code == 403 {
			t.Errorf("refused: %s %s", e.Verb, e.RequestURI)
		}
	}
	compare(t, permissionsOf(rulesIn(t, roles)), usedIn(requests))
}

// The roles of an operator without shards are applied over those of one with shards, and its process takes over from theirs.
func TestShardsAreTakenAwayByTheRolesThatArePrintedWithoutThem(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "shardsaway", strings.ReplaceAll(shardBody, "VERSION", "a"))
	account := s.Namespace + "/operator"
	apply(t, operetta(t, "rbac", p.Dir, "--shards", "2", "--service-account", account))
	s.ActAsAccount(s.Namespace + "/operator")
	from := harness.MarkAudit(t)
	start := func(more ...string) *harness.Operator {
		return s.StartOperator(append([]string{p.Dir, harness.Everywhere, harness.Alone, "--leader-elect", "--leader-elect-namespace", s.Namespace}, more...)...)
	}
	sharded := []*harness.Operator{start("--shards", "2", "--shard", "0"), start("--shards", "2", "--shard", "1")}
	var all []*unstructured.Unstructured
	for i := range 6 {
		all = append(all, s.Create(p.Thing(s, fmt.Sprint("r", i), nil)))
	}
	for _, cr := range all {
		s.ExpectResourceReady(cr)
	}

	apply(t, operetta(t, "rbac", p.Dir, "--service-account", account))
	alone := start()
	alone.ExpectLog("nothing is served until all processes of the other number of shards have ended")
	sharded[0].Stop()
	sharded[1].Kill() // its Lease has to expire
	for _, cr := range all {
		s.Patch(cr, harness.Spec(map[string]any{"text": "b"}))
	}
	for _, cr := range all {
		s.ExpectData("settings-"+cr.GetName(), "text", "b")
	}
	for _, e := range s.RequestsOf(from, s.User) {
		if e.Code == 403 {
			t.Errorf("refused: %s %s", e.Verb, e.RequestURI)
		}
	}
}
