package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

// crashingBody is the package of the crash tests: three layers, objects that can be renamed, a kind
// that can be dropped and a component that can be switched off.
const crashingBody = `
#Spec: {
	name:    string | *"a"
	account: bool | *true
	extra:   bool | *true
}

components: base: objects: {
	settings: {
		apiVersion: "v1"
		kind:       "ConfigMap"
		metadata: name: "base-\(cr.spec.name)"
		data: name: cr.spec.name
	}
	if cr.spec.account {
		account: {
			apiVersion: "v1"
			kind:       "ServiceAccount"
			metadata: name: "base"
		}
	}
}
components: middle: {
	dependsOn: base: {}
	objects: secret: {
		apiVersion: "v1"
		kind:       "Secret"
		metadata: name: "middle-\(cr.spec.name)"
		stringData: name: cr.spec.name
	}
}
components: top: {
	when: cr.spec.extra
	dependsOn: middle: {}
	objects: settings: {
		apiVersion: "v1"
		kind:       "ConfigMap"
		metadata: name: "top"
		data: name: cr.spec.name
	}
}
`

// crashPhases are the actions during which the operator is killed. Each but the first begins with a
// resource that is Ready.
var crashPhases = map[string]func(s *env, cr *unstructured.Unstructured){
	"create":        func(s *env, cr *unstructured.Unstructured) { s.Create(cr.DeepCopy()) },
	"update-rename": func(s *env, cr *unstructured.Unstructured) { s.Patch(cr, harness.Spec(map[string]any{"name": "b"})) },
	"update-drop": func(s *env, cr *unstructured.Unstructured) {
		s.Patch(cr, harness.Spec(map[string]any{"account": false}))
	},
	"update-disable": func(s *env, cr *unstructured.Unstructured) {
		s.Patch(cr, harness.Spec(map[string]any{"extra": false}))
	},
	"delete": func(s *env, cr *unstructured.Unstructured) { s.Delete(cr) },
}

// TestA1OperatorThatDiesAtAnyWriteLeavesWhatAnUndisturbedOneDoes runs a sample of A1 and A2 on a
// control plane; the sweep over every write is in engine/reconcile. One fault is repeated by its name,
// such as -run 'TestA1.*/update-rename/k=3/lost'.
func TestA1OperatorThatDiesAtAnyWriteLeavesWhatAnUndisturbedOneDoes(t *testing.T) {
	t.Parallel()
	p := newTestPackage(t, "crashing", crashingBody)
	for phase := range crashPhases {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			undisturbed := p.runWithFault(t, phase, fault{})
			undisturbed.site.WaitUntilIdle()
			undisturbed.site.Operator.Kill()
			end, counts := undisturbed.end(), undisturbed.counts()
			t.Logf("%d writes:\n%s", len(undisturbed.writes), strings.Join(undisturbed.writes, "\n"))
			for _, f := range sampleFaults(len(undisturbed.writes)) {
				t.Run(f.String(), func(t *testing.T) {
					t.Parallel()
					p.runWithFault(t, phase, f).expect(end, counts)
				})
			}
		})
	}
}

// sampleFaults returns the faults for a number of writes: at the first two, one in the middle and the
// last two, one after the other with each kind of fault, and at full length with two kinds each. In memory, engine/reconcile
// has each kind at each write.
func sampleFaults(writes int) []fault {
	harms := []faultKind{killed, lost, cut}
	at := slices.DeleteFunc([]int{1, 2, (writes + 1) / 2, writes - 1, writes}, func(k int) bool { return k < 1 || k > writes })
	slices.Sort(at)
	var out []fault
	for i, k := range slices.Compact(at) {
		out = append(out, fault{k, harms[i%3]})
		if harness.Long() {
			out = append(out, fault{k, harms[(i+1)%3]})
		}
	}
	return out
}

// A crashRun is a resource with one phase during which its operator was killed.
type crashRun struct {
	site   *env
	cr     *unstructured.Unstructured
	from   controlplane.AuditMark
	writes []string
}

