package e2e

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// labelled returns a resource of a team, of which each writes its objects by an operator of its own.
func labelled(s *env, p *testPackage, name, team string) *unstructured.Unstructured {
	u := p.Thing(s.Env, name, nil)
	u.SetLabels(map[string]string{"team": team})
	return u
}

func TestOperatorsWithComplementarySelectorsServeEachItsOwn(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "chosen", keptBody)
	teamX := s.StartOperator(p.Dir, "--selector", "team=x")
	userX := s.User
	other := s.As("others")
	others := other.StartOperator(p.Dir, "--selector", "team!=x")
	from := harness.MarkAudit(t)
	x, y := s.Create(labelled(s, p, "x", "x")), s.Create(labelled(s, p, "y", "y"))
	s.ExpectResourceReady(x)
	s.ExpectResourceReady(y)
	for user, own := range map[string]string{userX: "x", other.User: "y"} {
		for _, e := range s.RequestsOf(from, user).Writes().WithVerbs("patch", "create", "update", "delete") {
			if e.Group != "apiextensions.k8s.io" && !strings.HasSuffix(e.Name, own) {
				t.Errorf("the operator of %s sent %s %s", own, e.Verb, e.RequestURI)
			}
		}
	}

	// The label changes: the other operator takes over, and nothing is torn down.
	web := s.Get("ConfigMap", "web-x")
	s.Patch(x, map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "y"}}})
	s.ExpectEvent("x", "NotSelected", "team=x", "it is left as it is")
	from = harness.MarkAudit(t)
	s.Patch(x, harness.Spec(map[string]any{"text": "b"}))
	s.ExpectData("web-x", "text", "b")
	if now := s.Get("ConfigMap", "web-x"); now.GetUID() != web.GetUID() {
		t.Error("its objects were torn down in between")
	}
	if n := s.RequestsOf(from, userX).Writes(); len(n) > 0 {
		t.Errorf("the first operator still writes: %s", n)
	}
	for name, o := range map[string]*harness.Operator{"first": teamX, "second": others} {
		if strings.Contains(o.Log.From(0), "another process serves this kind") {
			t.Errorf("the %s operator takes the other one for a duplicate", name)
		}
	}
}

func TestAResourceWithoutItsLabelIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	p := newTestPackage(t, "unchosen", keptBody)
	o := s.StartOperator(p.Dir, "--selector", "team=x")
	x, never := s.Create(labelled(s, p, "x", "x")), s.Create(labelled(s, p, "never", "y"))
	s.ExpectResourceReady(x)
	s.Patch(x, map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": nil}}})
	s.ExpectEvent("x", "NotSelected", "it is left as it is")
	from := harness.MarkAudit(t)
	s.Patch(x, harness.Spec(map[string]any{"text": "b"}))
	s.Delete(s.Ref("ConfigMap", "web-x"))
	s.Delete(x) // it waits for an operator that selects it, also after a restart without the package
	s.WaitUntilIdle()
	o.Stop()
	s.StartOperator(newTestPackage(t, "unchosenother", plainBody).Dir, "--selector", "team=x")
	s.WaitUntilIdle()
	s.ExpectObject(s.Ref("ConfigMap", "next-x"), "to be there", harness.Exists)
	s.ExpectObject(x, "to be there", harness.Exists)
	if u, err := s.Lookup("ConfigMap", "web-never"); u != nil || err != nil {
		t.Errorf("%s was served: %v", never.GetName(), err)
	}
	for _, e := range s.OperatorRequests(from).Writes() {
		if strings.HasPrefix(e.Group, "unchosen.") || e.Resource == "configmaps" {
			t.Errorf("%s %s is about a resource without the label", e.Verb, e.RequestURI)
		}
	}
	s.Patch(x, map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "x"}}})
	s.ExpectGone(x)
	s.ExpectGone(s.Ref("ConfigMap", "next-x"))
}