// runWithFault runs a phase with a fault, and starts another operator if one was killed.
func (p *testPackage) runWithFault(t *testing.T, phase string, f fault) crashRun {
	t.Helper()
	s := newEnv(t)
	direct := s.Kubeconfig
	between := s.behindProxy()
	operator := s.StartOperator(p.Dir)
	out := crashRun{site: s, cr: p.Thing(s.Env, "shop", map[string]any{}), from: harness.MarkAudit(t)}
	if phase != "create" {
		s.Create(out.cr.DeepCopy())
		s.ExpectResourceReady(out.cr)
	}
	between.injectFault(operator, f)
	crashPhases[phase](s, out.cr)
	if f != (fault{}) {
		between.waitForFault()
	}
	if f.kind == killed || f.kind == lost {
		s.Kubeconfig = direct
		s.StartOperator(p.Dir)
	}
	if phase == "delete" {
		s.ExpectFinished(out.cr)
	} else {
		s.ExpectResourceReady(out.cr)
	}
	out.writes = between.counted()
	return out
}

// expect expects the same final state as without a fault, and the same number of creations and
// deletions of each object.
func (c crashRun) expect(end map[string]any, counts map[string]int) {
	t := c.site.T
	t.Helper()
	harness.Eventually(t, "the end of an undisturbed operator", func() error {
		if diff := cmp.Diff(end, c.end()); diff != "" {
			return fmt.Errorf("(-undisturbed +disturbed):\n%s", diff)
		}
		return nil
	})
	if diff := cmp.Diff(counts, c.counts()); diff != "" {
		t.Errorf("created and deleted (-undisturbed +disturbed):\n%s", diff)
	}
}

// end returns the final state without what differs between runs: the resource, and all objects of its
// kinds.
func (c crashRun) end() map[string]any {
	t := c.site.T
	t.Helper()
	out := map[string]any{}
	for _, kind := range layeredKinds {
		for _, u := range c.site.List(harness.APIVersions[kind], kind) {
			if u.GetName() != "default" && u.GetName() != "kube-root-ca.crt" {
				out[kind+" "+u.GetName()] = c.site.withoutVolatileFields(&u)
			}
		}
	}
	u, err := harness.GetOrNil(t.Context(), c.cr)
	if err != nil {
		t.Fatal(err)
	}
	if u != nil {
		out[u.GetKind()+" "+u.GetName()] = c.site.withoutVolatileFields(u)
	}
	return out
}

// withoutVolatileFields returns an object without the fields that differ between two runs.
func (s *env) withoutVolatileFields(u *unstructured.Unstructured) map[string]any {
	s.T.Helper()
	managers := map[string]bool{}
	for _, m := range u.GetManagedFields() {
		managers[fmt.Sprint(m.Manager, " ", m.Operation, " ", m.Subresource)] = true
	}
	u.Object["managers"] = slices.Sorted(maps.Keys(managers))
	u.SetManagedFields(nil)
	var out map[string]any
	text := strings.ReplaceAll(string(harness.Encode(s.T, u.Object)), s.Namespace, "NAMESPACE")
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		s.T.Fatal(err)
	}
	mask(out)
	return out
}

// mask replaces times, UIDs and digests of them in a value.
func mask(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range []string{
			"uid", "resourceVersion", "creationTimestamp", "lastTransitionTime", "digest", "operetta.dev/applied", "operetta.dev/owner", "operetta.dev/owner-uid", "operetta.dev/salt",
		} {
			delete(v, key)
		}
		for _, field := range v {
			mask(field)
		}
	case []any:
		for _, item := range v {
			mask(item)
		}
	}
}

// counts returns how often each object was created and deleted.
func (c crashRun) counts() map[string]int {
	out := map[string]int{}
	for _, e := range c.site.OperatorRequests(c.from).Mutating() {
		switch {
		case e.Namespace != c.site.Namespace:
		case e.Code == 201:
			out["create "+e.Resource+" "+e.Name]++
		case e.Verb == "delete" && e.Code == 200:
			out["delete "+e.Resource+" "+e.Name]++
		}
	}
	return out
}
